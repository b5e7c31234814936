"""Files of the other tasks with a few bytes changed: read, or refused in one line that names the file."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fuzz.mutations import spoil_bytes
from ltga.data import MendedWarning, load_collection
from ltga.data.triples import read_triples
from ltga.data.tu import read_tu
from ltga.data.twitch import read_twitch
from ltga.errors import LTGAError

TU = {
    "A": "1, 2\n2, 1\n3, 4\n4, 3\n4, 4\n3, 4\n",
    "graph_indicator": "1\n1\n2\n2\n",
    "graph_labels": "-1\n7\n",
    "node_labels": "2\n4\n3\n2\n",
    "node_attributes": "0.5, 1\n-2, 3\n4e1, 0\n0, 0\n",
    "edge_labels": "0\n0\n1\n1\n0\n1\n",
}
TWITCH = {
    "edges.csv": "from,to\n0,1\n1,2\n",
    "features.json": '{"0": [1, 1], "2": [], "1": [3169]}',
    "target.csv": "id,days,mature,views,new_id\n7,10,True,5,2\n8,11,False,6,0\n9,12,True,7,1\n",
}
TRIPLES = {"train.txt": "a\tr\tc\nc\ts\tb\n", "valid.txt": "a\tr\tb\n", "test.txt": "b\tr\tc\n"}
COLLECTION = {
    "graphs.csv": "graph_id,label\n" + "".join(f"g{i},{i % 2}\n" for i in range(24)),
    "nodes.csv": "graph_id,id,f\n" + "".join(f"g{i},{j},{i * j}\n" for i in range(24) for j in range(2)),
    "edges.csv": "graph_id,source,target,w\n" + "".join(f"g{i},0,1,2\n" for i in range(24)),
}
READERS: dict[str, tuple[dict[str, str], Callable[[dict[str, Path]], Any]]] = {
    "tu": (TU, lambda paths: read_tu(paths, attributes=True)),
    "twitch": (TWITCH, lambda paths: read_twitch(list(paths.values()))),
    "triples": (TRIPLES, lambda paths: read_triples(list(paths.values()), "small")),
    "collection": (COLLECTION, lambda paths: load_collection(paths["graphs.csv"].parent)),
}
PIECES = [
    b"",
    b",",
    b"\n",
    b"\xff",
    b"nan",
    b"1e999",
    b"-",
    b"9" * 20,
    b"_",
    b'"',
    b"\x00",
    b"\t",
    b"1.5",
    b"-1",
    b"\x1c",
]


def spoiled(content: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.3:
        return spoil_bytes(content, rng)
    at = rng.randint(0, len(content))
    return content[:at] + rng.choice(PIECES) + content[at + rng.choice((0, 1, 3)) :]


@pytest.mark.parametrize("name", READERS)
def test_spoiled_files_are_read_or_refused(name: str, tmp_path: Path) -> None:
    files, read = READERS[name]
    rng = random.Random(7)
    paths = {key: tmp_path / key for key in files}
    refused = 0
    for _ in range(250):
        victim = rng.choice(list(files))
        for key, text in files.items():
            paths[key].write_bytes(spoiled(text.encode(), rng) if key == victim else text.encode())
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.simplefilter("ignore", MendedWarning)
                read(paths)
        except LTGAError as error:
            assert "\n" not in str(error)
            refused += 1
    assert refused > 50
