"""Layers and models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ltga.lazy import lazy_names

if TYPE_CHECKING:
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

__getattr__ = lazy_names(
    __name__,
    {
        "ltga.nn.attention_inputs": "Attention",
        "ltga.nn.build": "build_model",
        "ltga.nn.conv": "LTGAConv",
        "ltga.nn.index": "EntropicIndex FrozenIndex GatedIndex LearnedIndex LogIndex index_parameters",
        "ltga.nn.interface": "Network",
        "ltga.nn.network": "LTGA",
    },
)
