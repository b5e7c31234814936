"""Graphs to learn on: the benchmarks, synthetic graphs, the embedded demo graph, and your own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ltga.data.catalogue import CATALOGUE, Facts
from ltga.data.dataset import Dataset
from ltga.data.digits_noise import digits_noise
from ltga.data.graph_tables import Tables
from ltga.data.load import load_dataset
from ltga.data.nodes import Nodes
from ltga.data.obtain import data_folders
from ltga.data.own_graph import dataset_from_data, load_data, load_own_graph, save_data
from ltga.data.preparation import Preparation
from ltga.data.prepare import FittedPreparation, PreparedGraph
from ltga.data.problems import MendedWarning
from ltga.data.readings import prepare_like, read_again
from ltga.data.sampling import NeighborSampler, Sample
from ltga.data.sources import as_graph, as_tables, from_networkx, from_sql
from ltga.data.syntax import syntax_graph
from ltga.data.synthetic import csbm

if TYPE_CHECKING:
    from ltga.data.on_features import OnFeatures

__all__ = [
    "CATALOGUE",
    "Dataset",
    "Facts",
    "FittedPreparation",
    "MendedWarning",
    "NeighborSampler",
    "Nodes",
    "OnFeatures",
    "Preparation",
    "PreparedGraph",
    "Sample",
    "Tables",
    "as_graph",
    "as_tables",
    "csbm",
    "data_folders",
    "dataset_from_data",
    "digits_noise",
    "from_networkx",
    "from_sql",
    "load_data",
    "load_dataset",
    "load_own_graph",
    "prepare_like",
    "read_again",
    "save_data",
    "syntax_graph",
]


def __getattr__(name: str) -> Any:
    """`OnFeatures` when it is first used: it needs scikit-learn, whose import takes a second."""
    if name == "OnFeatures":
        from ltga.data.on_features import OnFeatures

        return OnFeatures
    raise AttributeError(f"module 'ltga.data' has no attribute {name!r}")
