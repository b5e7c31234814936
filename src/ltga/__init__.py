"""LTGA: graph attention whose normalisation learns how sparse to be."""

from ltga.errors import LTGAError

__version__ = "0.1.0"
__all__ = ["LTGAError", "__version__"]
