"""Cells that are no numbers as they are read, and would be under other options: which, so that a person can choose."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ltga.data.number_cells import reads
from ltga.data.number_formats import NO_NUMBER, SPACE, NumberFormat

# 1,5 and 12.345,60: meant as numbers, but nobody can say which; as categories they would be silently wrong.
_NEARLY_NUMBER = r"^[-+]?[0-9]+([.,' \x{a0}\x{202f}\x{2019}][0-9]+)+$"
_SAYS_ONE_OR_THE_OTHER = re.compile("[-+]?[1-9][0-9]{0,2},[0-9]{3}")
_FIGURES = f"[0-9](?:[0-9.,'’]|{SPACE})*"
_BEHIND = re.compile(rf"[-+]?(?:{_FIGURES})?[0-9.,]{SPACE}*([^\s0-9.,'’+-][^\s0-9]{{0,11}})")
_BEFORE = re.compile(rf"[-+]?{SPACE}*([^\s0-9.,'’+-][^\s0-9]{{0,4}}?)({SPACE}*)[-+]?{_FIGURES}")
# Which of many texts are worth a closer look: a number first or nearly so, and something else.
_MAY_HAVE_UNIT = r"^[-+]?(?:[0-9.,][^a-zA-Z]*[^0-9 ]+|[^0-9]{1,8}[0-9].*)$"
_CURRENCIES = {"AUD", "BRL", "CAD", "CHF", "CNY", "CZK", "DKK", "EUR", "GBP", "INR", "JPY", "NOK", "PLN", "SEK", "USD"}
_TIMES = {"k", "K", "M", "mn", "Mn", "mio", "Mio", "Mio.", "bn", "B", "Mrd", "Mrd.", "Tsd", "Tsd."}
_SIGNS = {"%", "‰", "°"}
_MANY = 5_000  # different cells that are looked at
_NEARLY_ALL = 0.9  # of the cells, if a word is to be their unit and not a part of names
_USUAL_FIRST = (
    (",", "."), (".", "none"), (".", ","), (".", "space"), (",", "space"), (".", "'"), (",", "'")
)  # fmt: skip


@dataclass(frozen=True)
class Look:
    """What cells look like, and the option to choose; '' if none makes one column of them."""

    what: str
    choose: str


def looks_like(text: pa.Array, form: NumberFormat) -> Look | None:
    """What most of the cells that are no numbers in a format are in another one, as an option.

    >>> looks_like(pa.array(["3910,79", "12,5"]), NumberFormat()).choose
    'decimal=,'
    >>> looks_like(pa.array(["1,234"]), NumberFormat()).choose
    'decimal=, if 1,234 is 1.234, thousands=, if it is 1234'
    >>> looks_like(pa.array(["€ 3.910"]), NumberFormat(units=("$",))).choose
    'units=$,€'
    >>> looks_like(pa.array(["€ 5", "$ 5"]), NumberFormat())
    Look(what="numbers with '€' and '$'", choose='')
    """
    cells = _different(text)
    left = [cell for cell, read in zip(cells, reads(pa.array(cells, pa.large_string()), form)) if not read]
    if not left:
        return None
    units = units_in(left)
    best, most = form, len(cells) - len(left)
    needed = most + len(left) / 2
    for candidate in _candidates(form, units):
        count = int(reads(pa.array(cells, pa.large_string()), candidate).sum())
        if count > most:
            best, most = candidate, count
    if best == form or most < needed:
        return None
    several = sum(unit in best.units and unit not in form.units for unit in units) > 1
    times = any(unit in _TIMES for unit in best.units)  # taken off, 30k would be less than 900
    what = _in_words(best, form) + (", which may stand for thousands or more; write them out" if times else "")
    return Look(what, "" if several or times else _choice(best, form, cells))


def _candidates(form: NumberFormat, units: tuple[str, ...]) -> Iterable[NumberFormat]:
    """Those that change less come first."""
    signs = [(form.decimal, form.thousands), *_USUAL_FIRST]
    for more in ((), units) if units else ((),):
        for decimal, thousands in signs:
            yield NumberFormat(decimal, thousands, (*form.units, *(unit for unit in more if unit not in form.units)))


def _in_words(best: NumberFormat, form: NumberFormat) -> str:
    said = []
    if best.decimal != form.decimal:
        said.append("a decimal comma" if best.decimal == "," else "a decimal point")
    elif best.thousands != form.thousands:
        sign = {"space": "a space", "'": "an apostrophe", ",": "a comma", ".": "a point"}.get(best.thousands, "nothing")
        said.append(f"{sign} between thousands")
    new = [repr(unit) for unit in best.units if unit not in form.units]
    said += [" and ".join(new)] if new else []
    return "numbers with " + " and ".join(said)


def _choice(best: NumberFormat, form: NumberFormat, cells: Sequence[str]) -> str:
    said = []
    if best.decimal != form.decimal:
        said.append(f"decimal={best.decimal}")
    if best.thousands != form.thousands and (best.decimal, best.thousands) not in ((",", "."), (".", "none")):
        said.append(f"thousands={best.thousands}")
    if best.units != form.units:
        said.append(f"units={','.join(best.units)}")
    other = replace(best, decimal=".", thousands=",")
    with_comma = [cell for cell in cells if "," in cell]
    if best.decimal == "," != form.decimal and with_comma:
        array = pa.array(cells, pa.large_string())
        if reads(array, other).sum() == reads(array, best).sum():
            example = _SAYS_ONE_OR_THE_OTHER.search(with_comma[0])
            shown = example.group() if example else with_comma[0]
            first = f"decimal=, if {shown} is {shown.replace(',', '.')}, thousands=, if it is {shown.replace(',', '')}"
            return " and ".join([first, *said[1:]])
    return " and ".join(said)


def nearly_numbers(text: pa.Array) -> np.ndarray:
    """Which cells `[R]` are numbers in some format, or have a sign of a unit, or the word that nearly all of them have.

    >>> nearly_numbers(pa.array(["1,5", "€ 5", "room 5", ""])).tolist()
    [True, True, False, False]
    >>> nearly_numbers(pa.array(["30 kg", "4kg"])).tolist(), nearly_numbers(pa.array(["1 a", "2 b"])).tolist()
    ([True, True], [False, False])
    """
    coded = text.dictionary_encode()
    words, codes = coded.dictionary, coded.indices.to_numpy(zero_copy_only=False)
    found = pc.match_substring_regex(words, _NEARLY_NUMBER).to_numpy(zero_copy_only=False).astype(bool)
    may_have_unit = np.flatnonzero(pc.match_substring_regex(words, _MAY_HAVE_UNIT).to_numpy(zero_copy_only=False))
    beside: list[str | None] = [None] * len(words)
    for at, word in zip(may_have_unit.tolist(), words.take(pa.array(may_have_unit)).to_pylist()):
        beside[at] = unit_of(word)
    counts = np.bincount(codes, minlength=len(words))
    no_number = pc.is_in(pc.utf8_lower(words), value_set=pa.array(NO_NUMBER, words.type))
    filled = int(counts[~no_number.to_numpy(zero_copy_only=False).astype(bool)].sum())
    share: Counter[str] = Counter()
    for unit, count in zip(beside, counts):
        if unit is not None:
            share[unit] += int(count)
    units = {unit for unit, count in share.items() if is_sign(unit) or count >= _NEARLY_ALL * filled}
    found |= np.array([unit in units for unit in beside], dtype=bool)
    return found[codes] if len(words) else np.zeros(len(text), dtype=bool)


def units_in(cells: Iterable[str]) -> tuple[str, ...]:
    """The units that stand beside numbers: signs, or one word that nearly all cells have.

    >>> units_in(["€ 5", "6 €", "7 $", "x"]), units_in(["5 kg", "6 kg"]), units_in(["5 a", "6 b"])
    (('€', '$'), ('kg',), ())
    """
    listed = list(cells)
    counts = Counter(unit for cell in listed if (unit := unit_of(cell)) is not None)
    return tuple(
        unit for unit, count in counts.most_common() if is_sign(unit) or count >= _NEARLY_ALL * max(len(listed), 1)
    )


def unit_of(cell: str) -> str | None:
    """The sign or word beside the number in a cell; a word before a number is rather part of a name.

    >>> [unit_of(cell) for cell in ("-5 €", "$5", "12%", "3 km/h", "EUR 1.5", "room 5", "C4", "5")]
    ['€', '$', '%', 'km/h', 'EUR', None, None, None]
    """
    behind = _BEHIND.fullmatch(cell)
    if behind:
        return behind.group(1) if is_sign(behind.group(1)) or behind.group(1)[0].isalpha() else None
    before = _BEFORE.fullmatch(cell)
    if before is None:
        return None
    unit, gap = before.groups()
    return unit if is_sign(unit) or (unit in _CURRENCIES and gap) else None


def is_sign(unit: str) -> bool:
    return unit in _SIGNS or any(unicodedata.category(letter) == "Sc" for letter in unit)


def _different(text: pa.Array) -> list[str]:
    cells = [cell for cell in pc.unique(text)[:_MANY].to_pylist() if cell]
    return [cell for cell in cells if cell.lower() not in NO_NUMBER]
