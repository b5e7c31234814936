"""The command line: parses, calls, prints."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """See :func:`ltga.cli.entry.main`, imported now: the study's commands use this package and are among them."""
    from ltga.cli.entry import main as run

    run(arguments)


__all__ = ["main"]
