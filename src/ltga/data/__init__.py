"""Graphs to learn on: the benchmarks, synthetic graphs, the embedded demo graph, and your own; one or many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ltga.lazy import lazy_names

if TYPE_CHECKING:
    from ltga.data.catalogue import CATALOGUE, Facts
    from ltga.data.collection import GraphCollection, collection_from_data
    from ltga.data.collection_tables import load_collection
    from ltga.data.dataset import Dataset
    from ltga.data.digits import digits_noise
    from ltga.data.graph_folder import GraphFolder, open_graph_folder
    from ltga.data.graph_tables import Tables
    from ltga.data.links import LinkSplit, split_links
    from ltga.data.load import load_dataset, load_graph
    from ltga.data.molecules import molecule
    from ltga.data.node_dataset import NodeDataset, neighbour_classes
    from ltga.data.nodes import Nodes
    from ltga.data.obtain import data_folders
    from ltga.data.on_features import OnFeatures
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
    from ltga.data.triples_table import load_triples

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
    "load_triples",
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

__getattr__ = lazy_names(
    __name__,
    {
        "ltga.data.catalogue": "CATALOGUE Facts",
        "ltga.data.collection": "GraphCollection collection_from_data",
        "ltga.data.collection_tables": "load_collection",
        "ltga.data.triples_table": "load_triples",
        "ltga.data.dataset": "Dataset",
        "ltga.data.digits": "digits_noise",
        "ltga.data.graph_folder": "GraphFolder open_graph_folder",
        "ltga.data.graph_tables": "Tables",
        "ltga.data.links": "LinkSplit split_links",
        "ltga.data.load": "load_dataset load_graph",
        "ltga.data.molecules": "molecule",
        "ltga.data.node_dataset": "NodeDataset neighbour_classes",
        "ltga.data.nodes": "Nodes",
        "ltga.data.obtain": "data_folders",
        "ltga.data.own_graph": "dataset_from_data load_data load_own_graph save_data",
        "ltga.data.preparation": "Preparation",
        "ltga.data.prepare": "FittedPreparation PreparedGraph",
        "ltga.data.problems": "MendedWarning",
        "ltga.data.readings": "prepare_like read_again",
        "ltga.data.sampling": "NeighborSampler Sample",
        "ltga.data.sources": "as_graph as_tables from_networkx from_sql",
        "ltga.data.syntax": "syntax_graph",
        "ltga.data.synthetic": "csbm",
        "ltga.data.target": "Target make_target",
        "ltga.data.triples": "Triples",
        "ltga.data.on_features": "OnFeatures",
    },
)
