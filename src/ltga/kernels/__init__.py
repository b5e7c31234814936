"""The operations of ltga.functional fused and compiled for the CPU; compiled code loads on first use."""

from ltga.kernels.codes import NORMALIZERS, SCORINGS
from ltga.kernels.operators.activations import elu, relu
from ltga.kernels.operators.attention import aggregate, attend
from ltga.kernels.operators.bernoulli import torch_dropout
from ltga.kernels.operators.dropout import Part, counter_dropout
from ltga.kernels.operators.edge_dot import edge_dot
from ltga.kernels.operators.edge_gate import edge_mlp
from ltga.kernels.operators.gate_step import GateOperands, gate_features
from ltga.kernels.operators.joint_scores import joint_scores
from ltga.kernels.operators.layer import LayerOperands, attend_features
from ltga.kernels.operators.projection import (
    DistinctRows,
    SparseFeatures,
    compact_form,
    project,
    project_both,
    sparse_form,
)
from ltga.kernels.operators.sparse_product import SparseRows
from ltga.kernels.runtime.fingerprint import assume_constant
from ltga.kernels.runtime.neighbourhoods import Edges, Neighbourhoods, neighbourhoods

__all__ = [
    "NORMALIZERS",
    "SCORINGS",
    "DistinctRows",
    "Edges",
    "GateOperands",
    "LayerOperands",
    "Neighbourhoods",
    "Part",
    "SparseFeatures",
    "SparseRows",
    "aggregate",
    "assume_constant",
    "attend",
    "attend_features",
    "compact_form",
    "counter_dropout",
    "edge_dot",
    "edge_mlp",
    "elu",
    "gate_features",
    "joint_scores",
    "neighbourhoods",
    "project",
    "project_both",
    "relu",
    "sparse_form",
    "torch_dropout",
]
