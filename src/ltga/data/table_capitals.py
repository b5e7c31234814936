"""Names of classes or categories that may be one, but for their capitals or the way a number is written."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal

from ltga.data.problems import Problems


def note_capitals(names: Iterable[str], place: str, taken_as: str, problems: Problems) -> None:
    """Add a note about names that differ in capitals only.

    >>> found = Problems()
    >>> note_capitals(["no", "Yes", "YES"], "nodes.csv, smokes", "categories", found)
    >>> print(found)
    nodes.csv, smokes: 'Yes' and 'YES' differ in capitals only; taken as 2 categories; mend them if they are one
    """
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(name.casefold(), []).append(name)
    for same in alike.values():
        if len(same) > 1:
            what = f"{' and '.join(repr(name[:40]) for name in same[:3])} differ in capitals only"
            problems.add(place, what, len(same), f"taken as {len(same)} {taken_as}; mend them if they are one", "note")


def note_same_numbers(names: Iterable[str], place: str, taken_as: str, problems: Problems) -> None:
    """Add a note about names that are the same number, written otherwise.

    >>> found = Problems()
    >>> note_same_numbers(["01", "1", "1.0", "2", "a"], "nodes.csv, label", "classes", found)
    >>> print(found)
    nodes.csv, label: '01' and '1' and '1.0' are one number; taken as 3 classes; write it in one way if they are one
    """
    alike: dict[Decimal, list[str]] = {}
    for name in names:
        if re.fullmatch(r"[+-]?[0-9]+(\.[0-9]*)?", name, re.ASCII):
            alike.setdefault(Decimal(name), []).append(name)
    several = [same for same in alike.values() if len(same) > 1]
    if several:
        more = f", and so are {len(several) - 1:,} more" if len(several) > 1 else ""
        what = f"{' and '.join(repr(name[:40]) for name in several[0][:3])} are one number{more}"
        count = sum(map(len, several))
        problems.add(place, what, count, f"taken as {count} {taken_as}; write it in one way if they are one", "note")
