"""What can be told wrong from the words alone: said before torch is imported or a graph is read, which take seconds."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ltga.data.conventions import CONVENTIONS
from ltga.data.dataset_names import check_name, looks_like_a_path
from ltga.errors import DataError, InputError

_SECONDS = {"": 1, "s": 1, "sec": 1, "min": 60, "m": 60, "h": 3600}
_BYTES = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
_DEVICE = re.compile(r"auto|cpu(:0)?|cuda(:\d{1,3})?")


def check_graph(name: str, convention: str | None = None, prepared: bool = False) -> None:
    """Raise for a graph that is not there, a misspelt name, or options that it does not take."""
    check_name(name)
    if convention is not None and convention not in CONVENTIONS:
        raise InputError(f"--convention: got {convention!r}; use one of {', '.join(map(repr, CONVENTIONS))}")
    if looks_like_a_path(name):
        path = Path(name).expanduser()
        if not path.exists():
            raise DataError(f"{path}: no such file or folder; check the path")
    elif convention is not None:
        raise InputError("--convention: a known dataset has its own; give it only with the path of a graph")
    elif prepared:
        raise InputError("--prepare: a known dataset is prepared already; give it only with the path of tables")


def check_device(device: str) -> None:
    """Raise for what is no device; whether it is there is torch's to say."""
    if _DEVICE.fullmatch(device) is None:
        raise InputError(f"--device: expected 'auto', 'cpu', 'cuda' or one like 'cuda:1', got {device!r}")


def check_training(
    device: str, batch_size: int | None, fanout: str | None, full_batch: bool, out: Path, checkpoint_every: str = "3min"
) -> None:
    """Raise for what the options of training cannot mean."""
    check_device(device)
    check_batches(batch_size, fanout, full_batch)
    check_store(out)
    parse_seconds(checkpoint_every)


def check_store(folder: Path, option: str = "--out") -> None:
    """Raise if runs cannot be kept at ``folder``, because a file is there."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{option}: {folder} is a file; give a folder")


def parse_seconds(text: str, label: str = "--checkpoint-every") -> float:
    """Seconds from ``"90"``, ``"90s"``, ``"3min"`` or ``"1h"``.

    >>> parse_seconds("3min"), parse_seconds("0.5 h"), parse_seconds("90")
    (180.0, 1800.0, 90.0)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|sec|min|m|h|)\s*", text)
    if found is None:
        raise InputError(f"{label}: expected a time like 90s, 3min or 1h, got {text!r}")
    return float(found[1]) * _SECONDS[found[2]]


def parse_fanout(text: str) -> int | tuple[int, ...]:
    """``"10"`` or ``"15,10"``: the last layer's first; -1 for all neighbours.

    >>> parse_fanout("15,10"), parse_fanout("10")
    ((15, 10), 10)
    """
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--fanout: expected numbers like 10 or 15,10, got {text!r}") from None
    for number in numbers:
        if number < 1 and number != -1:
            raise InputError(f"--fanout: expected whole numbers from 1, or -1 for all neighbours, got {number}")
    return numbers[0] if len(numbers) == 1 else numbers


def check_batches(batch_size: int | None, fanout: str | None, full_batch: bool) -> None:
    """Raise for ``--fanout`` that has no numbers, and for both ways of training at once."""
    if full_batch and (batch_size is not None or fanout is not None):
        raise InputError("--full-batch: contradicts --batch-size and --fanout; give one of them")
    if fanout is not None:
        parse_fanout(fanout)


def check_hops(fanout: str | None, num_layers: int) -> None:
    """Raise for a ``--fanout`` of another number of layers than the network has."""
    hops = None if fanout is None else parse_fanout(fanout)
    if isinstance(hops, tuple) and len(hops) != num_layers:
        raise InputError(
            f"--fanout: has {len(hops)} numbers, but the network has {num_layers} layers; give one for each, or one "
            "for all"
        )


def labelled(function: Callable[..., Any], *arguments: Any) -> Any:
    """What is wrong with the space of a search is the fault of ``--search``."""
    try:
        return function(*arguments)
    except InputError as error:
        raise InputError(f"--{error}" if str(error).startswith("search:") else str(error)) from None


def check_search(words: Sequence[str], timeout: float | None) -> None:
    """Raise for what ``ltga tune`` is to try and cannot, and for no time to try it in."""
    from ltga.train.tuning.search_space import checked_wishes, parse_search

    if timeout is not None and not timeout > 0:
        raise InputError(f"--timeout: expected seconds above 0, got {timeout:g}")
    labelled(checked_wishes, labelled(parse_search, words))


def check_conversion(
    source: str, folder: Path, features: str, memory: str, convention: str | None, prepared: bool
) -> None:
    """Raise for what ``ltga convert`` cannot do, before hours of reading."""
    if source.partition(":")[0] != "power-law":
        check_graph(source, convention, prepared)
    if folder.exists():
        raise InputError(f"FOLDER: {folder} is there already; choose another name, or remove it")
    if features not in ("float32", "float16"):
        raise InputError(f"--features: got {features!r}; use float32 or float16")
    if (room := parse_size(memory)) < _BYTES["m"]:
        raise InputError(f"--memory: got {room} bytes; give at least one MiB")


def parse_size(text: str) -> int:
    """Bytes from a number with a unit.

    >>> parse_size("512M"), parse_size("1.5 GiB")
    (536870912, 1610612736)
    """
    match = re.fullmatch(r"\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([kmg]?)(?:i?b)?\s*", text.lower())
    if match is None:
        raise InputError(f"--memory: got {text!r}; give a size such as 512M or 2G")
    return int(float(match[1]) * _BYTES[match[2]])
