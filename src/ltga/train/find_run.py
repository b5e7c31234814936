"""From what a person types to a stored run: the path of its record, or the first digits of its id."""

from __future__ import annotations

import re
from pathlib import Path

from ltga.errors import InputError

SHORT = 8  # digits that lists show; enough to tell a million runs apart


def check_folder(folder: Path) -> None:
    """Raise unless ``folder`` is one."""
    if not folder.is_dir():
        raise InputError(f"folder: there is no folder {folder}; runs are kept where `ltga train --out` said")


def is_short_id(text: str) -> bool:
    """Whether ``text`` can be the first digits of a run's id.

    >>> is_short_id("1c556dcb"), is_short_id("results")
    (True, False)
    """
    return re.fullmatch("[0-9a-f]{1,64}", text) is not None


def find_run(run: str | Path, folder: str | Path = "runs") -> Path:
    """The path of a run's record.

    Args:
        run: a path, or the first digits of an id (or of a file name) in ``folder``; ``"old-runs/1c55"`` looks in the
            folder that it names.
        folder: where runs are kept.

    >>> find_run("3f", "of-nobody")
    Traceback (most recent call last):
    ...
    ltga.errors.InputError: run: no run in of-nobody begins with '3f'; `ltga runs of-nobody` lists them
    """
    path = Path(str(run))  # an id of decimal digits alone is easily typed as a number
    if path.is_dir():
        raise InputError(f"run: {run} is a folder; give a record in it, or the first digits of its id")
    if path.exists() or path.suffix:
        return path
    if len(path.parts) > 1:
        if not path.parent.is_dir():
            return path
        folder = path.parent
    found = sorted(Path(folder).glob(f"{path.name}*.json")) if path.name.isalnum() else []
    if not found:
        raise InputError(f"run: no run in {folder} begins with {path.name!r}; `ltga runs {folder}` lists them")
    if len(found) > 1:
        several = ", ".join(one.stem[: SHORT + 4] for one in found[:3])
        many = f"{len(found)} runs in {folder} begin with {path.name!r} ({several} ...)"
        raise InputError(f"run: {many}; give more digits")
    return found[0]


def record_of(run: Path, folder: Path) -> Path:
    """The record meant by RUN: a path, with or without ``.json``, or a folder with a single record."""
    if run.is_dir():
        records = sorted(run.glob("*.json"))
        if len(records) == 1:
            return records[0]
        example = f", for example {records[0]}" if records else ""
        raise InputError(f"RUN: {run} is a folder with {len(records)} records; give the path of one{example}")
    beside = run.with_name(f"{run.name}.json")
    return beside if not run.exists() and beside.exists() else find_run(run, folder)
