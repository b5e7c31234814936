"""Settings that only some tasks have, beside the protocol that all have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ltga.errors import InputError, did_you_mean

DECODERS = ("dot", "mlp")
USED: Mapping[str, tuple[str, ...]] = {
    "node regression": ("log",),
    "multi-label nodes": (),
    "graph classification": ("batch_size", "readout"),
    "multi-label graphs": ("batch_size", "readout"),
    "graph regression": ("batch_size", "readout", "log"),
    "link prediction": ("negatives", "each", "decoder"),
    "typed link prediction": (),
}
"""Which settings a task looks at; any other is refused."""


@dataclass(frozen=True)
class TaskOptions:
    """What a task may be told.

    Args:
        log: learn the logarithm of a number (its errors are still reported in its units); if left out, where the number
            is never negative and its skewness on the training part is above 2.
        batch_size: graphs per gradient step.
        readout: how the nodes of a graph become one row, see :class:`ltga.nn.readout.GraphNetwork`.
        negatives: what stands against an edge, see :func:`ltga.data.split_links`.
        each: how many of them per edge in validation and test.
        decoder: ``"dot"`` or ``"mlp"``, see :class:`ltga.nn.decoders.LinkNetwork`.
    """

    log: bool | None = None
    batch_size: int = 32
    readout: str = "mean-max-sum"
    negatives: str = "two-hop"
    each: int = 20
    decoder: str = "dot"

    def __post_init__(self) -> None:
        from ltga.data.links import NEGATIVES  # now: a misspelt setting should not wait for torch
        from ltga.nn.readout import pools

        if self.log is not None and not isinstance(self.log, bool):
            raise InputError(f"log: expected True, False or nothing, got {self.log!r}")
        for name in ("batch_size", "each"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"{name}: expected a whole number from 1, got {value!r}")
        for name, known in (("negatives", NEGATIVES), ("decoder", DECODERS)):
            if getattr(self, name) not in known:
                raise InputError(f"{name}: got {getattr(self, name)!r}; use one of {', '.join(map(repr, known))}")
        pools(self.readout)

    @classmethod
    def of_record(cls, said: Mapping[str, Any] | None) -> TaskOptions:
        """The options of a stored run, which may be from before graphs were read in other ways than two.

        >>> TaskOptions.of_record({"batch_size": 8}).readout
        'mean-max'
        """
        return cls(**{"readout": "mean-max", **(said or {})})

    def of_task(self, task: str) -> dict[str, Any]:
        """What the configuration of a run says: the settings that the task looks at."""
        return {name: getattr(self, name) for name in USED[task]}


def as_options(given: TaskOptions | Mapping[str, Any] | None, task: str) -> TaskOptions:
    """Settings from what ``fit`` takes, all of which ``task`` must know.

    >>> as_options({"batch_size": 8}, "graph regression").batch_size
    8
    >>> as_options({"batch_size": 8}, "link prediction")
    Traceback (most recent call last):
    ...
    ltga.errors.InputError: options: link prediction has no setting 'batch_size'; it has negatives, each, decoder
    """
    if isinstance(given, TaskOptions):
        return given
    if given is not None and not isinstance(given, Mapping):
        raise InputError(f"options: expected a mapping, got {type(given).__name__}")
    known = USED[task]
    for name in given or ():
        if name not in known:
            all_names = [field.name for field in fields(TaskOptions)]
            it_has = f"it has {', '.join(known)}" if known else "it has none"
            hint = it_has if name in all_names else did_you_mean(str(name), known, it_has)
            raise InputError(f"options: {task} has no setting {name!r}; {hint}")
    return TaskOptions(**(given or {}))
