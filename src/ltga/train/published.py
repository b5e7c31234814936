"""Settings of the deep backbones as their authors published them, in one place (docs/backbones.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ltga.errors import InputError
from ltga.train.protocol import Protocol

_COMMON: Mapping[str, Any] = {"metric": "auto", "init": "paired", "warmup": 0, "patience": 10_000, "index_form": "log"}

# The commands for GAT in medium_graph/run_gnn.sh of LUOyk1999/tunedGNN, commit 70e9af7: batch norm, one head, loops,
# every epoch is trained and the best kept by the validation metric. For Roman-Empire they put a linear map before the
# first block; here the first block narrows the features. Tolokers and actor have no command: minesweeper's and
# squirrel's stand in.
_COLUMNS = ("hidden_channels", "num_layers", "lr", "weight_decay", "dropout", "epochs")
_CLASSIC: Mapping[str, tuple[float, ...]] = {
    "minesweeper": (64, 15, 0.01, 0.0, 0.2, 2000),
    "tolokers": (64, 15, 0.01, 0.0, 0.2, 2000),
    "roman-empire": (512, 10, 0.001, 0.0, 0.3, 2500),
    "squirrel-filtered": (512, 7, 0.005, 5e-4, 0.5, 500),
    "chameleon-filtered": (256, 2, 0.01, 1e-3, 0.7, 200),
    "actor": (512, 7, 0.005, 5e-4, 0.5, 500),
}

# The defaults of train.py of yandex-research/heterophilous-graphs, commit a431395, alike for every graph; the authors
# choose 1 to 5 blocks by validation, here the most.
_SEPARATED: Mapping[str, Any] = {**dict(zip(_COLUMNS, (512, 5, 3e-5, 0.0, 0.2, 1000))), "heads": 8, "norm": "layer"}


def published(backbone: str, dataset: str) -> Protocol:
    """The authors' settings of ``"classic"`` or ``"separated"`` for a dataset, as a protocol.

    >>> published("classic", "minesweeper").num_layers
    15
    """
    if backbone == "separated":
        return Protocol(**{**_COMMON, **_SEPARATED})
    key = "roman-empire" if dataset == "roman-words" else dataset
    if backbone != "classic" or key not in _CLASSIC:
        raise InputError(
            f"backbone: nothing is published for {backbone!r} on {dataset!r}; known: {', '.join(_CLASSIC)}"
        )
    return Protocol(**{**_COMMON, "heads": 1, **dict(zip(_COLUMNS, _CLASSIC[key]))})
