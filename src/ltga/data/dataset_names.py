"""What a name given for a graph means: a path, a known dataset, or a typo; without loading anything."""

from __future__ import annotations

from pathlib import Path

from ltga.data.catalogue import CATALOGUE
from ltga.data.facts import Facts
from ltga.errors import InputError, did_you_mean

LISTS = (".edges", ".edgelist", ".txt", ".csv", ".tsv")
XML = (".graphml", ".gexf")
GRAPH_SUFFIXES = (*XML, ".gml", ".mtx", *LISTS)
PATH_SUFFIXES = (".npz", ".safetensors", ".parquet", ".pt", ".pth", ".pkl", *GRAPH_SUFFIXES)


def looks_like_a_path(name: str) -> bool:
    """Whether a name is meant as a path rather than as that of a known dataset."""
    return "/" in name or "\\" in name or name in (".", "..") or name.lower().endswith(PATH_SUFFIXES)


def known_dataset(name: str) -> Facts:
    """The catalogue's entry for a name, settings behind a colon aside.

    >>> known_dataset("Roman_Words:planted_per_edge=2").name
    'roman-words'
    >>> known_dataset("corra")
    Traceback (most recent call last):
    ...
    ltga.errors.InputError: name: no dataset is called 'corra'; did you mean 'cora'?
    """
    key = name.partition(":")[0].strip().lower().replace("_", "-")
    if key in CATALOGUE:
        return CATALOGUE[key]
    longer = [known for known in CATALOGUE if known.startswith(key)]
    folder = f" (for the folder of that name write './{name}')" if Path(name).is_dir() else ""
    every = f"known are {', '.join(CATALOGUE)}; or give the path of your own graph{folder}"
    hint = did_you_mean(key, CATALOGUE, f"did you mean {longer[0]!r}?" if longer else every)
    raise InputError(f"name: no dataset is called {name!r}; {hint}")


def check_name(name: str) -> None:
    """Raise for a name that is neither a path nor a known dataset, before anything of weight is imported."""
    if not looks_like_a_path(name):
        known_dataset(name)
