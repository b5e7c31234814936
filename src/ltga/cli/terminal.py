"""Where the command line prints: results on stdout, progress and messages on stderr."""

from __future__ import annotations

import sys

from rich.console import Console

UNFOLDED = 1000  # columns; what a pipe gets is not for a screen, and `grep` wants whole rows


def results() -> Console:
    """What was asked for. Folded to the screen's width on a terminal, one line per row elsewhere."""
    return Console() if sys.stdout.isatty() else Console(width=UNFOLDED)


def messages(quiet: bool = False) -> Console:
    """Progress and errors."""
    return (
        Console(stderr=True, quiet=quiet) if sys.stderr.isatty() else Console(stderr=True, width=UNFOLDED, quiet=quiet)
    )
