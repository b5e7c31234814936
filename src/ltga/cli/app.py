"""The commands of ``ltga``; heavy imports wait until a command runs, so that --help is quick."""

from __future__ import annotations

import importlib
from typing import Annotated

import typer

from ltga import __version__
from ltga.cli.commands_graphs import bench, check, convert, datasets, doctor, methods
from ltga.cli.commands_runs import explain, predict, runs
from ltga.cli.commands_training import train, tune

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
# The study of the paper is a building of its own: it uses the rest, and this is the only door to it.
importlib.import_module("ltga.study.command").add_to(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"ltga {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """Graph attention that learns how sparse to be. Start with: ltga train"""


for command in (train, tune, check, convert, bench, explain, predict, runs, datasets, methods, doctor):
    app.command()(command)
