"""Small graphs, the real ones, and the independent reference run."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ltga.data import Dataset, csbm, load_dataset

# What it registers with torch stays in the process, so that only test_devices.py starts it, in one of its own.
collect_ignore = [] if "LTGA_STAND_IN" in os.environ else ["on_a_stand_in.py"]

TESTS = Path(__file__).resolve().parents[1]
QUICK = {"hidden_channels": 4, "heads": 2}


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    """Runs are compared to the digit, so the order of sums must not depend on the machine's load."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def small() -> Dataset:
    return csbm(num_nodes=120, seed=3)


def _real(name: str) -> Dataset:
    folder = Path(os.environ.get("LTGA_DATA") or TESTS.parents[1] / "shared" / "data")
    if not (folder / f"{name}.npz").exists():
        pytest.skip(f"no datasets in {folder}; set LTGA_DATA")
    return load_dataset(name, folder)


@pytest.fixture(scope="session")
def real() -> Callable[[str], Dataset]:
    """The datasets of the paper by name."""
    return _real


@pytest.fixture(scope="session")
def texas() -> Dataset:
    return _real("texas")


@pytest.fixture(scope="session")
def wisconsin() -> Dataset:
    return _real("wisconsin")


@pytest.fixture(scope="session")
def paper_run() -> Callable[..., tuple[float, int, int]]:
    spec = importlib.util.spec_from_file_location("paper_run", TESTS / "oracles" / "paper_run.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.paper_run  # type: ignore[no-any-return]


@pytest.fixture
def quick() -> dict[str, Any]:
    """A network small enough for tests."""
    return dict(QUICK)
