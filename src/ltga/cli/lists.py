"""What ``ltga datasets`` and ``ltga methods`` print."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table


def print_datasets(console: Console) -> None:
    """One line per dataset."""
    from ltga.data import CATALOGUE

    table = Table(box=None, header_style="bold")
    for name in ("dataset", "nodes", "edges", "features", "classes", "homophily"):
        table.add_column(name, justify="left" if name == "dataset" else "right")
    for name, facts in CATALOGUE.items():
        cells = (facts.nodes, facts.edges, facts.features, facts.classes, facts.homophily)
        table.add_row(name, *("" if cell is None else f"{cell:,}" for cell in cells))
    console.print(table)


def print_methods(console: Console) -> None:
    """One line per method."""
    from ltga.nn.methods import METHODS

    table = Table(box=None, header_style="bold")
    for name in ("method", "what", "source"):
        table.add_column(name)
    for method in METHODS.values():
        table.add_row(method.name, method.about, method.source)
    console.print(table)
