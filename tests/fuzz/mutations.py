"""Ways to spoil bytes, text and arrays, all decided by one random generator."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

NASTY_TEXT = [
    "", "0", "-1", "-0", "1.5", "4000000000", str(2**31), str(2**63 - 1), str(2**63), str(-(2**63) - 1), str(2**64),
    "9" * 5000, "1e400", "-1e39", "nan", "inf", "-inf", "None", "null", "true", "[1]", "{}", "[[[[", '"', "'", ",",
    "\t", "\n", "\r\n", "²", "٣", "１", "1_0", "0x10", "+7", " 7 ", "\x00", "\ufeff", "💥", "\x1b[31m",
    "a" * 3000, "train", "_",
]  # fmt: skip
NASTY_NUMBERS = [
    0,
    1,
    -1,
    2,
    7,
    255,
    256,
    2**15,
    2**31 - 1,
    2**31,
    2**32 - 1,
    4_000_000_000,
    2**40,
    2**62,
    2**63 - 1,
    -(2**63),
]
DTYPES = ["b1", "i1", "u1", "i2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "U3", "S3", "M8[s]", ">i4", ">f8"]


def spoil_bytes(content: bytes, rng: random.Random, other: bytes = b"") -> bytes:
    """One to four changes of any kind at any place."""
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at = rng.randrange(len(data) + 1)
        length = rng.choice([1, 2, 4, 8, 16, 64, 256])
        kind = rng.randrange(8)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif kind == 1 and data:
            data[at % len(data)] = rng.randrange(256)
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            del data[at : at + length]
        elif kind == 4:
            data[at:at] = data[at : at + length] * rng.choice([1, 2, 100])
        elif kind == 5:
            data[at:at] = rng.randbytes(length)
        elif kind == 6:
            number = rng.choice(NASTY_NUMBERS) & (2**64 - 1)
            width = rng.choice([2, 4, 8])
            data[at : at + width] = struct.pack(rng.choice("<>") + "Q", number)[:width]
        else:
            start = rng.randrange(len(other) + 1)
            data[at : at + length] = other[start : start + length]
    return bytes(data)


def spoil_text(text: str, rng: random.Random) -> str:
    """One to four words, lines or places replaced, lost or repeated."""
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        kind = rng.randrange(6)
        words = list(re.finditer(r"-?\d+(?:\.\d+)?|\w+", text))
        lines = text.split("\n")
        at = rng.randrange(len(lines))
        if kind <= 2 and words:
            word = rng.choice(words)
            text = text[: word.start()] + rng.choice(NASTY_TEXT) + text[word.end() :]
        elif kind == 3:
            del lines[at]
            text = "\n".join(lines)
        elif kind == 4:
            text = "\n".join([*lines[:at], lines[at], *lines[at:]])
        else:
            place = rng.randrange(len(text) + 1)
            text = text[:place] + rng.choice(NASTY_TEXT) + text[place + rng.choice([0, 1, 20]) :]
    return text


def spoil_json(value: Any, rng: random.Random) -> Any:
    """A value somewhere inside replaced by one of another kind."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(sorted(value))
        changed = {name: part for name, part in value.items() if name != key or rng.random() < 0.9}
        return {name: spoil_json(part, rng) if name == key else part for name, part in changed.items()}
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        return [spoil_json(part, rng) if place == at else part for place, part in enumerate(value)]
    odd: list[Callable[[], Any]] = [
        lambda: rng.choice(NASTY_NUMBERS), lambda: rng.choice(NASTY_TEXT), lambda: None, list, dict, lambda: True,
        lambda: -1.5, lambda: [value, value], lambda: {"a": value}, lambda: 10**30, lambda: [[]] * 3,
        lambda: float("nan"),
    ]  # fmt: skip
    return rng.choice(odd)()


def spoil_array(array: np.ndarray, rng: random.Random) -> np.ndarray:
    """Another type, another shape, or a nasty value somewhere."""
    with np.errstate(all="ignore"):
        for _ in range(rng.choice([1, 1, 2])):
            kind = rng.randrange(7)
            if kind <= 1 and array.size and array.dtype.kind in "iuf":
                array = array.copy()
                number = rng.choice([*NASTY_NUMBERS, float("nan"), float("inf"), -1e39, 0.5])
                wide = array.astype(np.float64 if isinstance(number, float) or array.dtype.kind == "f" else np.int64)
                wide.flat[rng.randrange(array.size)] = number
                array = wide
            elif kind == 2:
                try:
                    array = array.astype(rng.choice(DTYPES))
                except (TypeError, ValueError):
                    continue
            elif kind == 3:
                array = array.reshape(rng.choice([(-1,), (1, *array.shape), (*array.shape, 1), array.shape[::-1]]))
            elif kind == 4 and array.ndim:
                array = array[: rng.randrange(array.shape[0] + 1)]
            elif kind == 5:
                array = np.concatenate([np.atleast_1d(array)] * 2)
            else:
                array = array.T
    return array
