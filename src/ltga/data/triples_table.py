"""Your own typed links: a table `triples.csv` or `triples.parquet` with columns head, relation and tail."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ltga.data.preparation import Preparation
from ltga.data.problems import Problems
from ltga.data.table_cells import text_of
from ltga.data.table_files import SUFFIXES, read_frame
from ltga.data.table_labels import read_splits
from ltga.errors import InputError

if TYPE_CHECKING:
    from ltga.data.triples import Triples

COLUMNS = ("head", "relation", "tail")
_NAMES = tuple(f"triples{suffix}" for suffix in SUFFIXES)
_VAL, _TEST = 0.05, 0.1  # shares of the triples that are held out where no column says which


def triples_file(path: str | Path) -> Path | None:
    """The table of triples that a path leads to, if it does."""
    path = Path(path).expanduser()
    candidates = [path / name for name in _NAMES] if path.is_dir() else [path] if path.name in _NAMES else []
    return next((file for file in candidates if file.is_file()), None)


def load_triples(path: str | Path, preparation: Preparation | None = None) -> Triples:
    """Triples of a table; a column `split` says train, val or test.

    Without it a twentieth is held out for validation and a tenth for the test, drawn with seed 0 among those whose
    head, relation and tail occur elsewhere, too: nothing could be learned of the others.
    """
    file = triples_file(path)
    if file is None:
        raise InputError(f"{path}: is no triples.csv or triples.parquet, nor a folder with one")
    options = preparation or Preparation()
    strange = [name for name in options.changed if name not in ("encoding", "split", "predict")]
    if strange or options.predict not in ("auto", "links"):
        raise InputError(f"prepare: {(strange or ['predict'])[0]} is not for triples, which have no columns to prepare")
    problems = Problems()
    frame = read_frame(file, options.encoding, problems)
    words = _words(frame, str(file), problems)
    problems.refuse(str(file))
    again = words.duplicated().to_numpy()
    problems.add(str(file), "repeats an earlier triple", np.flatnonzero(again), "the first kept", "mended")
    kept = frame[~again].reset_index(drop=True)
    words = words[~again].reset_index(drop=True)
    masks = read_splits(kept, np.zeros(len(kept), dtype=np.int64), options, str(file), problems, item="triple")
    parts = None if masks is None else [mask[0] for mask in masks]
    if parts is not None:
        _check_seen(words, parts, str(file), problems)
    problems.refuse(str(file))
    problems.warn(str(file))
    made = _made(file, words, parts)
    made.notes = problems.notes
    return made


def _check_seen(words: pd.DataFrame, parts: list[np.ndarray], where: str, problems: Problems) -> None:
    """Add an error about what occurs outside the training part only."""
    train = words[parts[0]]
    ends = {*train["head"], *train["tail"]}
    for name, seen in (("head", ends), ("relation", set(train["relation"])), ("tail", ends)):
        strange = np.flatnonzero((parts[1] | parts[2]) & ~words[name].isin(seen).to_numpy())
        if strange.size:
            what = f"{name} {words[name][int(strange[0])][:40]!r} is in no triple of the train part"
            problems.add(where, what, strange, "leave it out, or train on one of its triples", "error")


def _words(frame: pd.DataFrame, where: str, problems: Problems) -> pd.DataFrame:
    missing = [name for name in COLUMNS if name not in frame]
    if missing:
        listed = ", ".join(map(str, frame.columns))
        problems.add(where, f"column {missing[0]!r} is missing; found {listed}", 1, "rename or add it", "error")
        return pd.DataFrame(columns=list(COLUMNS))
    words = pd.DataFrame({name: text_of(frame[name]).to_pylist() for name in COLUMNS})
    if not len(words):
        problems.add(where, "there are no rows below the header", 1, "give at least one triple", "error")
    for name in COLUMNS:
        problems.add(where, f"{name} is blank", np.flatnonzero(words[name] == ""), "fill it in", "error")
    return words


def _made(file: Path, words: pd.DataFrame, masks: list[np.ndarray] | None) -> Triples:
    import torch

    from ltga.data.triples import Triples

    nodes = sorted({*words["head"], *words["tail"]})
    relations = sorted(set(words["relation"]))
    number = {word: at for at, word in enumerate(nodes)}
    kind = {word: at for at, word in enumerate(relations)}
    ends = np.array([[number[word] for word in words[name]] for name in ("head", "tail")], dtype=np.int64)
    types = np.array([kind[word] for word in words["relation"]], dtype=np.int64)
    chosen = _drawn(ends, types) if masks is None else masks
    train, val, test = (torch.from_numpy(mask) for mask in chosen)
    name = file.resolve().parent.name if file.name in _NAMES else file.stem
    made = Triples(
        name, torch.from_numpy(ends), torch.from_numpy(types), train, val, test, nodes, relations,
        provenance={"path": str(file), "splits": "as given" if masks is not None else "drawn, seed 0"},
    )  # fmt: skip
    made.reading = {"format": "triples", "name": name, "path": str(file.resolve())}
    return made


def _drawn(ends: np.ndarray, types: np.ndarray) -> list[np.ndarray]:
    """Masks `[T]` of the three parts; whatever is held out leaves its head, relation and tail in training."""
    count = len(types)
    left = np.bincount(ends.ravel())
    left_of_type = np.bincount(types)
    part = np.zeros(count, dtype=np.int64)
    wanted = [max(round(_TEST * count), 1), max(round(_VAL * count), 1)]
    for at in np.random.default_rng(0).permutation(count):
        ready = 2 if wanted[0] else 1 if wanted[1] else 0
        if not ready:
            break
        head, tail, kind = ends[0, at], ends[1, at], types[at]
        if min(left[head], left[tail]) < 2 + (head == tail) or left_of_type[kind] < 2:
            continue
        np.subtract.at(left, [head, tail], 1)
        left_of_type[kind] -= 1
        part[at] = ready
        wanted[2 - ready] -= 1
    if not {1, 2} <= set(part.tolist()):
        raise InputError(f"triples: {count} are too few to hold some out; name a column split (train, val, test)")
    return [part == number for number in range(3)]
