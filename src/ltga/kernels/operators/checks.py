"""Everything compiled attention code relies on, checked before it runs."""

from __future__ import annotations

import torch
from torch import Tensor

from ltga.errors import GraphError, InputError
from ltga.kernels.codes import GIVEN, NORMALIZERS, SCORINGS
from ltga.kernels.operators.operands import Kind, Operands, Results, Structure
from ltga.kernels.runtime.backends import MOST_CHANNELS, runs_triton

DTYPES = tuple(torch.int64 if name in ("ptr", "tptr") else torch.int32 for name in Structure._fields)
RANKS = tuple(3 if name in ("x", "target", "edge_weight") else 2 for name in Operands._fields)


def check_attention(operands: Operands, graph: Structure, kind: Kind, needs_logits: bool = True) -> None:
    """Everything that compiled code relies on; raises before it runs."""
    x = operands.x
    check_features("x", x, kind.backend)
    if kind.scoring not in SCORINGS.values() or kind.normalizer not in NORMALIZERS.values():
        raise InputError(f"scoring, normalizer: expected 0, 1 or 2, got {kind.scoring} and {kind.normalizer}")
    device = x.device
    for name, rank, value in zip(Operands._fields, RANKS, operands):
        if value is None:
            continue
        if value.dim() != rank or not value.is_floating_point() or value.device != device:
            place = str(x.device).replace("cpu", "CPU")
            raise InputError(
                f"{name}: expected a {rank}-D {place} floating-point tensor, got {value.dtype} {list(value.shape)}"
            )
    check_graph(graph, x.size(0))
    _check_shapes(operands, len(graph.ptr) - 1, len(graph.col), kind.average)
    if kind.scoring == GIVEN:
        if needs_logits and operands.given is None:
            raise InputError("given: logits are needed when scoring='given'")
    elif operands.target is None or operands.att is None:
        raise InputError("target, att: are needed unless the logits are given")


def check_features(name: str, x: Tensor, backend: str) -> None:
    """Types and devices that the backend takes."""
    if backend not in ("", "triton"):
        raise InputError(f"backend: expected 'triton' or nothing, got {backend!r}")
    if x.device.type == "cpu" and not backend:
        if x.dim() != 3 or x.dtype not in (torch.float32, torch.float64):
            raise InputError(f"{name}: expected a CPU float32/float64 tensor [S, H, C], got {x.dtype} {list(x.shape)}")
        return
    if not runs_triton(x.device):
        raise InputError(
            f"{name}: is on {x.device}, where there are no kernels; pip install 'ltga[gpu]' or move it to the CPU"
        )
    if x.dim() != 3 or not x.is_floating_point() or x.size(2) > MOST_CHANNELS:
        raise InputError(
            f"{name}: expected floating-point [S, H, C] with at most {MOST_CHANNELS} channels, got {list(x.shape)}"
        )


def sums_type(dtype: torch.dtype) -> torch.dtype:
    """The type in which sums, logits and weights are kept for features of ``dtype``.

    >>> sums_type(torch.bfloat16), sums_type(torch.float64)
    (torch.float32, torch.float64)
    """
    return torch.promote_types(dtype, torch.float32)


def _check_shapes(operands: Operands, nodes: int, edges: int, average: bool) -> None:
    heads, channels = operands.x.shape[1:]
    edge_attr, edge_weight = operands.edge_attr, operands.edge_weight
    if (edge_attr is None) != (edge_weight is None):
        raise InputError("edge_attr, edge_weight: give both or neither")
    features = 0 if edge_attr is None else edge_attr.size(1)
    per_edge, per_head = ((edges, heads),), ((1, heads), (edges, heads))
    expected: tuple[tuple[tuple[int, ...], ...], ...] = (
        (tuple(operands.x.shape),),
        ((nodes, heads, channels),),
        ((heads, channels),),
        ((edges, features),),
        ((features, heads, channels),),
        per_edge,
        per_head,
        per_edge,
        per_head,
        per_edge,
        ((1, channels),) if average else ((heads, channels),),
    )
    for name, value, shapes in zip(Operands._fields, operands, expected, strict=True):
        if value is not None and tuple(value.shape) not in shapes:
            raise InputError(f"{name}: expected shape {' or '.join(map(str, shapes))}, got {tuple(value.shape)}")


def check_graph(structure: tuple[Tensor | None, ...], sources: int) -> None:
    """Six arrays as in ``Neighbourhoods.structure`` (the last three may be None); raises if they are not sound.

    What they contain is looked at on the CPU only: anywhere else every call would wait for the device.
    """
    ptr, col, perm, tptr, tcol, tpos = structure
    for name, array, dtype in zip(Structure._fields, structure, DTYPES):
        if array is not None and (array.dim() != 1 or array.dtype != dtype or not array.is_contiguous()):
            raise GraphError(f"{name}: expected a contiguous 1-D {dtype} tensor, got {array.dtype} {list(array.shape)}")
    assert ptr is not None and col is not None and perm is not None
    if any(array is not None and array.device != ptr.device for array in structure):
        raise GraphError("neighbourhoods: the arrays are on several devices; move them with Neighbourhoods.to")
    if ptr.device.type != "cpu":
        lengths = {len(array) for array in (col, perm, tcol, tpos) if array is not None}
        if len(lengths) != 1 or len(ptr) == 0 or (tptr is not None and len(tptr) != sources + 1):
            raise GraphError(
                f"neighbourhoods: not made for {sources} sources; build it with ltga.kernels.neighbourhoods"
            )
        return
    from ltga.kernels.numba.soundness import check_both, check_structure

    if tptr is None:
        broken = check_structure(ptr.numpy(), col.numpy(), perm.numpy(), sources)
    else:
        broken = check_both(*(array.numpy() for array in structure), sources)  # type: ignore[union-attr]
    if broken:
        raise GraphError(
            f"neighbourhoods: not a valid CSR structure for {sources} sources (rule {broken}); "
            f"build it with ltga.kernels.neighbourhoods"
        )


def check_gradients(
    grad_out: Tensor, grad_alpha: Tensor | None, operands: Operands, results: Results, nodes: int, edges: int
) -> None:
    """The same for what only the backward pass takes."""
    heads, channels = operands.x.shape[1:]
    if tuple(grad_out.shape) not in ((nodes, heads, channels), (nodes, 1, channels)):
        raise InputError(f"grad_out: expected {(nodes, heads, channels)}, got {tuple(grad_out.shape)}")
    raw = None if operands.scale is None else results.raw
    for name, value in (
        ("grad_alpha", grad_alpha), ("raw", raw), ("logits", results.logits), ("weights", results.weights)
    ):  # fmt: skip
        if value is not None and (tuple(value.shape) != (edges, heads) or not value.is_contiguous()):
            raise InputError(f"{name}: expected a contiguous tensor {(edges, heads)}, got {tuple(value.shape)}")
        if value is not None and value.dtype != sums_type(operands.x.dtype):
            raise InputError(f"{name}: expected {sums_type(operands.x.dtype)}, got {value.dtype}")
