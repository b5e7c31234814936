"""The study's commands, ``ltga suite`` and ``ltga reproduce``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from ltga.cli.options import Data
from ltga.cli.terminal import messages
from ltga.errors import InputError
from ltga.study.command.suite_command import suite_app

HEADLINE = "gcn,gat,gatv2,ltga-global,ltga-layer,ltga-head,ltga-edge"
SMALL = "texas,wisconsin,cornell,cora,citeseer,pubmed"
EXTRA = ("matplotlib", "statsmodels")  # what the extra ltga[study] installs


def add_to(app: typer.Typer) -> None:
    """Give ``ltga`` the study's commands."""
    suite_app.callback()(suite)
    app.add_typer(suite_app, name="suite")
    app.command()(reproduce)


def suite() -> None:
    """The paper's study: run it, see how far it is, and report on it."""
    check_installed("ltga suite")


def check_installed(command: str) -> None:
    """Raise unless the packages of the study are here."""
    missing = [package for package in EXTRA if find_spec(package) is None]
    if missing:
        raise InputError(f"{command}: needs {' and '.join(missing)}; install the study with: pip install 'ltga[study]'")


def reproduce(
    methods: Annotated[str, typer.Option(help="Methods, comma-separated, or 'all'.")] = HEADLINE,
    datasets: Annotated[str, typer.Option(help="Datasets, comma-separated.")] = SMALL,
    seeds: Annotated[int, typer.Option(min=2, help="Seeds 1..N; the paper has 10.")] = 10,
    store: Annotated[Path, typer.Option(help="Finished runs are kept here and not run again.")] = Path("runs"),
    out: Annotated[Path | None, typer.Option(help="Write the table here (.md or .csv) as well.")] = None,
    data: Data = None,
) -> None:
    """Rerun the paper's cells and print them beside the published ones.

    Example: ltga reproduce --datasets texas,cora --methods gatv2,ltga-head
    """
    check_installed("ltga reproduce")
    from ltga.study.command.reproduce_command import reproduce_cells

    reproduce_cells(messages(), methods.split(","), datasets.split(","), seeds, store, out, data)
