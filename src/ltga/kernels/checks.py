"""Everything compiled attention code relies on, checked before it runs."""

from __future__ import annotations

import torch
from torch import Tensor

from ltga.errors import GraphError, InputError

GIVEN = 0


def check_attention(
    x: Tensor,
    optional: dict[str, tuple[Tensor | None, int]],
    q: Tensor,
    structure: tuple[Tensor | None, ...],
    scoring: int,
    normalizer: int,
    average: bool,
) -> None:
    """Everything that compiled code relies on; raises before it runs."""
    if x.dim() != 3 or x.dtype not in (torch.float32, torch.float64) or x.device.type != "cpu":
        raise InputError(f"x: expected a CPU float32/float64 tensor [S, H, C], got {x.dtype} {list(x.shape)}")
    if scoring not in (0, 1, 2) or normalizer not in (0, 1, 2):
        raise InputError(f"scoring, normalizer: expected 0, 1 or 2, got {scoring} and {normalizer}")
    for name, (value, rank) in optional.items():
        if value is not None and (value.dim() != rank or not value.is_floating_point() or not value.is_cpu):
            raise InputError(
                f"{name}: expected a {rank}-D CPU floating-point tensor, got {value.dtype} {list(value.shape)}"
            )
    check_graph(structure, x.size(0))
    ptr, col = structure[0], structure[1]
    assert ptr is not None and col is not None
    nodes, edges, heads, channels = len(ptr) - 1, len(col), x.size(1), x.size(2)
    expected: dict[str, tuple[tuple[int, ...], ...]] = {
        "target": ((nodes, heads, channels),),
        "att": ((heads, channels),),
        "given": ((edges, heads),),
        "weights": ((edges, heads),),
        "scale": ((1, heads), (edges, heads)),
        "shift": ((edges, heads),),
        "keep": ((edges, heads),),
        "bias": ((1, channels),) if average else ((heads, channels),),
    }
    for name, (value, _) in optional.items():
        if value is not None and name in expected and tuple(value.shape) not in expected[name]:
            raise InputError(
                f"{name}: expected shape {' or '.join(map(str, expected[name]))}, got {tuple(value.shape)}"
            )
    if tuple(q.shape) not in ((1, heads), (edges, heads)):
        raise InputError(f"q: expected shape (1, {heads}) or ({edges}, {heads}), got {tuple(q.shape)}")
    if scoring == GIVEN:
        if "given" in optional and optional["given"][0] is None:
            raise InputError("given: logits are needed when scoring='given'")
    elif optional.get("target", (None, 0))[0] is None or optional.get("att", (None, 0))[0] is None:
        raise InputError("target, att: are needed unless the logits are given")
    edge_attr, edge_weight = (optional.get(n, (None, 0))[0] for n in ("edge_attr", "edge_weight"))
    if (edge_attr is None) != (edge_weight is None):
        raise InputError("edge_attr, edge_weight: give both or neither")
    if edge_attr is not None and edge_weight is not None:
        if edge_attr.dim() != 2 or len(edge_attr) != edges:
            raise InputError(f"edge_attr: expected [{edges}, D], got {list(edge_attr.shape)}")
        if tuple(edge_weight.shape) != (edge_attr.size(1), heads, channels):
            raise InputError(
                f"edge_weight: expected [{edge_attr.size(1)}, {heads}, {channels}], got {list(edge_weight.shape)}"
            )


def check_graph(structure: tuple[Tensor | None, ...], sources: int) -> None:
    """Six arrays as in ``Neighbourhoods.structure`` (the last three may be None); raises if they are not sound."""
    from ltga.kernels.sweeps import check_structure

    ptr, col, perm, tptr, tcol, tpos = structure
    for name, array, dtype in (
        ("ptr", ptr, torch.int64), ("col", col, torch.int32), ("perm", perm, torch.int32),
        ("tptr", tptr, torch.int64), ("tcol", tcol, torch.int32), ("tpos", tpos, torch.int32),
    ):  # fmt: skip
        if array is not None and (array.dim() != 1 or array.dtype != dtype or not array.is_contiguous()):
            raise GraphError(f"{name}: expected a contiguous 1-D {dtype} tensor, got {array.dtype} {list(array.shape)}")
    assert ptr is not None and col is not None and perm is not None
    broken = check_structure(ptr.numpy(), col.numpy(), perm.numpy(), sources)
    if not broken and tptr is not None:
        assert tcol is not None and tpos is not None
        broken = 10 * check_structure(tptr.numpy(), tcol.numpy(), tpos.numpy(), len(ptr) - 1)
        if not broken and (len(tptr) != sources + 1 or len(tcol) != len(col)):
            broken = 50
    if broken:
        raise GraphError(
            f"neighbourhoods: not a valid CSR structure for {sources} sources (rule {broken}); "
            f"build it with ltga.kernels.neighbourhoods"
        )


def check_gradients(
    grad_out: Tensor,
    grad_alpha: Tensor | None,
    x: Tensor,
    raw: Tensor | None,
    logits: Tensor,
    weights: Tensor,
    nodes: int,
    edges: int,
) -> None:
    """The same for what only the backward pass takes."""
    heads, channels = x.size(1), x.size(2)
    if tuple(grad_out.shape) not in ((nodes, heads, channels), (nodes, 1, channels)):
        raise InputError(f"grad_out: expected {(nodes, heads, channels)}, got {tuple(grad_out.shape)}")
    for name, value in (("grad_alpha", grad_alpha), ("raw", raw), ("logits", logits), ("weights", weights)):
        if value is not None and (tuple(value.shape) != (edges, heads) or not value.is_contiguous()):
            raise InputError(f"{name}: expected a contiguous tensor {(edges, heads)}, got {tuple(value.shape)}")
        if value is not None and value.dtype != x.dtype:
            raise InputError(f"{name}: expected {x.dtype}, got {value.dtype}")
