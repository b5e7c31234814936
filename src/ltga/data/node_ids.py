"""From the names of nodes in a table to their numbers, without keeping the names."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

# As Python writes whole numbers that fit 64 bits; "07" is another name than "7".
_WHOLE = "^(0|-?[1-9][0-9]{0,17})$"
_KEYS = ("ltga-node-names1", "ltga-node-names2")


class NodeIds:
    """Names, block by block, and then where each stands.

    Whole numbers are kept as they are, 8 bytes each (none if they are 0, 1, 2, ...), other names as two hashes of 64
    bits under different keys: two names of one graph that agree in both are not to be met.

    >>> ids = NodeIds()
    >>> ids.add(pa.array(["b", "a"]))
    >>> ids.finish(), ids.positions(pa.array(["a", "c"])).tolist()
    (None, [1, -1])
    """

    def __init__(self) -> None:
        self._whole: list[np.ndarray] | None = []
        self._first: list[np.ndarray] = []
        self._second: list[np.ndarray] = []
        self._count = 0

    def add(self, names: pa.Array) -> None:
        """The names of the next nodes, as text."""
        if self._whole is not None and pc.all(pc.match_substring_regex(names, _WHOLE)).as_py() is not False:
            self._whole.append(pc.cast(names, pa.int64()).to_numpy(zero_copy_only=False))
            self._count += len(names)
            return
        if self._whole is not None:  # the first name that is no whole number: what is there becomes text too
            before, self._whole = self._whole, None
            for numbers in before:
                self._add_hashes(pc.cast(pa.array(numbers), pa.string()))
        self._add_hashes(names)
        self._count += len(names)

    def _add_hashes(self, names: pa.Array) -> None:
        first, second = _hashes(names)
        self._first.append(first)
        self._second.append(second)

    def finish(self) -> tuple[int, int] | None:
        """Call after the last name; positions of a name that is there twice, if there is one."""
        if self._whole is not None:
            keys = np.concatenate(self._whole) if self._whole else np.zeros(0, np.int64)
            self._identity = bool((keys == np.arange(len(keys))).all())
            check = keys
            self._whole = []
        else:
            keys, check = np.concatenate(self._first), np.concatenate(self._second)
            self._identity = False
            self._first, self._second = [], []
        if self._identity:
            return None
        self._order = np.argsort(keys, kind="stable")
        self._keys, self._check = keys[self._order], check[self._order]
        equal = np.flatnonzero(self._keys[1:] == self._keys[:-1])
        if not equal.size:
            return None
        twice = equal[0]
        return int(self._order[twice]), int(self._order[twice + 1])

    def positions(self, names: pa.Array) -> np.ndarray:
        """``[m]`` where names stand, -1 where nowhere."""
        if self._whole is not None:
            known = pc.fill_null(pc.match_substring_regex(names, _WHOLE), False)
            numbers = pc.cast(pc.if_else(known, names, "-1"), pa.int64()).to_numpy(zero_copy_only=False)
            usable = known.to_numpy(zero_copy_only=False)
            if self._identity:
                return np.where(usable & (numbers >= 0) & (numbers < self._count), numbers, -1)
            keys = check = numbers
        else:
            keys, check = _hashes(names)
            usable = np.ones(len(keys), bool)
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        found = usable & (self._keys[at] == keys) & (self._check[at] == check)
        return np.where(found, self._order[at], -1)


def _hashes(names: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    values = names.to_numpy(zero_copy_only=False)
    first, second = (pd.util.hash_array(values, hash_key=key, categorize=False) for key in _KEYS)
    return first, second
