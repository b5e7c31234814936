"""Deep networks that people trust, with a slot for how attention is normalised."""

from ltga.nn.backbones.classic import ClassicStack
from ltga.nn.backbones.separated import SeparatedStack

__all__ = ["ClassicStack", "SeparatedStack"]
