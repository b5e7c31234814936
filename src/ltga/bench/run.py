"""Drives the measurements: one fresh process each, results to JSON and a table."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from ltga.bench.works import WORKS
from ltga.errors import LTGAError

MODES = {
    "default": {},
    # glibc keeps freed memory in the process instead of returning it: no page faults on fresh arrays.
    "reusing": {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(10**11)},
}
LAYERS = ("pyg-gatv2", "ltga-head", "ltga-edge", "entmax-1.5")
TRAINING = {"gum-syntax": 6, "cora": 30, "pubmed": 6}  # epochs
SCALING = [10**4, 10**5, 10**6, 10**7]


def run_benchmarks(
    works: list[str], *, data: str | None = None, extras: bool = True, say: Callable[[str], None] = print
) -> dict[str, Any]:
    """Measure ``works`` (and, with ``extras``, zeros, bandwidth, scaling and the million-node graph)."""
    for work in works:
        if work not in WORKS:
            raise LTGAError(f"work: unknown {work!r}; choose from {', '.join(WORKS)}")
    results: dict[str, Any] = {"machine": machine(), "works": {}}
    for work in works:
        entry: dict[str, Any] = {"what": WORKS[work].what, "seconds": {}, "extra_bytes": {}}
        for mode, settings in MODES.items():
            say(f"{work}: timing ({mode} allocator)")
            request: dict[str, Any] = {"task": "times", "work": work, "names": LAYERS, "data": data, "repeats": None}
            entry["seconds"][mode] = child(request, settings)["seconds"]
        for name in LAYERS[:2]:
            say(f"{work}: memory of {name}")
            request = {"task": "memory", "work": work, "name": name, "data": data}
            entry["extra_bytes"][name] = child(request, {})["extra_bytes"]
        results["works"][work] = entry
    results["training"] = {}
    for dataset, epochs in (TRAINING if extras else {}).items():
        results["training"][dataset] = {}
        for mode, settings in MODES.items():
            say(f"training on {dataset} ({mode} allocator)")
            request = {"task": "training", "dataset": dataset, "epochs": epochs, "data": data}
            found = child(request, settings)
            results["training"][dataset][mode] = found["seconds"]
            results.setdefault("reach", {})[dataset] = found["reach"]
    if extras:
        say("aggregation with 45 % zeros")
        results["zeros"] = child({"task": "zeros", "share": 0.45}, {})
        say("memory bandwidth")
        results["bandwidth"] = child({"task": "bandwidth"}, {})
        say("10^4 to 10^7 edges")
        results["scaling"] = child({"task": "scaling", "edges": SCALING}, {})
        say("1M nodes, 10M edges")
        results["million"] = child({"task": "million", "nodes": 10**6, "edges": 10**7}, {})
    return results


def child(request: dict[str, Any], settings: dict[str, str]) -> dict[str, Any]:
    """One measurement in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "ltga.bench.child", json.dumps(request)],
        env={**os.environ, **settings}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise LTGAError(f"benchmark {request}: failed\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return {
        "cpu": model,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def ratio(entry: dict[str, Any], mode: str, slow: str, quick: str) -> float:
    """How many times faster ``quick`` is than ``slow``: best against best of the same interleaved run."""
    seconds = entry["seconds"][mode]
    return min(seconds[slow]) / min(seconds[quick])


def table(results: dict[str, Any]) -> str:
    """The results as Markdown."""
    lines = [
        "| work | allocator | PyG GATv2Conv | LTGAConv (head q) | faster | edge q / head q | entmax-1.5 / head q |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, entry in results["works"].items():
        for mode in entry["seconds"]:
            best = {layer: min(values) for layer, values in entry["seconds"][mode].items()}
            lines.append(
                f"| {name}: {entry['what']} | {mode} | {best['pyg-gatv2']:.3f} s | {best['ltga-head']:.3f} s | "
                f"**{ratio(entry, mode, 'pyg-gatv2', 'ltga-head'):.1f}x** | "
                f"{best['ltga-edge'] / best['ltga-head']:.2f} | {best['entmax-1.5'] / best['ltga-head']:.2f} |"
            )
    lines += ["", "| work | extra peak memory, PyG | LTGAConv | share |", "| --- | --- | --- | --- |"]
    for name, entry in results["works"].items():
        pyg, ours = (entry["extra_bytes"][layer] for layer in LAYERS[:2])
        lines.append(f"| {name} | {pyg / 1e6:.0f} MB | {ours / 1e6:.0f} MB | 1/{pyg / max(ours, 1):.1f} |")
    if results.get("training"):
        lines += [
            "",
            "| whole training run, evaluation every epoch | allocator | PyG GATv2Conv | LTGA-Head | faster | with the "
            "paper's random numbers | rows needed to train, to evaluate |",
            "| --- | --- | --- | --- | --- | --- | --- |",
        ]
        for dataset, modes in results["training"].items():
            reach = results["reach"][dataset]
            for mode, seconds in modes.items():
                best = {name: min(values) for name, values in seconds.items()}
                lines.append(
                    f"| {dataset} | {mode} | {best['pyg-gatv2']:.3f} s an epoch | {best['ltga-head']:.3f} s | "
                    f"**{best['pyg-gatv2'] / best['ltga-head']:.1f}x** | "
                    f"{best['pyg-gatv2'] / best['ltga-head-paper']:.1f}x | "
                    f"{100 * reach['train']:.0f} %, {100 * reach['val']:.0f} % |"
                )
    if "zeros" in results:
        best = {name: min(values) for name, values in results["zeros"]["seconds"].items()}
        lines += [
            "",
            f"Aggregation alone (50k nodes, 850k edges, 8x64): 45 % zeros take {best['zeros'] / best['dense']:.2f} of "
            f"the time of softmax weights; where all heads agree on the zeros, "
            f"{best['zeros-all-heads'] / best['dense']:.2f}.",
        ]
    if "bandwidth" in results:
        lines += ["", _bandwidth_sentence(results["bandwidth"])]
    if "million" in results:
        big = results["million"]
        lines += [
            "",
            f"1M nodes, 10M edges, 64 -> 8x16, forward + backward: {min(big['seconds']):.1f} s, "
            f"peak resident memory {big['peak_bytes'] / 2**30:.1f} GiB.",
        ]
    return "\n".join(lines)


def _bandwidth_sentence(found: dict[str, Any]) -> str:
    copy = found["copy_bytes_per_second"]
    parts = [
        f"{name} {found[name]['least_bytes'] / found[name]['seconds'] / 1e9:.1f} GB/s "
        f"({100 * found[name]['least_bytes'] / found[name]['seconds'] / copy:.0f} % of copying)"
        for name in ("forward", "backward")
    ]
    return (
        f"Edge kernels on random-169k against memory: copying runs at {copy / 1e9:.1f} GB/s, gathering rows at "
        f"{found['gather_bytes_per_second'] / 1e9:.1f} GB/s; counting only the least traffic possible, "
        f"{' and '.join(parts)}."
    )
