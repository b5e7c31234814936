"""Two runs at once against one: the suite's ``--jobs``, timed through the command, alternating, best of two.

python benchmarks/jobs.py    # about two minutes on two cores, with nothing else running
"""

import subprocess
import sys
import tempfile
import time

RUNS = {
    "texas": ["headline", "--datasets", "texas", "--methods", "gatv2,ltga-head,ltga-edge", "--seeds", "5"],
    "cora": ["headline", "--datasets", "cora", "--methods", "gatv2,ltga-head", "--seeds", "4"],
}
ROUNDS, JOBS = 2, (1, 2)


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
    print("\n".join(lines))
