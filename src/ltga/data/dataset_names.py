"""What a name given for a graph means: a path, a known dataset, or a typo; without loading anything."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from ltga.data.catalogue import CATALOGUE
from ltga.data.facts import Facts
from ltga.errors import InputError, did_you_mean

TaskName = Literal["node", "link", "graph"]
TASKS: tuple[str, ...] = get_args(TaskName)
LISTS = (".edges", ".edgelist", ".txt", ".csv", ".tsv")
XML = (".graphml", ".gexf")
GRAPH_SUFFIXES = (*XML, ".gml", ".mtx", *LISTS)
PATH_SUFFIXES = (".npz", ".safetensors", ".parquet", ".pt", ".pth", ".pkl", *GRAPH_SUFFIXES)


def looks_like_a_path(name: str) -> bool:
    """Whether a name is meant as a path; a known dataset wins over a folder of its name."""
    if "/" in name or "\\" in name or name in (".", "..") or name.lower().endswith(PATH_SUFFIXES):
        return True
    return _key(name) not in CATALOGUE and Path(name).is_dir()


def _key(name: str) -> str:
    return name.partition(":")[0].strip().lower().replace("_", "-")


def known_dataset(name: str) -> Facts:
    """The catalogue's entry for a name, settings behind a colon aside.

    >>> known_dataset("Roman_Words:planted_per_edge=2").name
    'roman-words'
    >>> known_dataset("corra")
    Traceback (most recent call last):
    ...
    ltga.errors.InputError: name: no dataset is called 'corra'; did you mean 'cora'?
    """
    key = _key(name)
    if key in CATALOGUE:
        return CATALOGUE[key]
    longer = [known for known in CATALOGUE if known.startswith(key)]
    every = f"known are {', '.join(CATALOGUE)}; or give the path of your own graph"
    hint = did_you_mean(key, CATALOGUE, f"did you mean {longer[0]!r}?" if longer else every)
    raise InputError(f"name: no dataset is called {name!r}; {hint}")


def is_node_classification(name: str, task: str | None = None) -> bool:
    """Whether this dataset and task mean a class for each node, told without reading the dataset.

    >>> is_node_classification("cora"), is_node_classification("mutag"), is_node_classification("cora", "link")
    (True, False, False)
    """
    if task is not None and task not in TASKS:
        raise InputError(f"--task: got {task!r}; use one of {', '.join(TASKS)}")
    if task in ("link", "graph"):
        return False
    if looks_like_a_path(name):
        path, suffixes = Path(name).expanduser(), (".csv", ".parquet")
        tables = [f"{stem}{suffix}" for stem in ("graphs", "triples") for suffix in suffixes]
        return path.name not in tables[2:] and not any((path / table).exists() for table in tables)
    facts, knobs = known_dataset(name), name.partition(":")[2]
    if facts.task != "node classification":
        return False
    chosen = knobs.partition("=")[2].strip() if knobs.strip().startswith("target") else None
    return chosen is None or not facts.targets or chosen == facts.targets[0]


def check_name(name: str) -> None:
    """Raise for a name that is neither a path nor a known dataset, before anything of weight is imported."""
    if not looks_like_a_path(name):
        known_dataset(name)
