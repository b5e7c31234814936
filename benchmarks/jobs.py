"""Two runs at once against one: the suite's ``--jobs``, timed through the command, alternating, best of three.

python benchmarks/jobs.py    # about five minutes on two cores, with nothing else running
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = {
    "texas": ["headline", "--datasets", "texas", "--seeds", "8"],
    "cora": ["headline", "--datasets", "cora", "--methods", "gatv2,ltga-head,ltga-edge", "--seeds", "4"],
    "pubmed": ["headline", "--datasets", "pubmed", "--methods", "gatv2,ltga-head", "--seeds", "2"],
}
ROUNDS, JOBS = 3, (1, 2)


def seconds(arguments: list[str], jobs: int) -> float:
    """One run of the suite into a new store, its start included."""
    with tempfile.TemporaryDirectory() as store:
        command = [sys.executable, "-m", "ltga", "suite", "run", *arguments, "--jobs", str(jobs), "--store", store]
        begun = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - begun


if __name__ == "__main__":
    taken: dict[str, dict[int, list[float]]] = {name: {jobs: [] for jobs in JOBS} for name in RUNS}
    for _ in range(ROUNDS):
        for name, arguments in RUNS.items():
            for jobs in JOBS:
                taken[name][jobs].append(round(seconds(arguments, jobs), 2))
    lines = ["| runs | one at a time | two at once | faster |", "| --- | --- | --- | --- |"]
    for name, by_jobs in taken.items():
        one, two = (min(by_jobs[jobs]) for jobs in JOBS)
        lines.append(f"| `ltga suite run {' '.join(RUNS[name])}` | {one:.1f} s | {two:.1f} s | {one / two:.2f}× |")
    here = Path(__file__).parent
    (here / "jobs.json").write_text(json.dumps({"cores": os.cpu_count(), "seconds": taken}, indent=1) + "\n")
    (here / "jobs.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
