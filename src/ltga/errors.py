"""The one family of errors that LTGA raises on purpose."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class LTGAError(Exception):
    """Something the caller can mend: the message names the argument, the fault and the remedy.

    >>> raise LTGAError("q: expected a number, got 'two'; pass for example q=2.0")
    Traceback (most recent call last):
    ...
    ltga.errors.LTGAError: q: expected a number, got 'two'; pass for example q=2.0
    """


class InputError(LTGAError, ValueError):
    """An argument has the wrong type, shape or value."""


class GraphError(InputError):
    """An edge list or neighbourhood structure is malformed."""


class DataError(LTGAError):
    """A dataset file is missing, corrupt, not what it claims to be, or not readable."""


class TrainingError(LTGAError):
    """A run cannot go on (for example because the loss is no longer finite)."""


class RecordError(LTGAError):
    """A stored run is missing, damaged or from an incompatible version."""


def did_you_mean(name: str, known: Iterable[str], otherwise: str, cutoff: float = 0.6) -> str:
    """The end of a message about a name that does not exist: the one most like it, or what to say if none is.

    >>> did_you_mean("epoch", ["epochs", "lr"], "it has epochs, lr")
    "did you mean 'epochs'?"
    >>> did_you_mean("colour", ["epochs", "lr"], "it has epochs, lr")
    'it has epochs, lr'
    """
    near = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    return f"did you mean {near[0]!r}?" if near else otherwise
