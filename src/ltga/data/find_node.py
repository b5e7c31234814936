"""From what a person calls a node to its number."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ltga.errors import InputError, did_you_mean

_LOOKED_AT = 5000


def position_of(node: str | int, ids: Sequence[str] | None, count: int, name: str) -> int:
    """The number of a node, from its id, or from the number itself where ids are no numbers.

    >>> position_of("b", ["a", "b"], 2, "mine"), position_of("0", ["a", "b"], 2, "mine")
    (1, 0)
    """
    if ids is not None and str(node) in ids:
        return ids.index(str(node))
    numbered = ids is not None and any(re.fullmatch("[0-9]+", name) for name in ids[:_LOOKED_AT])
    if not numbered and re.fullmatch("[0-9]{1,18}", str(node)) and int(node) < count:
        return int(node)
    numbers = f"numbers go from 0 to {count - 1}"
    if ids is None:
        raise InputError(f"node: got {str(node)[:40]}, but {name} has {count} nodes; {numbers}")
    hint = did_you_mean(
        str(node), ids[:_LOOKED_AT], f"ids are for example {ids[0]!r}" + ("" if numbered else f"; {numbers}")
    )
    raise InputError(f"node: {name} has no node {str(node)[:40]!r}; {hint}")
