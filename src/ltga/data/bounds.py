"""How much a number in a file may ask for, measured by what the file really holds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ltga.errors import DataError

if TYPE_CHECKING:
    from torch import Tensor

# What a file may unpack to; the largest known dataset needs 0.5 GB as dense features.
MAX_BYTES = 8 * 1024**3
# Up to here nobody is hurt, however few bytes describe it. Beyond, so many for each that is stored: the sparsest
# benchmark needs 58.
_HARMLESS_BYTES = 256 * 1024**2
_EXPANSION = 1000
# Deflate cannot shrink anything further than this.
DEFLATE_RATIO = 1032
# So many classes are fine without a node in each (a small part of a large graph has that), or so many per label seen.
_HARMLESS_CLASSES = 1000
_CLASSES_PER_LABEL = 10


def check_dense_size(nodes: int, features: int, stored: int, where: object) -> None:
    """Refuse features `[nodes, features]` that need far more memory than the `stored` bytes describing them.

    >>> check_dense_size(2708, 1433, 400_000, "cora")
    >>> check_dense_size(12, 10**9, 2000, "graph.npz")
    Traceback (most recent call last):
    ...
    ltga.errors.DataError: graph.npz: features of shape [12, 1000000000] need 48,000,000,000 bytes, more than ...
    """
    needed = nodes * features * 4
    if needed > MAX_BYTES:
        raise DataError(
            f"{where}: features of shape [{nodes}, {features}] need {needed:,} bytes, more than "
            f"the limit of {MAX_BYTES:,}; leave out columns, or split the graph"
        )
    if needed > max(_HARMLESS_BYTES, _EXPANSION * stored):
        raise DataError(
            f"{where}: features of shape [{nodes}, {features}] need {needed:,} bytes, but only {stored:,} bytes "
            "describe them; check the largest column number, or leave out columns that are always zero"
        )


def most_classes(y: Tensor) -> int:
    """How many classes labels `[N]` can be meant for: some may have no node, but not nearly all of them.

    >>> import torch
    >>> most_classes(torch.tensor([0, 1, 39])), most_classes(torch.arange(500))
    (1000, 5000)
    """
    return max(_HARMLESS_CLASSES, _CLASSES_PER_LABEL * int(y[y >= 0].unique().numel()))


def in_a_line(error: object, length: int = 300) -> str:
    """What another library says went wrong, as one line without control characters.

    >>> in_a_line("first\\nsecond\\x1b[31m")
    'first second [31m'
    >>> in_a_line(EOFError())
    'EOFError'
    """
    text = re.sub(r"[^\x20-\x7e\u00a1-\ud7ff\ue000-\uffff]+", " ", str(error)).strip()
    if not text and isinstance(error, BaseException):
        text = type(error).__name__
    return text if len(text) <= length else f"{text[:length]}..."
