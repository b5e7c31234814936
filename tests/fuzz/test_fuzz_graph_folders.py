"""Graph folders damaged in every way: refused in one line, or used with the very numbers that were written."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from fuzz import mutate, tally
from fuzz.mutations import DTYPES, NASTY_NUMBERS, spoil_bytes
from ltga.data import Dataset, GraphFolder, NeighborSampler, csbm, open_graph_folder
from ltga.data.graph_folder_files import KINDS, MANIFEST, sealed
from ltga.data.graph_folder_sources import DatasetStream
from ltga.data.graph_folder_write import write_graph_folder
from ltga.errors import LTGAError


def healthy(folder: Path, seed: int) -> Path:
    """A small graph with names, weights and times."""
    plain = csbm(num_nodes=60 + 10 * seed, num_splits=2, seed=seed)
    data = Data(x=plain.data.x, y=plain.data.y, edge_index=plain.data.edge_index)
    data.edge_attr = torch.rand(data.num_edges, 2, generator=torch.Generator().manual_seed(seed))
    masks = [torch.stack(part) for part in zip(*(plain.split(number) for number in range(2)))]
    names = [f"näme {number}" for number in range(data.num_nodes)]
    stream = DatasetStream(Dataset("small", data, *masks, node_names=names))
    return write_graph_folder(stream, folder).path


def damage(folder: Path, other: Path, rng: random.Random) -> bool:
    """Spoil a folder in one way; whether it can still be told from what was written."""
    file = rng.choice(sorted(folder.glob("*.npy")))
    kind = rng.randrange(9)
    if kind == 0:
        (folder / MANIFEST).write_bytes(mutate.mutated_bytes((folder / MANIFEST).read_bytes(), rng))
    elif kind == 1:
        (folder / MANIFEST).write_bytes(mutate.mutated_json((folder / MANIFEST).read_bytes(), rng))
    elif kind in (2, 3):
        file.write_bytes(spoil_bytes(file.read_bytes(), rng, (other / file.name).read_bytes()))
        if kind == 3:  # as if the disk had done it
            os.utime(file, ns=(0, 0))
            return False
    elif kind == 4:
        file.write_bytes(rng.choice(sorted(folder.glob("*.npy"))).read_bytes())
    elif kind == 5:
        shutil.copy(other / rng.choice([file.name, MANIFEST]), folder)
    elif kind == 6:
        _replace(file if rng.random() < 0.8 else folder / MANIFEST, rng)
    else:  # all of it agrees with itself and makes no sense
        _forge(folder, file, rng)
        return False
    return True


def _replace(file: Path, rng: random.Random) -> None:
    file.unlink()
    what = rng.randrange(5)
    if what == 0:
        file.mkdir()
    elif what == 1:
        os.mkfifo(file)
    elif what == 2:
        file.symlink_to("/dev/zero")
    elif what == 3:
        with file.open("wb") as stream:
            np.savez(stream, a=np.arange(3))


def _forge(folder: Path, file: Path, rng: random.Random) -> None:
    """An array of another kind, shape or content, with a manifest that says so."""
    array = np.load(file)
    what = rng.randrange(4)
    with np.errstate(all="ignore"):
        if what == 0:
            array = array.astype(rng.choice([*DTYPES, *KINDS[file.stem]]))
        elif what == 1:
            array = array.reshape(rng.choice([(-1,), (1, -1), (-1, 1), array.shape[::-1]]))
        elif what == 2:
            array = array[: rng.choice([0, 1, len(array) // 2])]
        elif array.size:
            nasty = np.array([rng.choice([*NASTY_NUMBERS, float("nan"), float("inf")])]).astype(array.dtype)
            array.reshape(-1)[rng.randrange(array.size) :][: rng.choice([1, 5, 10**6])] = nasty
    np.save(file, array)
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["arrays"][file.stem] = {
        "dtype": str(array.dtype), "shape": list(array.shape), "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
    }  # fmt: skip
    (folder / MANIFEST).write_text(json.dumps(sealed(manifest)))


def use(graph: GraphFolder) -> None:
    """Everything that is done with a folder."""
    for number in range(graph.num_splits):
        graph.split(number)
    assert graph.target.y.max() < graph.num_classes
    assert len(graph.node_names(range(graph.num_nodes))) == graph.num_nodes
    for weight in (None, *graph.edge_columns[:1]):
        for batch in NeighborSampler(graph, [3, 2], batch_size=30, weight_attr=weight, threads=0):
            assert batch.x.isfinite().all() and 0 <= int(batch.n_id.min()) <= int(batch.n_id.max()) < graph.num_nodes
    dataset = graph.dataset()
    assert dataset.fingerprint and dataset.num_nodes == graph.num_nodes


def hunt(folder: Path, cases: int, seed: int) -> list[str]:
    good, other = healthy(folder / "good", 1), healthy(folder / "other", 2)
    truth = open_graph_folder(good)
    spoilt, faults = folder / "spoilt", []
    for case in range(cases):
        rng = random.Random(f"{seed} {case}")
        shutil.rmtree(spoilt, ignore_errors=True)
        shutil.copytree(good, spoilt)
        tells = damage(spoilt, other, rng)
        try:
            graph = open_graph_folder(spoilt)
            use(graph)
            if tells and graph.manifest["version"] == 2:
                same = graph.manifest == truth.manifest and graph.dataset().fingerprint == truth.dataset().fingerprint
                if not same or graph.node_names(range(60)) != truth.node_names(range(60)):
                    faults.append(f"case {case}: other data than were written")
        except LTGAError as error:
            if "\n" in str(error) or len(str(error)) > 1500:
                faults.append(f"case {case}: more than a line: {str(error)[:200]!r}")
        except Exception as error:
            faults.append(f"case {case}: {type(error).__name__}: {str(error)[:200]}")
    return faults


def test_a_few_damaged_folders(tmp_path: Path) -> None:
    assert hunt(tmp_path, 80, seed=1) == []


@pytest.mark.slow
def test_thousands_of_damaged_folders(tmp_path: Path) -> None:
    cases = 3000
    faults = hunt(tmp_path, cases, seed=2)
    tally.report("graph folders", cases, len(faults))
    assert faults == []
