"""The command line: parses, calls, prints."""

from ltga.cli.app import main

__all__ = ["main"]
