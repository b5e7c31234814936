"""What Triton's compilers make of the GPU kernels, for devices that need not be there."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ltga.errors import InputError
from ltga.kernels.codes import NORMALIZERS, SCORINGS
from ltga.kernels.operators.operands import Kind, Needed
from ltga.kernels.operators.trust import Configuration, _example
from ltga.kernels.runtime.backends import is_interpreted

TARGETS = {"sm_80": ("cuda", 80, 32), "sm_90": ("cuda", 90, 32), "gfx942": ("hip", "gfx942", 64)}
_POINTERS = {
    torch.float64: "*fp64", torch.float32: "*fp32", torch.float16: "*fp16", torch.bfloat16: "*bf16",
    torch.int64: "*i64", torch.int32: "*i32",
}  # fmt: skip


class Compiled(NamedTuple):
    """One kernel for one device: registers of a thread, what is spilled to memory, bytes of shared memory."""

    kernel: str
    registers: int
    spilled: int
    shared: int


def compile_kernels(configuration: Configuration, target: str, per_edge: bool = False) -> Iterator[Compiled]:
    """Compile everything that forward and backward start for ``configuration``, for one of :data:`TARGETS`."""
    if is_interpreted():
        raise InputError("TRITON_INTERPRET: is set, so that nothing can be compiled; unset it")
    import triton
    from triton.backends.compiler import GPUTarget

    from ltga.kernels.triton.tiles import OPTIONS

    for name, kernel, arguments in launches(configuration, per_edge):
        source = _source(kernel, arguments)
        code = triton.compile(source, target=GPUTarget(*TARGETS[target]), options=OPTIONS[TARGETS[target][0]])
        amd = "amdgcn" in code.asm
        used = _from_amd(code.asm["amdgcn"]) if amd else _from_nvidia(code.asm["ptx"], target)
        yield Compiled(name, *used, code.metadata.shared)


def launches(configuration: Configuration, per_edge: bool) -> list[tuple[str, Any, dict[str, Any]]]:
    """(name, kernel, arguments) of every different program, for whole rows and for parts of long ones."""
    from ltga.kernels.operators import attention_triton, program_launch

    graph, operands = _example(configuration, per_edge)
    codes = SCORINGS[configuration.scoring], NORMALIZERS[configuration.normalizer]
    kind = Kind(*codes, 0.2, configuration.channels**-0.5, False, backend="triton")
    need = Needed(
        True, configuration.features > 0, configuration.normalizer != "softmax", operands.given is not None, True
    )
    with program_launch.written_down() as started:
        results = attention_triton.forward(operands, graph, kind)
        attention_triton.backward(torch.empty_like(results.out), results.weights, operands, graph, results, kind, need)
    named = {}
    for kernel, arguments in started:
        step = {flag: arguments.get(flag) for flag in ("SCORE", "SUM", "FIRST")}
        stage = (
            ", score"
            if step["SCORE"]
            else ", sum"
            if step["SUM"]
            else {None: "", True: ", 1st", False: ", 2nd"}[step["FIRST"]]
        )
        over = "parts" if arguments["part_row"] is not None else "rows"
        named[f"{kernel.__name__} ({over}{stage})"] = (kernel, arguments)
    return [(name, *rest) for name, rest in named.items()]


def _source(kernel: Any, arguments: dict[str, Any]) -> Any:
    from triton.compiler import ASTSource

    signature, constants = {}, {}
    for place, parameter in enumerate(kernel.params):
        value = arguments[parameter.name]
        if parameter.is_constexpr or value is None:
            signature[parameter.name] = "constexpr"
            constants[(place,)] = value
        elif isinstance(value, Tensor):
            signature[parameter.name] = _POINTERS[value.dtype]
        else:
            signature[parameter.name] = "i64" if parameter.name == "key" else "i32"
    aligned = {(place,): [["tt.divisibility", 16]] for place, kind in enumerate(signature.values()) if kind[0] == "*"}
    return ASTSource(kernel, signature, constants, aligned)


def _from_amd(assembly: str) -> tuple[int, int]:
    def found(field: str) -> int:
        return max(map(int, re.findall(rf"\.{field}:\s+(\d+)", assembly)))

    # Scalar registers that do not fit go to vector registers, not to memory.
    return found("vgpr_count"), found("vgpr_spill_count")


def _from_nvidia(ptx: str, target: str) -> tuple[int, int]:
    """Asks the assembler that Triton uses."""
    from triton.backends.nvidia.compiler import get_ptxas

    named = re.search(r"\.target\s+(\w+)", ptx)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.ptx"
        source.write_text(ptx)
        arch = f"--gpu-name={named[1] if named else target}"
        command = [
            get_ptxas(TARGETS[target][1]).path,
            "-v",
            "--regAllocOptLevel=2",
            arch,
            str(source),
            "-o",
            f"{source}.o",
        ]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    spills = re.findall(r"(\d+) bytes spill (?:stores|loads)", said)
    registers = re.search(r"Used (\d+) registers", said)
    if not spills or registers is None:
        raise InputError(f"ptxas: said nothing about registers: {said[:200]!r}")
    return int(registers[1]), sum(map(int, spills))
