"""Thousands of spoiled files: each gives a valid dataset or one line of error, in bounded time and memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz import tally

RUNNER = Path(__file__).with_name("run_readers.py")
FORMATS = {
    "npz", "csv", "parquet", "safetensors", "planetoid", "geom-gcn", "conllu", "classifier", "graphml", "gexf", "gml",
    "edge list",
}  # fmt: skip


def fuzz(cases: int, seed: int, folder: Path) -> None:
    finished = subprocess.run(
        [sys.executable, str(RUNNER), str(cases), str(seed), str(folder)],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}, capture_output=True, text=True,
        timeout=3000,
    )  # fmt: skip
    at = (folder / "at").read_text() if (folder / "at").exists() else "the valid files"
    assert finished.returncode == 0, f"the reader's process ended at {at}: {finished.stderr[-3000:]}"
    report = json.loads(finished.stdout.splitlines()[-1])
    faults = report["faults"]
    tally.report("readers", report["cases"], len(faults))
    for name, counts in report["counts"].items():
        print(f"  {name}: {counts['valid']} valid, {counts['refused']} refused, {counts['fault']} faults")
    assert set(report["counts"]) == FORMATS
    assert not faults, "\n".join(f"{f['format']}, seed {f['seed']}, case {f['case']}: {f['why']}" for f in faults[:5])
    for name, counts in report["counts"].items():  # a fuzzer that only ever hears no, or yes, tests little
        assert counts["refused"] > 0, name
    assert sum(counts["valid"] for counts in report["counts"].values()) > 0


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured through /proc")
def test_some_spoiled_files(tmp_path: Path) -> None:
    fuzz(240, 0, tmp_path / "run")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured through /proc")
def test_many_spoiled_files(tmp_path: Path) -> None:
    fuzz(20_000, 1, tmp_path / "run")
