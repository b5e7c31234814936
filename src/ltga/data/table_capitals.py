"""Names of classes or categories that are one but for their capitals."""

from __future__ import annotations

from collections.abc import Iterable

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
