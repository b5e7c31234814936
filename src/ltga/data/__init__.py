"""Graphs to learn on: the benchmarks, synthetic graphs, the embedded demo graph, and your own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ltga.data.catalogue import CATALOGUE, Facts
from ltga.data.dataset import Dataset
from ltga.data.digits_noise import digits_noise
from ltga.data.graph_folder import GraphFolder, open_graph_folder
from ltga.data.load import load_dataset
from ltga.data.nodes import Nodes
from ltga.data.obtain import data_folders
from ltga.data.own_graph import dataset_from_data, load_data, load_own_graph, save_data
from ltga.data.sampling import NeighborSampler, Sample
from ltga.data.syntax import syntax_graph
from ltga.data.synthetic import csbm

if TYPE_CHECKING:
    from ltga.data.on_features import OnFeatures

__all__ = [
    "CATALOGUE",
    "Dataset",
    "Facts",
    "GraphFolder",
    "NeighborSampler",
    "Nodes",
    "OnFeatures",
    "Sample",
    "csbm",
    "data_folders",
    "dataset_from_data",
    "digits_noise",
    "load_data",
    "load_dataset",
    "load_own_graph",
    "open_graph_folder",
    "save_data",
    "syntax_graph",
]


def __getattr__(name: str) -> Any:
    """`OnFeatures` when it is first used: it needs scikit-learn, whose import takes a second."""
    if name == "OnFeatures":
        from ltga.data.on_features import OnFeatures

        return OnFeatures
    raise AttributeError(f"module 'ltga.data' has no attribute {name!r}")
