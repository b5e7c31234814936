"""What is known about a dataset, and where its files are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ltga.data.conventions import Convention

UPSTREAM = "https://raw.githubusercontent.com"

# Commits, so that what a URL serves cannot change.
COMMITS = {
    "kimiyoung/planetoid": "af6abf468a772cc055bec88c52e4d6f51b7c37e3",
    "graphdml-uiuc-jlu/geom-gcn": "f1fc0d14b3b019c562737240d06ec83b07d16a8f",
    "bingzhewei/geom-gcn": "1124af17444d7fd09686504ec46caa3f39f4f632",
    "yandex-research/heterophilous-graphs": "a431395582e929d88271309716bea4fe24ce6318",
    "CUAI/Non-Homophily-Large-Scale": "82f8f05c5c3ec16bd5b505cc7ad62ab5e09051e6",
    "deepchem/deepchem": "fbe3b911a94a6eb8c84c1a9e7ac67a472c49ea80",
    "pykeen/pykeen": "05c7bbb20c952f3e5e958e694344ace4005b1bbb",
}

Reader = Literal["planetoid", "geom-gcn", "npz", "generated", "tu", "molecules", "twitch", "triples"]

Task = Literal[
    "node classification",
    "node regression",
    "multi-label nodes",
    "link prediction",
    "typed link prediction",
    "graph classification",
    "graph regression",
    "multi-label graphs",
]


@dataclass(frozen=True)
class KnownFile:
    """A file: where it lies under a data folder, its identity, and where upstream keeps it.

    Upstream keeps it at `upstream_path` of a `repository`, or of a zip `archive` whose address cannot be pinned
    (its content can: by the sha256).
    """

    path: str
    size: int | None
    sha256: str | None
    repository: str | None = None
    upstream_path: str | None = None
    archive: str | None = None

    @property
    def url(self) -> str | None:
        """The address it is downloaded from, or None for a file that no public address serves."""
        if self.archive is not None:
            return self.archive
        if self.repository is None:
            return None
        return f"{UPSTREAM}/{self.repository}/{COMMITS[self.repository]}/{self.upstream_path}"


@dataclass(frozen=True)
class Facts:
    """What is known of one dataset; None where nobody could check it here.

    `edges` counts rows as stored under `convention`, `undirected` distinct undirected edges with
    self-loops; `homophily` is the share of the latter that join one class; `packed` is the file in
    the npz schema, `raw` the upstream files that say the same; `about` says what the nodes and edges
    are, `paper` who made the graph (and its splits) known.

    A collection counts the nodes and edges of all its `graphs` together. `classes` counts labels where there are
    several, relations where edges are typed, and is 0 where the target is a number; `targets` are the columns that
    can be predicted where there is a choice, the first by default.
    """

    name: str
    reader: Reader
    source: str
    licence: str
    nodes: int
    edges: int | None
    convention: Convention
    features: int
    classes: int
    splits: int
    split_sizes: tuple[int, int, int] | None = None
    undirected: int | None = None
    self_loops: int = 0
    homophily: float | None = None
    metric: str = "accuracy"
    packed: KnownFile | None = None
    raw: tuple[KnownFile, ...] = ()
    traps: tuple[str, ...] = ()
    about: str = ""
    paper: str = ""
    task: Task = "node classification"
    graphs: int = 1
    targets: tuple[str, ...] = ()
