"""One layer's time and memory on a GPU, against PyG's GATv2Conv as it is and compiled."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ltga.bench.run import machine
from ltga.bench.works import WORKS, Work, layers, step
from ltga.errors import InputError

RIVALS = ("pyg-gatv2", "pyg-gatv2-compiled", "ltga-head", "ltga-edge", "entmax-1.5")


def run_on_device(
    works: list[str], device: str, data: str | None = None, say: Callable[[str], None] = print
) -> dict[str, Any]:
    """Seconds of forward and backward, all rounds, and the peak of extra memory, for every work and layer."""
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("device: torch finds no GPU here; leave --device out to measure the CPU")
    if device not in ("cuda", "cpu"):
        raise InputError(f"device: expected 'cpu' or 'cuda', got {device!r}")
    unknown = [work for work in works if work not in WORKS]
    if unknown:
        raise InputError(f"work: unknown {unknown[0]!r}; choose from {', '.join(WORKS)}")
    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    found: dict[str, Any] = {"machine": {**machine(), "device": name}, "works": {}}
    for work in works:
        say(f"{work} on {name}")
        found["works"][work] = {"what": WORKS[work].what, **measure(WORKS[work], device, data)}
    return found


def measure(work: Work, device: str, data: str | None = None, rivals: tuple[str, ...] = RIVALS) -> dict[str, Any]:
    """Interleaved rounds over all layers; the first of them compiles and is not counted."""
    x, edge_index = (value.to(device) for value in work.load(data))
    plain = layers(x.size(1), work.channels, work.heads, tuple(name for name in rivals if name != RIVALS[1]))
    competing: dict[str, Any] = {name: layer.to(device) for name, layer in plain.items()}
    if RIVALS[1] in rivals:
        copy: nn.Module = layers(x.size(1), work.channels, work.heads, ("pyg-gatv2",))["pyg-gatv2"].to(device)
        competing[RIVALS[1]] = torch.compile(copy)
    seconds: dict[str, list[float]] = {name: [] for name in rivals}
    memory: dict[str, int] = {}
    for number in range(work.repeats + 1):
        for name in rivals:
            _wait(device)
            if device == "cuda":
                torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated() if device == "cuda" else 0
            start = time.perf_counter()
            step(competing[name], x, edge_index, None)
            _wait(device)
            if number > 0:
                seconds[name].append(time.perf_counter() - start)
                if device == "cuda":
                    memory[name] = torch.cuda.max_memory_allocated() - before
            competing[name].zero_grad(set_to_none=True)
    return {"seconds": seconds, "extra_bytes": memory}


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def device_table(found: dict[str, Any]) -> str:
    """The results as Markdown; ratios are against PyG as it is."""
    lines = ["| work | layer | time | faster than PyG | extra memory |", "| --- | --- | --- | --- | --- |"]
    for work, entry in found["works"].items():
        best = {name: min(values) for name, values in entry["seconds"].items()}
        for name, value in best.items():
            extra = entry["extra_bytes"].get(name)
            shown = "not measured" if extra is None else f"{extra / 1e6:.0f} MB"
            lines.append(f"| {work} | {name} | {1e3 * value:.2f} ms | {best['pyg-gatv2'] / value:.2f}x | {shown} |")
    return "\n".join([*lines, "", f"On {found['machine']['device']}, torch {found['machine']['torch']}."])
