"""Where the real data lies, and small graphs in the npz schema."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of the real datasets; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("LTGA_DATA") or REPOSITORY.parent / "shared" / "data")
    if not (folder / "manifest.json").exists():
        pytest.skip(f"no datasets in {folder}; set LTGA_DATA")
    return folder


@pytest.fixture
def isolated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with no datasets: no LTGA_DATA, an empty user cache (returned)."""
    monkeypatch.delenv("LTGA_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / "cache" / name)
    return tmp_path / "cache" / "ltga" / "data"


@pytest.fixture
def platonov_arrays() -> dict[str, np.ndarray]:
    """A graph of 12 nodes as a Platonov file holds it."""
    rng = np.random.default_rng(7)
    masks = np.zeros((3, 2, 12), dtype=bool)
    for split in range(2):
        for part, nodes in enumerate(np.split(rng.permutation(12), [6, 9])):
            masks[part, split, nodes] = True
    return {
        "node_features": rng.standard_normal((12, 4)).astype(np.float32),
        "node_labels": np.arange(12, dtype=np.int64) % 3,
        "edges": np.array([[5, 0], [1, 2], [0, 3], [11, 4], [2, 7]], dtype=np.int64),
        "train_masks": masks[0],
        "val_masks": masks[1],
        "test_masks": masks[2],
    }


@pytest.fixture
def write_npz(tmp_path: Path) -> Callable[..., Path]:
    """Writes arrays to `tmp_path / name`, compressed as the published files are."""

    def write(arrays: dict[str, Any], name: str = "graph.npz") -> Path:
        path = tmp_path / name
        np.savez_compressed(path, **arrays)
        return path

    return write
