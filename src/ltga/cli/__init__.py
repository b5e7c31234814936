"""The command line: parses, calls, prints."""

from ltga.cli.entry import main

__all__ = ["main"]
