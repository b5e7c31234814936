"""Peak memory of full-batch training by size, measured, and the constants of `ltga.train.memory` fitted to it.

    python benchmarks/memory.py                        # some five minutes; writes the file in benchmarks/results
    python benchmarks/memory.py gatv2                  # one method, the others stay as they are
    python benchmarks/memory.py child '{"nodes": 20000, ...}'

Every size is a process of its own: `ltga.fit` for two epochs on a random graph, peak resident memory above what was
there before. Constants are those, not negative, with the least squares of relative errors.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
REPEATS = 2
SMALL = {"nodes": 20_000, "edges": 200_000, "features": 64, "hidden": 16, "heads": 8, "layers": 2, "classes": 8}
FITTED: list[dict[str, int]] = [
    SMALL,
    {**SMALL, "edges": 1_000_000},
    {**SMALL, "nodes": 80_000},
    {**SMALL, "features": 512},
    {**SMALL, "hidden": 64},
    {**SMALL, "heads": 2, "edges": 1_000_000},
    {**SMALL, "layers": 4},
    {**SMALL, "nodes": 100_000, "edges": 500_000, "hidden": 32, "heads": 4},
    {**SMALL, "classes": 40, "nodes": 60_000},
]
KEPT_BACK: list[dict[str, int]] = [
    {**SMALL, "nodes": 50_000, "edges": 800_000, "features": 128, "heads": 4, "hidden": 32, "layers": 3},
    {**SMALL, "nodes": 120_000, "edges": 600_000, "features": 32, "hidden": 8, "heads": 8},
]
# Where every edge has a message of its own, a quarter of the graph needs as much.
METHODS = {"ltga-head": 1, "ltga-edge": 1, "gatv2": 4}
FORMS = {"ltga-head": "fused", "ltga-edge": "edge gate", "gatv2": "messages"}


def peak(
    nodes: int, edges: int, features: int, hidden: int, heads: int, layers: int, classes: int, method: str
) -> dict[str, Any]:
    """Bytes above the graph itself that two epochs need at once."""
    import torch
    from torch_geometric.data import Data

    from ltga import fit
    from ltga.data import csbm, dataset_from_data

    protocol = {"epochs": 2, "patience": 2, "warmup": 0, "hidden_channels": 4, "heads": 2, "num_layers": 2}
    fit(csbm(num_nodes=60), method, protocol=protocol)  # loads and compiles what is needed
    torch.manual_seed(0)
    data = Data(
        x=torch.randn(nodes, features),
        edge_index=torch.randint(0, nodes, (2, edges)),
        y=torch.arange(nodes) % classes,
    )
    dataset = dataset_from_data(data)
    del data
    protocol |= {"hidden_channels": hidden, "heads": heads, "num_layers": layers}
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    fit(dataset, method, protocol=protocol)
    return {"bytes": _status("VmHWM") - before}


def _status(field: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def measured(size: dict[str, int], method: str) -> dict[str, Any]:
    """The largest peak of several runs: one may need a quarter less if memory happens to be freed earlier."""
    command = [sys.executable, __file__, "child", json.dumps({**size, "method": method})]
    runs = []
    for _ in range(REPEATS):
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        runs.append(int(json.loads(done.stdout)["bytes"]))
    return {**size, "bytes": max(runs), "runs": runs}


def main(methods: list[str]) -> None:
    from scipy.optimize import nnls

    from ltga.train.memory import CONSTANTS, terms

    file = HERE / "results" / "memory.json"
    results: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"methods": {}}
    for method in methods:
        share = METHODS[method]
        fitted, tried = (
            [{**size, "nodes": size["nodes"] // share, "edges": size["edges"] // share} for size in sizes]
            for sizes in (FITTED, KEPT_BACK)
        )
        rows = [measured(size, method) for size in fitted]
        kept_back = [measured(size, method) for size in tried]
        names = list(CONSTANTS[FORMS[method]])
        counts = [[terms(**size)[name] for name in names] for size in fitted + tried]
        design = np.array(counts[: len(fitted)], dtype=float)
        found = np.array([row["bytes"] for row in rows], dtype=float)
        constants, _ = nnls(design / found[:, None], np.ones(len(found)))  # in relative errors
        for count, row in zip(counts, rows + kept_back):
            row["predicted"] = int(constants @ count)
            print(method, {key: row[key] for key in row}, f"{row['predicted'] / row['bytes']:.2f}", flush=True)
        results["methods"][method] = {
            "constants": dict(zip(names, constants.tolist())), "fitted": rows, "kept_back": kept_back,
        }  # fmt: skip
    file.write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps({method: found["constants"] for method, found in results["methods"].items()}, indent=1))


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        print(json.dumps(peak(**json.loads(sys.argv[2]))))
    else:
        main(sys.argv[1:] or list(METHODS))
