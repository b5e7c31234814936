"""A graph that is never loaded: convert, train an epoch from disk, evaluate a sample; time and peak memory of each.

    python benchmarks/scale.py                         # 10M nodes, 100M edges, 64 float16 features: some 5 GB of disk
    python benchmarks/scale.py --nodes 100000 --edges 1000000 --out /tmp/small.json

Every step is a process of its own, so that its peak is its own. The folder is removed in the end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LIMIT = 8 * 1024**3
SEED = 1


def train(folder: str, model_file: str, fanout: list[int], batch_size: int) -> dict[str, Any]:
    """One epoch over the training nodes with the library's sampler and network."""
    import torch

    from ltga.data import NeighborSampler, open_graph_folder

    graph = open_graph_folder(folder)
    model = network(graph, len(fanout))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    sampler = NeighborSampler(graph, fanout, graph.split(0)[0], batch_size, seed=SEED)
    losses, nodes, edges, waited = [], 0, 0, 0.0
    start = ended = time.perf_counter()
    for batch in sampler:
        waited += time.perf_counter() - ended
        optimizer.zero_grad()
        out = model(batch.x, batch.edge_index)[: batch.batch_size]
        loss = torch.nn.functional.cross_entropy(out, batch.y[: batch.batch_size])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        nodes, edges = nodes + batch.num_nodes, edges + batch.num_edges
        ended = time.perf_counter()
    torch.save(model.state_dict(), model_file)
    tenth = max(len(losses) // 10, 1)
    return {
        "epoch_seconds": time.perf_counter() - start, "waited_for_batches_seconds": waited, "batches": len(losses),
        "seeds": len(sampler.nodes), "nodes": nodes, "edges": edges,
        "first_loss": sum(losses[:tenth]) / tenth, "last_loss": sum(losses[-tenth:]) / tenth,
    }  # fmt: skip


def evaluate(folder: str, model_file: str, layers: int, count: int, batch_size: int) -> dict[str, Any]:
    """Exact predictions, with all neighbours, of some test nodes."""
    import torch

    from ltga.data import NeighborSampler, open_graph_folder

    graph = open_graph_folder(folder)
    model = network(graph, layers)
    model.load_state_dict(torch.load(model_file, weights_only=True))
    model.eval()
    test = graph.split(0)[2].nonzero().squeeze(1)
    chosen = test[torch.randperm(len(test), generator=torch.Generator().manual_seed(SEED))[:count]]
    right = nodes = edges = most = 0
    start = time.perf_counter()
    with torch.no_grad():
        for batch in NeighborSampler(graph, [-1] * layers, chosen, batch_size):
            predicted = model(batch.x, batch.edge_index)[: batch.batch_size].argmax(1)
            right += int((predicted == batch.y[: batch.batch_size]).sum())
            nodes, edges, most = nodes + batch.num_nodes, edges + batch.num_edges, max(most, batch.num_nodes)
    return {
        "seconds": time.perf_counter() - start, "test_nodes": len(chosen), "accuracy": right / len(chosen),
        "by_chance": 1 / graph.num_classes, "nodes": nodes, "edges": edges, "largest_batch_nodes": most,
    }  # fmt: skip


def network(graph: Any, layers: int) -> Any:
    import torch

    from ltga.nn import LTGA

    torch.manual_seed(SEED)
    return LTGA(graph.num_features, graph.num_classes, hidden_channels=8, heads=4, num_layers=layers, index="head")


def in_process(command: list[str]) -> dict[str, Any]:
    """Run a command; its seconds, its peak resident memory, and the JSON it prints, if any."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    printed = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {child.returncode}")
    found = json.loads(printed) if printed.startswith("{") else {"said": printed.strip()}
    return {"process_seconds": time.perf_counter() - start, "peak_bytes": usage.ru_maxrss * 1024, **found}


def main() -> None:
    if len(sys.argv) == 3 and sys.argv[1] == "step":
        step = json.loads(sys.argv[2])
        print(json.dumps({"train": train, "evaluate": evaluate}[step.pop("step")](**step)))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=10_000_000)
    parser.add_argument("--edges", type=int, default=100_100_000, help="a few are drawn twice and become one")
    parser.add_argument("--memory", default="1G", help="of `ltga convert`")
    parser.add_argument("--test-nodes", type=int, default=1024)
    parser.add_argument("--folder", type=Path, default=None, help="where to work; default: a temporary folder")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "scale.json")
    given = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="ltga-scale-", dir=given.folder))
    graph, model_file = str(work / "graph"), str(work / "model.pt")
    source = f"power-law:num_nodes={given.nodes},num_edges={given.edges},num_features=64,train=0.01"
    steps: dict[str, list[str]] = {
        "convert": ["-m", "ltga", "convert", source, graph, "--features", "float16", "--memory", given.memory],
        "check": ["-m", "ltga", "convert", graph, "--check"],
        "train": _step("train", folder=graph, model_file=model_file, fanout=[10, 5], batch_size=1024),
        "command": [
            "-m",
            "ltga",
            "train",
            f"{graph}/",
            "--method",
            "ltga-head",
            "--seeds",
            "1",
            "--batch-size",
            "1024",
            "--fanout",
            "10,5",
            "--set",
            "epochs=1",
            "--set",
            "hidden_channels=8",
            "--set",
            "heads=4",
            "--out",
            str(work / "runs"),
            "--json",
            "--quiet",
        ],
        "evaluate": _step(
            "evaluate", folder=graph, model_file=model_file, layers=2, count=given.test_nodes, batch_size=32
        ),
    }
    results: dict[str, Any] = {
        "settings": {"nodes": given.nodes, "edges": given.edges, "memory": given.memory, "features": "64 float16"},
        "machine": {"cores": os.cpu_count(), "load_average_before": os.getloadavg()},
    }
    try:
        for name, command in steps.items():
            results[name] = in_process([sys.executable, *command])
            print(name, json.dumps(results[name]), flush=True)
        results["folder_bytes"] = sum(file.stat().st_size for file in Path(graph).iterdir())
    finally:
        shutil.rmtree(work, ignore_errors=True)
    results["peak_bytes"] = max(results[name]["peak_bytes"] for name in steps)
    results["under_8_GiB"] = results["peak_bytes"] < LIMIT
    given.out.parent.mkdir(exist_ok=True)
    given.out.write_text(json.dumps(results, indent=1) + "\n")


def _step(name: str, **arguments: Any) -> list[str]:
    return [__file__, "step", json.dumps({"step": name, **arguments})]


if __name__ == "__main__":
    main()
