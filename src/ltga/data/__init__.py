"""Graphs to learn on: the benchmarks, synthetic graphs, the embedded demo graph, and your own; one or many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ltga.data.catalogue import CATALOGUE, Facts
from ltga.data.collection import GraphCollection, collection_from_data
from ltga.data.collection_tables import load_collection
from ltga.data.dataset import Dataset
from ltga.data.digits_noise import digits_noise
from ltga.data.graph_folder import GraphFolder, open_graph_folder
from ltga.data.graph_tables import Tables
from ltga.data.links import LinkSplit, split_links
from ltga.data.load import load_dataset, load_graph
from ltga.data.molecules import molecule
from ltga.data.node_dataset import NodeDataset, neighbour_classes
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
from ltga.data.target import Target, make_target
from ltga.data.triples import Triples

if TYPE_CHECKING:
    from ltga.data.on_features import OnFeatures

__all__ = [
    "CATALOGUE",
    "Dataset",
    "Facts",
    "FittedPreparation",
    "GraphCollection",
    "GraphFolder",
    "LinkSplit",
    "MendedWarning",
    "NeighborSampler",
    "NodeDataset",
    "Nodes",
    "OnFeatures",
    "Preparation",
    "PreparedGraph",
    "Sample",
    "Tables",
    "Target",
    "Triples",
    "as_graph",
    "as_tables",
    "collection_from_data",
    "csbm",
    "data_folders",
    "dataset_from_data",
    "digits_noise",
    "from_networkx",
    "from_sql",
    "load_collection",
    "load_data",
    "load_dataset",
    "load_graph",
    "load_own_graph",
    "make_target",
    "molecule",
    "neighbour_classes",
    "open_graph_folder",
    "prepare_like",
    "read_again",
    "save_data",
    "split_links",
    "syntax_graph",
]


def __getattr__(name: str) -> Any:
    """`OnFeatures` when it is first used: it needs scikit-learn, whose import takes a second."""
    if name == "OnFeatures":
        from ltga.data.on_features import OnFeatures

        return OnFeatures
    raise AttributeError(f"module 'ltga.data' has no attribute {name!r}")
