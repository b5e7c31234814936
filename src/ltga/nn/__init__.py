"""Layers and models."""

from ltga.nn.conv import Attention, LTGAConv
from ltga.nn.index import EdgeIndex, EntropicIndex, FrozenIndex, LearnedIndex, index_parameters

__all__ = [
    "Attention",
    "EdgeIndex",
    "EntropicIndex",
    "FrozenIndex",
    "LTGAConv",
    "LearnedIndex",
    "index_parameters",
]
