"""Layers and models."""

from ltga.nn.build import build_model
from ltga.nn.conv import Attention, LTGAConv
from ltga.nn.index import EdgeIndex, EntropicIndex, FrozenIndex, LearnedIndex, index_parameters
from ltga.nn.interface import Network
from ltga.nn.network import LTGA

__all__ = [
    "LTGA",
    "Attention",
    "EdgeIndex",
    "EntropicIndex",
    "FrozenIndex",
    "LTGAConv",
    "LearnedIndex",
    "Network",
    "build_model",
    "index_parameters",
]
