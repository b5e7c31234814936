"""Parser for CoNLL-U treebank text, as far as basic dependency trees need it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ltga.errors import DataError, InputError


@dataclass(frozen=True)
class Word:
    """A syntactic word: its form, universal tag, head (0: root, else the word number) and relation."""

    form: str
    upos: str
    head: int
    relation: str


def parse_conllu(text: str, where: str = "treebank") -> list[list[Word]]:
    """The sentences of a treebank; multiword ranges, empty nodes and comments are passed over.

    >>> sentence = parse_conllu("1\\tHi\\t_\\tINTJ\\t_\\t_\\t0\\troot\\t_\\t_\\n")[0]
    >>> sentence[0].form, sentence[0].relation
    ('Hi', 'root')
    """
    if not isinstance(text, str):
        raise InputError(f"text: expected the text of a treebank, got {type(text).__name__}")
    return list(_sentences(text, where))


def _sentences(text: str, where: str) -> Iterator[list[Word]]:
    words: list[Word] = []
    lines: list[int] = []
    # Not splitlines: it would also break at characters that may stand inside a word form.
    for number, raw in enumerate((text + "\n\n").split("\n"), start=1):
        line = raw.rstrip("\r")
        if line.startswith("#"):
            continue
        if not line.strip():
            if words:
                _check_heads(words, lines, where)
                yield words
                words, lines = [], []
            continue
        fields = line.split("\t")
        if len(fields) != 10:
            raise DataError(
                f"{where}: line {number}: expected 10 tab-separated fields, got {len(fields)}; is this CoNLL-U?"
            )
        if _is_extra(fields[0]):
            continue
        words.append(_word(fields, len(words) + 1, number, where))
        lines.append(number)


def _is_extra(identifier: str) -> bool:
    """Whether a line is a multiword token (3-4) or an empty node (3.1), which the tree does not count."""
    for mark in "-.":
        parts = identifier.split(mark)
        if len(parts) == 2 and all(part.isdecimal() for part in parts):
            return True
    return False


def _word(fields: list[str], expected: int, number: int, where: str) -> Word:
    identifier, form, upos, head, relation = fields[0], fields[1], fields[3], fields[6], fields[7]
    if identifier != str(expected):
        raise DataError(f"{where}: line {number}: expected word {expected}, got {identifier[:40]!r}")
    if not re.fullmatch(r"[0-9]{1,9}", head):
        raise DataError(f"{where}: line {number}: expected a head number, got {head[:40]!r}")
    if not form or relation.split(":")[0] in ("", "_"):
        raise DataError(f"{where}: line {number}: word {expected} has no form or no relation")
    return Word(form, upos, int(head), relation)


def _check_heads(words: list[Word], lines: list[int], where: str) -> None:
    for at, (word, line) in enumerate(zip(words, lines), start=1):
        if word.head > len(words) or word.head == at:
            raise DataError(
                f"{where}: line {line}: head {word.head} of word {at} is not another word of its sentence "
                f"of {len(words)}"
            )
