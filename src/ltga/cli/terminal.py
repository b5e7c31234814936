"""Where the command line prints: results on stdout, progress and messages on stderr."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

UNFOLDED = 1000  # columns; what a pipe gets is not for a screen, and `grep` wants whole rows


def results() -> Console:
    """What was asked for. Folded to the screen's width on a terminal, one line per row elsewhere."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else UNFOLDED)


def messages(quiet: bool = False) -> Console:
    """Progress and errors."""
    width = None if sys.stderr.isatty() else UNFOLDED
    return Console(stderr=True, highlight=False, width=width, quiet=quiet)


def say(console: Console, line: str, style: str | None = None) -> None:
    """Print a line as it is: no brackets taken for markup, and one line however long."""
    console.print(line, style=style, markup=False, soft_wrap=True)


def counted(number: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "method"), counted(2, "seed")
    ('1 method', '2 seeds')
    """
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def plain_table(*headings: str, **settings: Any) -> Table:
    """A plain table; a heading that begins with ``>`` stands over numbers.

    >>> plain_table("method", ">accuracy").columns[1].justify
    'right'
    """
    made = Table(box=None, header_style="bold", **settings)
    for heading in headings:
        made.add_column(heading.removeprefix(">"), justify="right" if heading.startswith(">") else "left")
    return made


def run_bar(console: Console, *columns: ProgressColumn) -> Progress:
    """A bar that counts runs, followed by ``columns`` and a description; nothing where nobody looks."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Column

    wide = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    return Progress(
        BarColumn(bar_width=16), MofNCompleteColumn(), TimeElapsedColumn(), *columns,
        TextColumn("{task.description}", table_column=wide, markup=False),
        console=console, transient=True, expand=True, disable=console.quiet or not console.is_terminal,
    )  # fmt: skip
