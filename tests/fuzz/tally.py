"""How many cases a fuzzer tried and how many went wrong: printed, and kept for docs/reliability.md if asked for.

LTGA_FUZZ_COUNTS=results/fuzz.json pytest -m slow tests/fuzz
"""

from __future__ import annotations

import json
import os
from pathlib import Path


def report(family: str, cases: int, faults: int) -> None:
    print(f"\n{family}: {cases} cases, {faults} faults")
    kept = os.environ.get("LTGA_FUZZ_COUNTS")
    if kept:
        path = Path(kept)
        counts = json.loads(path.read_text()) if path.exists() else {}
        counts[family] = {"cases": cases, "faults": faults}
        path.write_text(json.dumps(dict(sorted(counts.items())), indent=1) + "\n")
