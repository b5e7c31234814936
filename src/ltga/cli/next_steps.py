"""After training: the run to go on with, by its short id, as the commands that take it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from ltga.nn.methods import Method
from ltga.train.find_run import SHORT


def run_to_look_at(methods: Sequence[Method], attends: Sequence[bool]) -> int | None:
    """The position of the last method that learns q, else of the last with attention; ``None`` if none has any.

    >>> from ltga.nn.methods import find_method
    >>> run_to_look_at([find_method("ltga-head"), find_method("gatv2")], [True, True])
    0
    """
    looks = [at for at, attention in enumerate(attends) if attention]
    learned = [at for at in looks if methods[at].learns_index]
    return (learned or looks)[-1] if looks else None


def next_steps(method: Method, run: str, store: Path, attends: bool, links: bool = False) -> str:
    """One line: how to predict with a run and look into it.

    >>> from ltga.nn.methods import find_method
    >>> next_steps(find_method("gcn"), "1c556dcb" * 8, Path("runs"), attends=False)
    'Next: ltga predict 1c556dcb (GCN, first seed); ltga runs lists every run.'
    """
    place = [] if store == Path("runs") else ["--runs", str(store)]
    commands = []
    if method.network != "linkx":  # it has a weight for every node it was trained on
        commands.append(["predict", run[:SHORT], *(["--pairs", "pairs.csv"] if links else []), *place])
    if attends:
        commands.append(["explain", run[:SHORT], *place])
    said = ", ".join(shlex.join(["ltga", *words]) for words in commands)
    others = shlex.join(["ltga", "runs", *place[1:]])
    return f"Next: {said} ({method.label}, first seed); {others} lists every run." if said else f"Next: {others}."
