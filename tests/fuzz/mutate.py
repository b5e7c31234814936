"""Random damage to JSON values and to bytes, the same for the same seed."""

from __future__ import annotations

import json
import random
from typing import Any

ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 0.0, -0.5, 1.5, 1e308, 10**30, 10**400, "", "x", "NaN", "\ud800", "\x00", [], {}, [[]],
    [None], {"": {}}, float("nan"), float("inf"), 2**63, "0" * 64,
)  # fmt: skip


def places(value: Any, limit: int = 4000) -> list[tuple[Any, Any]]:
    """All (container, key) pairs inside a value."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting and len(found) < limit:
        inside = waiting.pop()
        keys = list(inside) if isinstance(inside, dict) else range(len(inside)) if isinstance(inside, list) else ()
        for key in keys:
            found.append((inside, key))
            waiting.append(inside[key])
    return found


def deep(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


def mutated_json(text: bytes, rng: random.Random) -> bytes:
    """JSON with one to three values removed, replaced, copied elsewhere, or nested without end."""
    value = json.loads(text)
    tail = b""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        found = places(value)
        if not found:
            break
        # Half of the time near the top, where there are few places among many numbers.
        top = [place for place in found if place[0] is value] if rng.random() < 0.5 else found
        container, key = rng.choice(top or found)
        what = rng.randrange(6)
        if what == 0:
            del container[key]
        elif what == 1:
            container[key] = rng.choice(ODD)
        elif what == 2:
            other, name = rng.choice(found)
            if isinstance(other, dict | list) and (name in other if isinstance(other, dict) else name < len(other)):
                container[key] = json.loads(json.dumps(other[name]))
        elif what == 3 and isinstance(container, dict):
            container[rng.choice(("x", "id", "config", "metrics", "schema", ""))] = rng.choice(ODD)
        elif what == 4 and isinstance(container[key], int | float):
            container[key] = container[key] * rng.choice((-1, 2, 1.000001, 1e300))
        else:
            tail = deep(rng.choice((10, 500, 50_000)))
    made = json.dumps(value).encode()
    return made[:-1] + b',"deep":' + tail + b"}" if tail and made.endswith(b"}") else made


def mutated_bytes(content: bytes, rng: random.Random) -> bytes:
    """Bytes flipped, cut, doubled, or replaced."""
    damaged = bytearray(content)
    what = rng.randrange(6)
    if what <= 2 and damaged:
        for _ in range(rng.choice((1, 1, 2, 8))):
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    elif what == 3:
        del damaged[rng.randrange(len(damaged) + 1) :]
    elif what == 4:
        start = rng.randrange(len(damaged) + 1)
        damaged[start:start] = damaged[start : start + rng.randrange(200)]
    else:
        return rng.choice((b"", b"null", deep(100_000), b"{" * 100_000, b"\xff\xfe", rng.randbytes(200)))
    return bytes(damaged)
