"""How numbers are written: signs of fractions and of thousands, and units beside them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Thousands = Literal["auto", "none", ",", ".", "'", "space"]
# What people and programs (#N/A: Excel, \N: databases) write where a number is not known, in small letters; only looked
# for in columns that are numbers otherwise.
NO_NUMBER = (
    "", "na", "n/a", "n.a.", "nan", "null", "none", "<na>", "nat", "-", "--", "?", "#n/a", "#na", "\\n"
)  # fmt: skip
SPACE = "[ \u00a0\u202f]"  # the latter two keep a number on one line
_LONGEST_UNIT = 20


@dataclass(frozen=True)
class NumberFormat:
    """What the options of a `Preparation` say of numbers; `thousands` is never "auto" here."""

    decimal: str = "."
    thousands: str = "none"
    units: tuple[str, ...] = ()


def number_format(decimal: str, thousands: str, units: Iterable[str]) -> NumberFormat:
    """The format that options name: points stand between thousands where a comma is the decimal sign.

    >>> number_format(",", "auto", ()).thousands, number_format(".", "auto", ()).thousands
    ('.', 'none')
    """
    if thousands == "auto":
        thousands = "." if decimal == "," else "none"
    return NumberFormat(decimal, thousands, tuple(units))


def check_units(units: Iterable[str]) -> None:
    """Raise ValueError for what cannot stand beside a number and be told from it."""
    for unit in units:
        if not unit or len(unit) > _LONGEST_UNIT or re.search(r"[0-9\s]", unit) or unit in tuple("+-.,'"):
            raise ValueError("a unit is a sign or a word without digits and spaces, for example € or kg")
