"""The operations of ltga.functional fused and compiled for the CPU; compiled code loads on first use."""

from ltga.kernels.activation import elu
from ltga.kernels.attention import NORMALIZERS, SCORINGS, aggregate, attend
from ltga.kernels.bernoulli import torch_dropout
from ltga.kernels.dropout import Part, counter_dropout
from ltga.kernels.edge_dot import edge_dot
from ltga.kernels.fingerprint import assume_constant
from ltga.kernels.gate import edge_mlp
from ltga.kernels.neighbourhoods import Edges, Neighbourhoods, neighbourhoods
from ltga.kernels.projection import (
    DistinctRows,
    SparseFeatures,
    compact_form,
    project,
    project_both,
    sparse_form,
)
from ltga.kernels.sparse_features import SparseRows

__all__ = [
    "NORMALIZERS",
    "SCORINGS",
    "DistinctRows",
    "Edges",
    "Neighbourhoods",
    "Part",
    "SparseFeatures",
    "SparseRows",
    "aggregate",
    "assume_constant",
    "attend",
    "compact_form",
    "counter_dropout",
    "edge_dot",
    "edge_mlp",
    "elu",
    "neighbourhoods",
    "project",
    "project_both",
    "sparse_form",
    "torch_dropout",
]
