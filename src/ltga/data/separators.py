"""What stands between the columns of a table."""

from __future__ import annotations

import re

_TOLD = re.compile(r'"?sep=([,;|\t])"?[,;|\t]*\r?\n', re.IGNORECASE)


def separator_in(text: str) -> tuple[int, str | None]:
    """Where the table begins, and the sign between its columns: as told, else a comma or what stands in its place.

    A first line `sep=;`, which is for Excel, says so and is none of the table's.

    >>> separator_in("sep=;\\na;b,c"), separator_in("a;b\\n1,5;2"), separator_in("a")
    ((6, ';'), (0, ';'), (0, None))
    """
    told = _TOLD.match(text)
    if told is not None:
        return told.end(), told.group(1)
    first = re.split("[\r\n]", text, maxsplit=1)[0]
    return 0, next((sign for sign in (",", ";", "\t") if sign in first), None)
