"""Whether Triton's programs agree with the definition on the device at hand: tried once for each configuration.

They were written without a GPU. So the first call with a new configuration computes a small graph both ways, and a
program that is wrong, or does not compile, is not used: the layer is slow then, never wrong.
"""

from __future__ import annotations

import os
import platform
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from ltga.errors import InputError
from ltga.kernels.codes import NORMALIZERS, SCORINGS
from ltga.kernels.operators import attention_torch
from ltga.kernels.operators.checks import sums_type
from ltga.kernels.operators.dropout import plain_mask
from ltga.kernels.operators.operands import Kind, Needed, Operands, Structure
from ltga.kernels.runtime import long_rows
from ltga.kernels.runtime.backends import is_interpreted
from ltga.kernels.runtime.neighbourhoods import sorted_structure

ENVIRONMENT = "LTGA_CHECK_KERNELS"  # 0: never, 1: on GPUs (the default), always: in the interpreter too
TOLERANCES = {torch.float64: 1e-8, torch.float32: 1e-3, torch.float16: 2e-2, torch.bfloat16: 1e-1}


class Configuration(NamedTuple):
    """What makes Triton compile another program."""

    scoring: str
    normalizer: str
    heads: int
    channels: int
    features: int  # of an edge, 0 for none
    dtype: torch.dtype


_found: dict[tuple[Configuration, torch.device], bool] = {}


@torch.compiler.assume_constant_result
def agrees(
    scoring: str, normalizer: str, heads: int, channels: int, features: int, dtype: torch.dtype, device: torch.device
) -> bool:
    """Whether the programs for such a :class:`Configuration` may be used on ``device``; warns, once, if they may not.

    Its fields one by one, because torch.compile hands over tuples of ours without their contents.
    """
    configuration = Configuration(scoring, normalizer, heads, channels, features, dtype)
    wanted = os.environ.get(ENVIRONMENT, "1")
    if wanted not in ("0", "1", "always"):
        raise InputError(f"{ENVIRONMENT}: expected 0, 1 or always, got {wanted!r}")
    if wanted == "0" or (wanted == "1" and is_interpreted()):
        return True
    place = (configuration, device)
    if place not in _found:
        try:
            error = largest_error(configuration, device)
            fault = f"they are off by {error:.1e}"
        except Exception as reason:  # compilers fail in many ways, and none should stop a training run
            error, fault = float("inf"), f"they fail with {type(reason).__name__}: {reason}".splitlines()[0]
        _found[place] = error <= TOLERANCES[configuration.dtype]
        if not _found[place]:
            warnings.warn(
                f"ltga: Triton kernels are not used for {configuration}, because {fault} ({versions(device)}); "
                f"plain torch is. Please report this",
                stacklevel=2,
            )
    return _found[place]


def versions(device: torch.device) -> str:
    """What a report of a fault should name."""
    import triton

    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    runtime = torch.version.hip or torch.version.cuda or "no GPU runtime"
    return f"triton {triton.__version__}, torch {torch.__version__}, {runtime}, {name}"


def largest_error(configuration: Configuration, device: torch.device) -> float:
    """Largest error of outputs, weights and gradients against the definition in double precision, for q of both kinds.

    Errors count beside the largest value of a tensor; NaN counts as infinite. With q per head, heads stand side by side
    and dropout is a mask; with q per edge they are averaged and dropout is a hash.
    """
    with _undisturbed():
        return max(_error(configuration, device, per_edge) for per_edge in (False, True))


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ordinary tensors with gradients, whatever the call that led here is doing: evaluating, exporting, compiling."""
    plain = _disable_current_modes(), torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False)
    with plain[0], plain[1], plain[2], torch.inference_mode(False), torch.enable_grad(), torch.device("cpu"):
        yield


def _error(configuration: Configuration, device: torch.device, per_edge: bool) -> float:
    from ltga.kernels.operators import attention_triton

    graph, operands = _example(configuration, per_edge)
    graph, operands = Structure(*(array.to(device) for array in graph)), _moved(operands, device)
    codes = SCORINGS[configuration.scoring], NORMALIZERS[configuration.normalizer]
    kind = Kind(*codes, 0.2, configuration.channels**-0.5, per_edge, backend="triton")
    ours, our_kind = operands, kind
    if per_edge:
        our_kind = kind._replace(dropout=0.3, key=2**62 + 5)
        mask = plain_mask((len(graph.col), configuration.heads), our_kind.dropout, our_kind.key)
        operands = operands._replace(keep=mask.to(device, operands.q.dtype), bias=operands.bias[:1])
        ours = operands._replace(keep=None)
    results = attention_triton.forward(ours, graph, our_kind)
    exact = Operands(*(None if value is None else value.double().requires_grad_() for value in operands))
    out, weights = attention_torch.forward(exact, graph, kind)
    generator = torch.Generator().manual_seed(1)
    grads = [torch.randn(value.shape, generator=generator).to(device, value.dtype) for value in (results.out, weights)]
    grads[1] = grads[1].to(results.weights.dtype)
    need = Needed(
        True, configuration.features > 0, configuration.normalizer != "softmax", exact.given is not None, True
    )
    found = attention_triton.backward(grads[0], grads[1], ours, graph, results, our_kind, need)._asdict()
    names = [name for name, value in exact._asdict().items() if value is not None and name != "keep"]
    wanted = torch.autograd.grad(
        (out, weights), [getattr(exact, name) for name in names], [grad.double() for grad in grads], allow_unused=True
    )
    pairs = [(results.out, out), (results.weights, weights)]
    pairs += [(found[name], grad) for name, grad in zip(names, wanted) if grad is not None]
    return max(_distance(ours, theirs.detach()) for ours, theirs in pairs)


def _distance(ours: Tensor, exact: Tensor) -> float:
    error = float((ours.double() - exact).abs().max() / exact.abs().max().clamp(min=1e-3))
    return error if error == error else float("inf")


def _moved(operands: Operands, device: torch.device) -> Operands:
    return Operands(*(None if value is None else value.to(device) for value in operands))


def _example(configuration: Configuration, per_edge: bool) -> tuple[Structure, Operands]:
    """A graph with an empty row, a single edge, ties, a masked logit, and a hub long enough to be split, both ways."""
    scoring, _, heads, channels, features, dtype = configuration
    draw = torch.Generator().manual_seed(0)
    hub, nodes, others = long_rows.SPLIT + 6, 9, 40
    ends = torch.randint(0, nodes - 1, (2, others), generator=draw)
    ends = ends[:, (ends[1] != 2) & (ends[0] != 3)]
    full = torch.full((hub,), 3), torch.randint(0, nodes - 1, (hub,), generator=draw)
    edge_index = torch.cat([ends, torch.stack([full[1], full[0]]), torch.stack(full), torch.tensor([[1], [2]])], 1)
    # By torch: numba cannot be loaded while torch.export has its own functions in the place of math's.
    graph, wide = Structure(*sorted_structure(edge_index, nodes, nodes)), sums_type(dtype)
    edges = edge_index.size(1)

    def normal(*shape: int, scale: float = 1.0) -> Tensor:
        return scale * torch.randn(*shape, generator=draw, dtype=torch.float64)

    given = (3 * normal(edges, heads)).round() if scoring == "given" else None  # rounded: ties
    shift = normal(edges, heads, scale=0.1)
    if given is not None:
        shift = torch.zeros_like(shift)
        shift[0] = -torch.inf
    scored = scoring != "given"
    q = 1.0 + 0.6 * torch.rand(edges if per_edge else 1, heads, generator=draw, dtype=torch.float64)
    operands = Operands(
        normal(nodes, heads, channels).to(dtype),
        normal(nodes, heads, channels).to(dtype) if scored else None,
        normal(heads, channels, scale=channels**-0.5).to(wide) if scored else None,
        normal(edges, features).to(wide) if features else None,
        normal(features, heads, channels, scale=0.5).to(wide) if features else None,
        None if given is None else given.to(wide),
        (1 + normal(edges if per_edge else 1, heads, scale=0.2)).to(wide),
        shift.to(wide),
        q.to(wide),
        (torch.rand(edges, heads, generator=draw) < 0.7).to(wide) / 0.7,
        normal(heads, channels).to(wide),
    )
    return graph, operands
