"""The estimate of full-batch memory: its constants are the measured ones, and it foretells peaks of runs not yet made."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ltga.errors import InputError
from ltga.train.memory import PER_EDGE, PER_HEAD, TOLERANCE, full_batch_bytes

ROOT = Path(__file__).parents[2]
MEASURED = json.loads((ROOT / "benchmarks" / "results" / "memory.json").read_text())["methods"]
SIZES = {"nodes": 40_000, "edges": 300_000, "features": 100, "hidden": 24, "heads": 4, "layers": 2, "classes": 5}


def test_constants_are_the_measured_ones() -> None:
    for constants, method in ((PER_HEAD, "ltga-head"), (PER_EDGE, "ltga-edge")):
        assert constants == pytest.approx(MEASURED[method]["constants"], rel=0.01)


@pytest.mark.parametrize("method", ["ltga-head", "ltga-edge"])
def test_recorded_peaks_are_met(method: str) -> None:
    for row in [*MEASURED[method]["fitted"], *MEASURED[method]["kept_back"]]:
        sizes = {key: value for key, value in row.items() if key not in ("bytes", "predicted")}
        estimate = full_batch_bytes(**sizes, edge_gate=method == "ltga-edge")
        assert estimate == pytest.approx(row["bytes"], rel=TOLERANCE)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peak memory is read from Linux's /proc")
@pytest.mark.parametrize(
    ("method", "changes"),
    [
        ("ltga-head", {}),
        pytest.param("ltga-edge", {}, marks=pytest.mark.slow),
        pytest.param("ltga-head", {"edges": 2_000_000, "heads": 8}, marks=pytest.mark.slow),
        pytest.param("gatv2", {"hidden": 64, "layers": 3}, marks=pytest.mark.slow),
    ],
)
def test_a_run_of_another_size_peaks_where_it_was_said_to(method: str, changes: dict[str, int]) -> None:
    sizes = {**SIZES, **changes}
    given = json.dumps({**sizes, "method": method})
    command = [sys.executable, str(ROOT / "benchmarks" / "memory.py"), "child", given]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    estimate = full_batch_bytes(**sizes, edge_gate=method == "ltga-edge")
    assert estimate == pytest.approx(json.loads(done.stdout)["bytes"], rel=TOLERANCE)


def test_sizes_that_are_none() -> None:
    with pytest.raises(InputError, match="heads: expected a whole number from 1, got 0"):
        full_batch_bytes(**{**SIZES, "heads": 0})
    assert full_batch_bytes(**{**SIZES, "edges": 0}) > 0
