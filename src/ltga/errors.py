"""The one family of errors that LTGA raises on purpose."""

from __future__ import annotations


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
