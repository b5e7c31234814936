"""The estimate of full-batch memory: constants as measured, and peaks of runs foretold that were not used for them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ltga.errors import InputError
from ltga.nn.methods import METHODS
from ltga.train import Protocol
from ltga.train.memory import CONSTANTS, TOLERANCE, computed_as, full_batch_bytes

ROOT = Path(__file__).parents[2]
MEASURED = json.loads((ROOT / "benchmarks" / "results" / "memory.json").read_text())["methods"]
SIZES = {"nodes": 40_000, "edges": 300_000, "features": 100, "hidden": 24, "heads": 4, "layers": 2, "classes": 5}


def test_constants_are_the_measured_ones() -> None:
    assert {computed_as(method, Protocol()) for method in MEASURED} == set(CONSTANTS)
    for method, found in MEASURED.items():
        assert CONSTANTS[computed_as(method, Protocol())] == pytest.approx(found["constants"], rel=0.01)


@pytest.mark.parametrize("method", MEASURED)
def test_recorded_peaks_are_met(method: str) -> None:
    for row in [*MEASURED[method]["fitted"], *MEASURED[method]["kept_back"]]:
        sizes = {key: value for key, value in row.items() if key not in ("bytes", "runs", "predicted")}
        kind = computed_as(method, Protocol())
        assert full_batch_bytes(**sizes, computed=kind) == pytest.approx(row["bytes"], rel=TOLERANCE[kind])


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peak memory is read from Linux's /proc")
@pytest.mark.parametrize(
    ("method", "changes"),
    [
        ("ltga-head", {}),
        pytest.param("ltga-edge", {}, marks=pytest.mark.slow),
        pytest.param("ltga-head", {"edges": 2_000_000, "heads": 8}, marks=pytest.mark.slow),
        pytest.param("gatv2", {"nodes": 10_000, "edges": 80_000, "layers": 3}, marks=pytest.mark.slow),
        pytest.param("entmax-1.5", {"hidden": 64}, marks=pytest.mark.slow),
        pytest.param("gatv2-edge-bias", {"layers": 3}, marks=pytest.mark.slow),
    ],
)
def test_a_run_of_another_size_peaks_where_it_was_said_to(method: str, changes: dict[str, int]) -> None:
    sizes = {**SIZES, **changes}
    given = json.dumps({**sizes, "method": method})
    command = [sys.executable, str(ROOT / "benchmarks" / "memory.py"), "child", given]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    kind = computed_as(method, Protocol())
    estimate = full_batch_bytes(**sizes, computed=kind)
    assert estimate == pytest.approx(json.loads(done.stdout)["bytes"], rel=TOLERANCE[kind])


def test_sizes_that_are_none() -> None:
    with pytest.raises(InputError, match="heads: expected a whole number from 1, got 0"):
        full_batch_bytes(**{**SIZES, "heads": 0})
    with pytest.raises(InputError, match="computed: got 'quickly'; use one of 'fused'"):
        full_batch_bytes(**SIZES, computed="quickly")
    assert full_batch_bytes(**{**SIZES, "edges": 0}) > 0


def test_every_method_is_of_a_known_kind() -> None:
    kinds = {method: computed_as(method, Protocol()) for method in METHODS}
    assert {method for method, kind in kinds.items() if kind is None} == {
        name for name, entry in METHODS.items() if entry.network not in ("ltga", "gat", "gatv2")
    }
    assert {method for method, kind in kinds.items() if kind == "messages"} == {"gat", "gatv2"}
    assert computed_as("gatv2", Protocol(init="paired")) == "fused"
    assert computed_as("ltga-edge", Protocol(backend="torch")) == "messages"
