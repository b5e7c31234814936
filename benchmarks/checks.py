"""What it costs to look, on every call, whether remembered edges and features are still the same.

    python benchmarks/checks.py            # writes benchmarks/checks.json

Run it with nothing else at work. Reading is bound by memory: the bytes of the edges (16 each) and, where a sparse or
repeated form of the features is in use, of the features.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from ltga.bench.works import WORKS, layers, step
from ltga.kernels import compact_form
from ltga.kernels.runtime.fingerprint import fingerprint

ROUNDS = 7


def best(task: Callable[[], object]) -> float:
    """Seconds of the quickest of several rounds."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(name: str) -> dict[str, float]:
    """Seconds of one layer's forward and backward pass, and of the two checks within it."""
    work = WORKS[name]
    x, edge_index = work.load(None)
    (layer,) = layers(x.size(1), work.channels, work.heads, ("ltga-head",)).values()
    for _ in range(3):
        step(layer, x, edge_index, None)
    looked_at = compact_form(x) is not None
    return {
        "layer": best(lambda: step(layer, x, edge_index, None)),
        "edges": best(lambda: fingerprint(edge_index)),
        "features": best(lambda: fingerprint(x)) if looked_at else 0.0,
    }


if __name__ == "__main__":
    found = {name: measure(name) for name in WORKS}
    Path(__file__).with_name("checks.json").write_text(json.dumps(found, indent=1) + "\n")
    for name, seconds in found.items():
        print(name, {what: f"{1e3 * value:.2f} ms" for what, value in seconds.items()})
