"""Cells that say numbers in a person's own format, as Python writes them."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ltga.data.number_formats import SPACE, NumberFormat

_GROUPS = {",": ",", ".": "[.]", "'": "['\u2019]", "space": SPACE}
_DECIMAL = {",": ",", ".": "[.]"}
_NOT_A_NUMBER = "no number"  # stands for a cell that only another format would read


@dataclass(frozen=True)
class Written:
    """Cells as Python writes numbers; the place of each cell's unit in the format (-1: none), and which had thousands.

    What is no number in the format is left as it is, unless another format would read it: then it is none.
    """

    text: pa.Array
    unit: np.ndarray
    grouped: np.ndarray


def as_python_writes(text: pa.Array, form: NumberFormat) -> Written:
    """
    >>> as_python_writes(pa.array(["1.234,5", "3,5 €", "1.5"]), NumberFormat(",", ".", ("€",))).text.to_pylist()
    ['1234.5', '3.5', 'no number']
    """
    unit = np.full(len(text), -1)
    for at, name in enumerate(form.units):
        bare = _without_unit(text, name)
        # Of a cell that is no number without the unit, it is no unit.
        had = _true(pc.not_equal(bare, text)) & _true(pc.match_substring_regex(bare, _whole(_number(form))))
        unit[had] = at
        text = pc.if_else(pa.array(had), bare, text)
    grouped = np.zeros(len(text), dtype=bool)
    if form.thousands != "none":
        sign = _GROUPS[form.thousands]
        grouped = _true(pc.match_substring_regex(text, _whole(_grouped(form))))
        text = pc.if_else(pa.array(grouped), pc.replace_substring_regex(text, sign, ""), text)
    if form.decimal == ",":
        reads = pc.match_substring_regex(text, _whole(_ungrouped(form)))
        misread = pc.match_substring_regex(text, "[0-9][.,]|[.,][0-9]")
        text = pc.if_else(
            reads, pc.replace_substring(text, ",", "."), pc.if_else(misread, pa.scalar(_NOT_A_NUMBER, text.type), text)
        )
    return Written(text, unit, grouped)


def reads(text: pa.Array, form: NumberFormat) -> np.ndarray:
    """Which cells are a number in a format, unit and all."""
    return _true(pc.match_substring_regex(as_python_writes(text, form).text, _whole(_ungrouped(NumberFormat()))))


def _true(mask: pa.Array) -> np.ndarray:
    return mask.to_numpy(zero_copy_only=False).astype(bool)  # type: ignore[no-any-return]


def _whole(pattern: str) -> str:
    return f"^(?:{pattern})$"


def _ungrouped(form: NumberFormat) -> str:
    decimal = _DECIMAL[form.decimal]
    return f"[-+]?(?:[0-9]+(?:{decimal}[0-9]*)?|{decimal}[0-9]+)(?:[eE][-+]?[0-9]+)?"


def _grouped(form: NumberFormat) -> str:
    """Thousands stand in groups of three, and the first of them does not begin with 0."""
    return f"[-+]?[1-9][0-9]{{0,2}}(?:{_GROUPS[form.thousands]}[0-9]{{3}})+(?:{_DECIMAL[form.decimal]}[0-9]*)?"


def _number(form: NumberFormat) -> str:
    return _ungrouped(form) if form.thousands == "none" else f"{_ungrouped(form)}|{_grouped(form)}"


def _without_unit(text: pa.Array, unit: str) -> pa.Array:
    """€ 5, €5, -€5, 5 € and 5€ are 5; a word before a number has a space behind it, as C4 is a name."""
    quoted, gap = re.escape(unit), f"{SPACE}+" if unit[-1].isalpha() else f"{SPACE}*"
    text = pc.replace_substring_regex(text, f"^(.*[0-9.,]){SPACE}*{quoted}$", r"\1")
    return pc.replace_substring_regex(text, f"^([-+]?){SPACE}*{quoted}{gap}([-+]?[0-9.,].*)$", r"\1\2")
