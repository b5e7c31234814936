"""The method catalogue, where the suite looks for it (it lives in ``ltga.nn``, which builds the models)."""

from ltga.nn.methods import METHODS, Method, find_method

__all__ = ["METHODS", "Method", "find_method"]
