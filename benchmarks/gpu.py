"""What can be counted about the GPU kernels without a GPU: ``python benchmarks/gpu.py`` writes gpu.json.

Registers and shared memory from Triton's compilers; bytes read and written from kernels run in the interpreter; peak of
temporary memory from what the operators allocate. Plain torch beside them.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HEADS, CHANNELS = 8, 64
SCORINGS, NORMALIZERS = ("gatv2", "dot", "given"), ("softmax", "q_softmax", "entmax")


def compiled() -> dict[str, Any]:
    import torch

    from ltga.bench.gpu_code import TARGETS, Configuration, compile_kernels

    found: dict[str, Any] = {target: [] for target in TARGETS}
    for target, scoring, normalizer in itertools.product(TARGETS, SCORINGS, NORMALIZERS):
        setting = Configuration(scoring, normalizer, HEADS, CHANNELS, 0 if scoring == "given" else 3, torch.float32)
        for kernel in compile_kernels(setting, target):
            found[target].append({"scoring": scoring, "normalizer": normalizer, **kernel._asdict()})
    return found


def counted() -> dict[str, Any]:
    import torch

    from ltga.bench.gpu_traffic import Traffic
    from ltga.bench.works import random_graph
    from ltga.kernels import Neighbourhoods

    torch.manual_seed(0)
    found: dict[str, Any] = {}
    small = Neighbourhoods.build(random_graph(24, 384, 1)[1], 24, 24)
    large = Neighbourhoods.build(random_graph(5_000, 50_000, 1)[1], 5_000, 5_000)
    for scoring, normalizer in itertools.product(SCORINGS[:2], NORMALIZERS):
        work, traffic = Pass(small, scoring, normalizer), Traffic()
        with traffic:
            work.triton()
        plain, edges = work.plain(), small.num_edges
        peaks = {name: Pass(large, scoring, normalizer).peak(name) for name in ("triton", "plain")}
        found[f"{scoring} {normalizer}"] = {
            "bytes": {"triton": traffic.bytes / edges, "plain": plain.bytes / edges},
            "peak": {name: value / large.num_edges for name, value in peaks.items()},
            "kernels": [
                {"kernel": name, "read": one.bytes_read / edges, "written": one.bytes_written / edges}
                for name, one in traffic.launches
            ],
        }
    return found


class Pass:
    """Attention forward and backward over one graph."""

    def __init__(self, graph: Any, scoring: str, normalizer: str) -> None:
        import torch

        from ltga.kernels import NORMALIZERS as CODES
        from ltga.kernels import SCORINGS as SCORING_CODES
        from ltga.kernels.operators.operands import Kind, Operands, Structure

        self.graph, nodes = Structure(*graph.structure), graph.num_targets
        x, target = (torch.randn(nodes, HEADS, CHANNELS) for _ in range(2))
        att = torch.randn(HEADS, CHANNELS) / 8 if scoring == "gatv2" else torch.zeros(HEADS, CHANNELS)
        q = torch.full((1, HEADS), 1.0 if normalizer == "softmax" else 1.3)
        self.operands = Operands(x, target, att, q=q)
        self.upstream = torch.randn(nodes, HEADS, CHANNELS)
        self.kind = Kind(SCORING_CODES[scoring], CODES[normalizer], 0.2, CHANNELS**-0.5, False)

    def triton(self) -> None:
        from ltga.kernels.operators import attention_triton
        from ltga.kernels.operators.operands import Needed

        results = attention_triton.forward(self.operands, self.graph, self.kind)
        need = Needed(True, False, self.kind.normalizer != 0, False, False)
        attention_triton.backward(self.upstream, None, self.operands, self.graph, results, self.kind, need)

    def plain(self) -> Any:
        from ltga.bench.gpu_traffic import TorchTraffic
        from ltga.kernels.operators import attention_torch
        from ltga.kernels.operators.operands import Operands

        own = Operands(*(None if value is None else value.clone().requires_grad_() for value in self.operands))
        with TorchTraffic() as traffic:
            attention_torch.forward(own, self.graph, self.kind)[0].backward(self.upstream)
        return traffic

    def peak(self, who: str) -> int:
        from ltga.bench.gpu_traffic import TorchTraffic
        from ltga.kernels.operators import program_launch

        if who == "plain":
            return self.plain().peak  # type: ignore[no-any-return]
        with program_launch.written_down(), TorchTraffic() as traffic:  # allocates, starts nothing
            self.triton()
        return traffic.peak


def main() -> None:
    found = {}
    for task, interpreted in (("compiled", "0"), ("counted", "1")):
        command = [sys.executable, __file__, task]
        done = subprocess.run(
            command, env={**os.environ, "TRITON_INTERPRET": interpreted}, capture_output=True, text=True
        )
        if done.returncode:
            sys.exit(done.stderr)
        found[task] = json.loads(done.stdout.splitlines()[-1])
    import triton

    found["triton"] = triton.__version__
    (Path(__file__).parent / "gpu.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    tasks = {"compiled": compiled, "counted": counted}
    print(json.dumps(tasks[sys.argv[1]]())) if len(sys.argv) > 1 else main()
