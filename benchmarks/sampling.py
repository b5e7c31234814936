"""Sampled edges per second and the time of training batches, against the sampler in plain torch and torch-sparse's.

    python benchmarks/sampling.py                      # 1M nodes, 20M edges, fan-out 15,10,5; a few minutes
    python benchmarks/sampling.py --nodes 50000 --edges 1000000 --batches 3 --out /tmp/small.json

All ratios are from one run with interleaved rounds. Nothing else may run meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from plain_sampler import PlainSampler
from torch_geometric.data import Data

from ltga.data import NeighborSampler
from ltga.data.power_law import PowerLaw
from ltga.nn import LTGA

HERE = Path(__file__).parent
BATCH_SIZE = 1024
FEATURES = 64


def graph(nodes: int, edges: int) -> Data:
    """A power-law graph in memory, its links in both directions."""
    blocks = list(PowerLaw(num_nodes=nodes, num_edges=edges).edges())
    source, target = (np.concatenate([getattr(block, end) for block in blocks]) for end in ("source", "target"))
    edge_index = torch.from_numpy(np.stack([np.concatenate([source, target]), np.concatenate([target, source])]))
    return Data(edge_index=edge_index, num_nodes=nodes)


def torch_sparse_epoch(data: Data, fanout: list[int], seeds: torch.Tensor) -> Callable[[int], Iterator[int]] | None:
    """Edges of every batch of PyG's NeighborLoader, if torch-sparse is here for it."""
    try:
        import torch_sparse  # noqa: F401
    except (ImportError, OSError):
        return None
    from torch_geometric.loader import NeighborLoader

    loader = NeighborLoader(data, fanout, seeds, batch_size=BATCH_SIZE, shuffle=True)
    return lambda number: (batch.edge_index.size(1) for batch in loader)


def edges_per_second(epoch: Callable[[int], Iterator[int]], number: int) -> dict[str, float]:
    start = time.perf_counter()
    counts = list(epoch(number))
    seconds = time.perf_counter() - start
    return {"edges": sum(counts), "batches": len(counts), "seconds": seconds}


def limits(data: Data) -> dict[str, Any]:
    """What the memory allows one thread.

    A sampled edge reads its source, its number and its source's place, each from another cache line of 64 bytes, and
    writes four numbers of 8 bytes, which are read first. `gathers`: reads of 4 bytes at random from an array of the
    sources' size, of which an edge needs three.
    """
    block = np.ones(32 * 1024**2)
    copy = np.empty_like(block)
    source = np.ones(data.num_edges, np.int32)
    at = np.random.default_rng(0).integers(0, len(source), 4_000_000)

    def best(work: Callable[[], Any]) -> float:
        seconds = []
        for _ in range(5):
            start = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - start)
        return min(seconds)

    bandwidth = 3 * block.nbytes / best(lambda: np.copyto(copy, block))  # a written line is read before
    gathers = len(at) / best(lambda: np.take(source, at))
    bytes_per_edge = 3 * 64 + 4 * 8 * 2
    return {
        "bytes_per_second": bandwidth,
        "bytes_per_edge": bytes_per_edge,
        "bandwidth_edges_per_second": bandwidth / bytes_per_edge,
        "gathers_per_second": gathers,
        "gather_edges_per_second": gathers / 3,
    }


def training(data: Data, fanout: list[int], seeds: torch.Tensor, batches: int) -> dict[str, list[float]]:
    """Seconds per batch of sampling, gathering features and a step of LTGA, interleaved."""
    data = Data(edge_index=data.edge_index, x=torch.randn(data.num_nodes, FEATURES), num_nodes=data.num_nodes)
    labels = torch.randint(0, 8, (data.num_nodes,))
    model = LTGA(FEATURES, 8, hidden_channels=8, heads=4, num_layers=len(fanout), index="head")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    chosen = seeds[: batches * BATCH_SIZE]
    plain = PlainSampler(data, fanout, chosen, BATCH_SIZE)
    ours = NeighborSampler(data, fanout, chosen, BATCH_SIZE)

    def gathered(epoch: int) -> Iterator[tuple[Any, torch.Tensor]]:
        for sample in plain.epoch(epoch):
            yield sample, data.x[sample.nodes]

    def step(sample: Any, x: torch.Tensor) -> None:
        optimizer.zero_grad()
        logits = model(x, sample.edge_index)[: sample.num_seeds]
        torch.nn.functional.cross_entropy(logits, labels[sample.nodes[: sample.num_seeds]]).backward()
        optimizer.step()

    epochs = {
        "plain": gathered,
        "ours": lambda epoch: ours.prepared(epoch, lambda sample: (sample, ours.batch(sample).x)),
    }
    seconds: dict[str, list[float]] = {name: [] for name in epochs}
    for epoch in range(2):
        for name, batch in epochs.items():
            start = time.perf_counter()
            for sample, x in batch(epoch):
                step(sample, x)
            if epoch:  # the first compiles
                seconds[name].append((time.perf_counter() - start) / batches)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=20_000_000)
    parser.add_argument("--fanout", default="15,10,5")
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "sampling.json")
    given = parser.parse_args()
    fanout = [int(part) for part in given.fanout.split(",")]
    data = graph(given.nodes, given.edges)
    seeds = torch.randperm(given.nodes, generator=torch.Generator().manual_seed(1))[: given.batches * BATCH_SIZE]
    start = time.perf_counter()
    samplers = {
        f"ours, {threads} threads": NeighborSampler(data, fanout, seeds, BATCH_SIZE, threads=threads)
        for threads in (0, 1, 2)
    }
    build = (time.perf_counter() - start) / 3
    plain = PlainSampler(data, fanout, seeds, BATCH_SIZE)
    competing: dict[str, Callable[[int], Iterator[int]]] = {"plain torch": lambda number: _edges(plain, number)}
    for name, sampler in samplers.items():
        competing[name] = lambda number, sampler=sampler: _edges(sampler, number)  # type: ignore[misc]
    peer = torch_sparse_epoch(data, fanout, seeds)
    if peer is not None:
        competing["NeighborLoader on torch-sparse"] = peer
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in competing}
    for number in range(given.rounds + 1):
        for name, epoch in competing.items():
            measured = edges_per_second(epoch, number)
            if number:  # the first compiles and fills caches
                rounds[name].append(measured)
    rates = {
        name: median(round_["edges"] / round_["seconds"] for round_ in measured) for name, measured in rounds.items()
    }
    results = {
        "settings": {**vars(given), "out": None, "fanout": fanout, "batch_size": BATCH_SIZE},
        "machine": {
            "processor": platform.processor() or platform.machine(), "cores": os.cpu_count(),
            "torch_threads": torch.get_num_threads(), "load_average": os.getloadavg(),
        },
        "torch_sparse": "measured" if peer is not None else "not installed",
        "edges_per_second": rates,
        "ratio_to_plain": {name: rate / rates["plain torch"] for name, rate in rates.items()},
        "rounds": rounds,
        "seconds_to_group_edges": build,
        "limits_of_one_thread": limits(data),
        "training_seconds_per_batch": training(data, fanout, seeds, min(given.batches, 4)),
    }  # fmt: skip
    given.out.parent.mkdir(exist_ok=True)
    given.out.write_text(json.dumps(results, indent=1) + "\n")
    print(
        json.dumps(
            {key: results[key] for key in ("edges_per_second", "ratio_to_plain", "limits_of_one_thread")}, indent=1
        )
    )


def _edges(sampler: PlainSampler | NeighborSampler, number: int) -> Iterator[int]:
    return (len(sample.edges) for sample in sampler.epoch(number))


if __name__ == "__main__":
    main()
