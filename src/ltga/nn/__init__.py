"""Layers and models."""

from ltga.nn.attention_inputs import Attention
from ltga.nn.build import build_model
from ltga.nn.conv import LTGAConv
from ltga.nn.index import EntropicIndex, FrozenIndex, GatedIndex, LearnedIndex, LogIndex, index_parameters
from ltga.nn.interface import Network
from ltga.nn.network import LTGA

__all__ = [
    "LTGA",
    "Attention",
    "EntropicIndex",
    "FrozenIndex",
    "GatedIndex",
    "LTGAConv",
    "LearnedIndex",
    "LogIndex",
    "Network",
    "build_model",
    "index_parameters",
]
