"""Words such as NA in a column of labels: not known, or the name of a class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ltga.data.number_formats import NO_NUMBER
from ltga.data.preparation import Preparation
from ltga.data.problems import Problems

_WORDS = tuple(word for word in NO_NUMBER if word)
_PERHAPS = ("unknown", "missing", "nil", ".")  # which name a class as well


def is_no_label(text: str) -> bool:
    """Whether a cell is blank or a word that people write where something is not known.

    >>> is_no_label("N/A"), is_no_label("Norway")
    (True, False)
    """
    return text.lower() in NO_NUMBER


def without_missing_words(
    text: pa.Array, name: str, options: Preparation, where: str, problems: Problems,
    known: Sequence[str] | None = None, may_be_class: bool = True,
) -> pa.Array:  # fmt: skip
    """The cells, blank where such a word means that the label is not known; what is done goes to `problems`.

    `known` are the classes of an earlier graph; `may_be_class`: numbers, and columns of yes and no, have no such class.
    """
    if may_be_class and known is None:
        _note_other_words(text, name, where, problems)
    there = pc.is_in(pc.utf8_lower(text), value_set=pa.array(_WORDS, text.type))
    if known and options.missing_labels != "unknown":  # a part of a cell may have made a class of such a word
        there = pc.and_(there, pc.invert(pc.is_in(text, value_set=pa.array(known, text.type))))
    rows = np.flatnonzero(there.to_numpy(zero_copy_only=False))
    if not rows.size:
        return text
    words = [repr(word) for word in pc.unique(text.filter(there)).to_pylist()]
    what = f"{name} is {' or '.join(words[:3])}"
    if may_be_class and options.missing_labels == "class":
        if known is None:
            problems.add(where, what, rows, "taken as a class (missing_labels=class)", "note")
        return text
    if may_be_class and options.missing_labels == "error" and known is None:
        action = "choose missing_labels=unknown if it is not known there, missing_labels=class if that is a class"
        problems.add(where, what, rows, action, "error")
    else:
        option = f" (missing_labels={options.missing_labels})" if options.missing_labels == "unknown" else ""
        problems.add(where, what, rows, f"taken as not known{option}", "mended")
    return pc.if_else(there, "", text)


def _note_other_words(text: pa.Array, name: str, where: str, problems: Problems) -> None:
    there = pc.is_in(pc.utf8_lower(text), value_set=pa.array(_PERHAPS, text.type))
    rows = np.flatnonzero(there.to_numpy(zero_copy_only=False))
    if rows.size:
        action = (
            "taken as a class; if it means not known, leave the cells blank (missing_labels leaves this word alone)"
        )
        problems.add(where, f"{name} is {text[int(rows[0])].as_py()!r}", rows, action, "note")
