"""Options that several commands share, and the names that a shell completes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ltga.cli.early_checks import check_batches, parse_fanout
from ltga.cli.terminal import say

if TYPE_CHECKING:
    from rich.console import Console

    from ltga.data.preparation import Preparation
    from ltga.train.minibatch import MiniBatch


def complete_dataset(incomplete: str) -> list[str]:
    """Names of datasets."""
    from ltga.data.catalogue import CATALOGUE

    return [name for name in CATALOGUE if name.startswith(incomplete)]


def complete_methods(incomplete: str) -> list[str]:
    """Names of methods; after a comma, the next one.

    >>> complete_methods("gatv2,ltga-h")
    ['gatv2,ltga-head']
    """
    from ltga.nn.methods import METHODS

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in METHODS if name.startswith(last)]


def complete_setting(incomplete: str) -> list[str]:
    """Names of settings, up to the equals sign."""
    from ltga.train.protocol import Protocol

    return [f"{name}=" for name in Protocol.model_fields if name.startswith(incomplete)]


def preparation(words: list[str] | None) -> Preparation | None:
    """What ``--prepare`` says, if it says something."""
    if not words:
        return None
    from ltga.data.preparation import Preparation
    from ltga.errors import InputError

    try:
        return Preparation.from_words(words)
    except InputError as error:
        raise InputError(f"--{error}") from None


def prediction_options(words: list[str] | None, new_category: str | None) -> dict[str, str]:
    """What ``--prepare`` and ``--new-category`` say of the table to predict, checked as far as words can be."""
    if not words and new_category is None:
        return {}
    from ltga.data.preparation import Preparation, said_options
    from ltga.errors import InputError

    also = [] if new_category is None else [f"new_category={new_category}"]
    try:
        changes = said_options([*(words or ()), *also])
        # Which sign may stand between thousands depends on the run's decimal sign.
        Preparation().for_another({name: value for name, value in changes.items() if name != "thousands"})
    except InputError as error:
        raise InputError(f"--{error}") from None
    return changes


Graph = Annotated[
    str | None,
    typer.Argument(
        help="A dataset's name (see `ltga datasets`), or your own graph: a folder with edges.csv and nodes.csv (or "
        ".parquet), or a .graphml, .gexf, .gml, .mtx, .edges, .npz or .safetensors file. "
        "Default: digits-noise, the embedded demo.",
        autocompletion=complete_dataset,
    ),
]
Methods = Annotated[
    str | None,
    typer.Option(
        help="Methods, comma-separated (see `ltga methods`). Default: gatv2,ltga-head,entmax-head.",
        autocompletion=complete_methods,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A setting of the protocol, for example epochs=500; repeatable. Wins over --config.",
        autocompletion=complete_setting,
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(help="TOML file with dataset, method, seeds and a table \\[protocol]. Loses to the command line."),
]
RunFolder = Annotated[Path, typer.Option(help="Folder where short ids are looked up.")]
Convention = Annotated[
    str | None,
    typer.Option(help="Your own graph: what a row of edges means: 'directed', 'undirected, once', 'both directions'."),
]
Prepare = Annotated[
    list[str] | None,
    typer.Option(
        "--prepare",
        metavar="OPTION=VALUE",
        help="Your own tables: how they become numbers, for example label=churned or scale=none; repeatable. "
        "`ltga check` says what is done.",
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        exists=True,
        file_okay=False,
        help="Folder to look for datasets in first; then come $LTGA_DATA and the user cache.",
    ),
]
CheckpointEvery = Annotated[
    str,
    typer.Option(
        metavar="TIME",
        help="How often a run keeps a checkpoint from which the same command goes on after a crash: 90s, 3min, 1h. "
        "With --engine ray, after every epoch.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(min=1, help="Train every run by so many processes, which divide its batches; on this machine, or:"),
]
EngineOption = Annotated[
    str | None,
    typer.Option("--engine", help="'ray': the workers are those of a Ray cluster (pip install 'ltga\\[ray]')."),
]
Address = Annotated[str | None, typer.Option(help="Ray: the cluster (default: one on this machine).")]
Device = Annotated[
    str,
    typer.Option(
        "--device", help="Where to compute: cpu, cuda (also ROCm's name), cuda:1, or auto: a GPU if there is one."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts instead.")]


def batches(console: Console, batch_size: int | None, fanout: str | None, full_batch: bool) -> MiniBatch | None:
    """What ``--batch-size`` and ``--fanout`` say, if they say something; told on ``console`` if one says both."""
    check_batches(batch_size, fanout, full_batch)
    if batch_size is None and fanout is None:
        return None
    from ltga.train.minibatch import MiniBatch

    usual = MiniBatch()
    if batch_size is None and os.environ.get("RANK", "0") == "0":  # one of several processes says it
        say(console, f"--fanout {fanout}: trained on batches of {usual.batch_size} nodes (--batch-size says another).")
    return MiniBatch(batch_size or usual.batch_size, usual.fanout if fanout is None else parse_fanout(fanout))
