"""What runs in a fresh process for each measurement; prints one JSON object.

Usage: python -m ltga.bench.child '{"task": "times", ...}'
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch

from ltga.bench.works import WORKS, layers, random_graph, step
from ltga.data import Dataset


def times(work: str, names: list[str], data: str | None, repeats: int | None) -> dict[str, Any]:
    """Interleaved rounds over all layers; every single time is returned."""
    job = WORKS[work]
    x, edge_index = job.load(data)
    competing = layers(x.size(1), job.channels, job.heads, tuple(names))
    upstream, rounds = None, {name: [] for name in names}  # type: ignore[var-annotated]
    for round_number in range((repeats or job.repeats) + 1):
        for name, layer in competing.items():
            start = time.perf_counter()
            upstream = step(layer, x, edge_index, upstream)
            if round_number > 0:  # the first round compiles, sorts edges and fills caches
                rounds[name].append(time.perf_counter() - start)
    return {"seconds": rounds}


def memory(work: str, name: str, data: str | None) -> dict[str, Any]:
    """Peak resident memory of one forward and backward pass above what was there before."""
    job = WORKS[work]
    warm = random_graph(64, 256, 8)
    for layer in layers(8, 4, 2, (name,)).values():  # load compiled code before measuring
        step(layer, *warm, None)
    x, edge_index = job.load(data)
    (layer,) = layers(x.size(1), job.channels, job.heads, (name,)).values()
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    step(layer, x, edge_index, None)
    return {"extra_bytes": _status("VmHWM") - before}


def training(dataset: str, epochs: int, data: str | None) -> dict[str, Any]:
    """Median seconds of an epoch (step and evaluation) of whole runs under one protocol; rounds alternate.

    The protocol as one writes it with PyG's GATv2Conv, against LTGA-Head with either initialisation.
    """
    from ltga.bench.plain import train_plainly
    from ltga.data import load_dataset
    from ltga.train import Protocol, fit

    graph = load_dataset(dataset, data)

    def ours(init: str) -> float:
        protocol = {"epochs": epochs, "patience": epochs, "warmup": 0, "init": init}
        return float(fit(graph, "ltga-head", 1, protocol=protocol).record["timing"]["median_epoch_seconds"])

    runs: dict[str, Callable[[], float]] = {
        "pyg-gatv2": lambda: median(train_plainly(graph, Protocol(), epochs)),
        "ltga-head": lambda: ours("paired"),
        "ltga-head-paper": lambda: ours("paper"),
    }
    rounds: dict[str, list[float]] = {name: [] for name in runs}
    for attempt in range(3):
        for name, run in runs.items():
            seconds = run()
            if attempt > 0:  # the first round compiles
                rounds[name].append(seconds)
    return {"seconds": rounds, "reach": _reach(graph)}


def _reach(graph: Dataset) -> dict[str, float]:
    """The share of a full pass's rows that two layers need for the training and for the validation nodes."""
    from ltga.nn.reach import Reach

    parts = dict(zip(("train", "val"), graph.split(0)))
    data = graph.data
    return {
        name: Reach.of(mask.nonzero().squeeze(1), data.x, data.edge_index, None, num_layers=2).share
        for name, mask in parts.items()
    }


def million(nodes: int, edges: int) -> dict[str, Any]:
    """The big one: does it finish, and in how much memory?"""
    x, edge_index = random_graph(nodes, edges, 64)
    (layer,) = layers(64, 16, 8, ("ltga-head",)).values()
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        step(layer, x, edge_index, None)
        seconds.append(time.perf_counter() - start)
    return {"seconds": seconds, "peak_bytes": _status("VmHWM")}


def zeros(share: float) -> dict[str, Any]:
    """Aggregation alone: softmax weights against weights of which a share is exactly zero."""
    from ltga.kernels import aggregate, neighbourhoods
    from ltga.kernels.runtime import buffers

    features, edge_index = random_graph(50_000, 800_000, 512)
    x = buffers.empty((50_000, 8, 64), torch.float32)  # where a layer's projection would have put it
    x.copy_(features.view(-1, 8, 64))
    graph = neighbourhoods(edge_index, len(x), len(x), True)
    generator = torch.Generator().manual_seed(1)
    dense = torch.rand(graph.num_edges, 8, generator=generator)
    sparse = dense * (torch.rand(dense.shape, generator=generator) >= share)
    whole = dense * (torch.rand(len(dense), 1, generator=generator) >= share)
    rounds: dict[str, list[float]] = {"dense": [], "zeros": [], "zeros-all-heads": []}
    for _ in range(6):
        for name, weights in (("dense", dense), ("zeros", sparse), ("zeros-all-heads", whole)):
            rounds[name].append(_timed(partial(aggregate, weights, x, graph.ptr, graph.col)))
    return {"seconds": rounds}


def scaling(edges: list[int]) -> dict[str, Any]:
    """Seconds per forward and backward pass as the graph grows, 8 edges per node, 64 -> 8x16."""
    results = {}
    for count in edges:
        x, edge_index = random_graph(max(count // 8, 16), count, 64)
        competing = layers(64, 16, 8, ("pyg-gatv2", "ltga-head") if count <= 1_000_000 else ("ltga-head",))
        seconds: dict[str, float] = {}
        for name, layer in competing.items():
            rounds = [_timed(partial(step, layer, x, edge_index, None)) for _ in range(4)]
            seconds[name] = min(rounds[1:])
        results[str(count)] = seconds
    return {"seconds": results}


def bandwidth() -> dict[str, Any]:
    """How near the edge kernels come to the memory bandwidth measured in the same process."""
    from ltga.kernels import attend, neighbourhoods
    from ltga.kernels.operators.attention import attend_backward

    big = torch.randn(64_000_000)
    target = torch.empty_like(big)
    copied = min(_timed(lambda: target.copy_(big)) for _ in range(6))
    stream = 2 * big.numel() * 4 / copied
    nodes, heads, channels = 169_000, 8, 32
    _, edge_index = random_graph(nodes, 1_340_000, 1)
    graph = neighbourhoods(edge_index, nodes, nodes, True)
    source, other = torch.randn(nodes, heads, channels), torch.randn(nodes, heads, channels)
    rows = torch.randint(0, nodes, (graph.num_edges,))
    gathered = min(_timed(lambda: source.view(nodes, -1).index_select(0, rows)) for _ in range(4))
    att, q = torch.randn(heads, channels), torch.ones(1, heads)
    out, weights, logits, raw = attend(
        source,
        other,
        att,
        None,
        None,
        None,
        None,
        None,
        q,
        None,
        None,
        *graph.structure,
        1,
        1,
        0.2,
        1.0,
        False,
    )
    forward = min(
        _timed(
            lambda: attend(
                source, other, att, None, None, None, None, None, q, None, None, *graph.structure,
                1, 1, 0.2, 1.0, False,
            )
        )
        for _ in range(4)
    )  # fmt: skip
    backward = min(
        _timed(
            lambda: attend_backward(
                out, None, source, other, att, None, None, None, q, None, *graph.structure, raw, logits, weights,
                1, 1, 0.2, 1.0, True, False, True, False,
            )
        )
        for _ in range(4)
    )  # fmt: skip
    row = heads * channels * 4
    per_edge, per_node = graph.num_edges * row, nodes * row
    # Least traffic: forward gathers every source row once; backward gathers sources, then targets and
    # upstream gradients; nodes are read and written once per sweep.
    least = {"forward": per_edge + 2 * per_node, "backward": 3 * per_edge + 5 * per_node}
    return {
        "copy_bytes_per_second": stream,
        "gather_bytes_per_second": 2 * per_edge / gathered,
        "forward": {"seconds": forward, "least_bytes": least["forward"]},
        "backward": {"seconds": backward, "least_bytes": least["backward"]},
    }


def _timed(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"{field} not found in /proc/self/status")


TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    task.__name__: task for task in (times, memory, training, million, zeros, scaling, bandwidth)
}

if __name__ == "__main__":
    request = json.loads(sys.argv[1])
    print(json.dumps(TASKS[request.pop("task")](**request)))
