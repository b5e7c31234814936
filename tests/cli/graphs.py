"""Tiny graphs on disk, and settings under which they train in no time."""

from __future__ import annotations

from pathlib import Path

import numpy as np

QUICK = ("--set", "epochs=2", "--set", "hidden_channels=2", "--set", "heads=2", "--set", "backend=torch")


def tiny_graph(nodes: int = 24, **changes: object) -> dict[str, np.ndarray]:
    """A ring of nodes in the npz schema; ``None`` leaves an array out."""
    numbers = np.arange(nodes)
    part = numbers % 4
    arrays: dict[str, object] = {
        "node_features": np.random.default_rng(0).normal(size=(nodes, 3)).astype(np.float32),
        "node_labels": numbers // 2 % 2,
        "edges": np.stack([numbers, (numbers + 1) % nodes], axis=1),
        "train_masks": part < 2,
        "val_masks": part == 2,
        "test_masks": part == 3,
        **changes,
    }
    return {key: np.asarray(value) for key, value in arrays.items() if value is not None}


def write_graph(path: Path, **changes: object) -> Path:
    with path.open("wb") as stream:
        np.savez(stream, **tiny_graph(**changes))  # type: ignore[arg-type]
    return path


def write_tables(folder: Path, edges: str | None = None, nodes: str | None = None) -> Path:
    """A folder with edges.csv and nodes.csv."""
    folder.mkdir(exist_ok=True)
    ring = "source,target\n" + "".join(f"n{i},n{(i + 1) % 24}\n" for i in range(24))
    rows = "".join(f"n{i},{'ab'[i // 2 % 2]},{0.1 * i},{i % 5}\n" for i in range(24))
    (folder / "edges.csv").write_text(ring if edges is None else edges)
    (folder / "nodes.csv").write_text("id,label,x1,x2\n" + rows if nodes is None else nodes)
    return folder


def write_collection(folder: Path, column: str = "label") -> Path:
    """A folder with forty paths of four nodes each; ``column`` decides what is to be predicted of them."""
    folder.mkdir(exist_ok=True)
    graphs = "".join(f"g{i},{'ab'[i % 2] if column == 'label' else i * 1.5}\n" for i in range(40))
    nodes = "".join(f"g{i},{at},{i % 2 + 0.1 * at}\n" for i in range(40) for at in range(4))
    edges = "".join(f"g{i},{at},{at + 1}\n" for i in range(40) for at in range(3))
    (folder / "graphs.csv").write_text(f"graph_id,{column}\n" + graphs)
    (folder / "nodes.csv").write_text("graph_id,id,size\n" + nodes)
    (folder / "edges.csv").write_text("graph_id,source,target\n" + edges)
    return folder
