"""The operations of ltga.functional fused and compiled for the CPU; compiled code loads on first use."""

from ltga.kernels.attention import NORMALIZERS, SCORINGS, aggregate, attend
from ltga.kernels.neighbourhoods import Neighbourhoods, neighbourhoods
from ltga.kernels.projection import SparseFeatures, project, sparse_form

__all__ = [
    "NORMALIZERS",
    "SCORINGS",
    "Neighbourhoods",
    "SparseFeatures",
    "aggregate",
    "attend",
    "neighbourhoods",
    "project",
    "sparse_form",
]
