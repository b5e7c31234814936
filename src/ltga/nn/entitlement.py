"""When compiled code may stand in for modules and messages: where nobody replaced, hooked or overrode anything.

The fast path reads weights instead of calling modules, and aggregates without making messages. It is entitled to that
only for modules and methods it knows, untouched. Everything else is called as the user left it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.nn.modules.module import _has_any_global_hook
from torch_geometric import EdgeIndex as PygEdgeIndex
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.aggr import SumAggregation
from torch_geometric.nn.dense.linear import Linear

from ltga.errors import InputError
from ltga.kernels.operators.dispatch import transformed
from ltga.kernels.runtime.backends import MOST_CHANNELS, has_compiled_kernels, has_triton, runs_triton

is_exporting = getattr(torch.compiler, "is_exporting", lambda: False)  # torch 2.6 cannot tell
_MODULE_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_PYG_HOOKS = tuple(
    f"_{stage}_forward_{when}hooks"
    for stage in ("propagate", "message", "aggregate", "message_and_aggregate", "edge_update")
    for when in ("", "pre_")
)
MESSAGE_METHODS = ("message", "aggregate", "update", "message_and_aggregate", "edge_update", "explain_message")


def may_compile(backend: str, x: Any) -> bool:
    """Whether compiled code can work on features ``x`` (a tensor, or a pair) at all."""
    if backend in ("torch", "triton") or transformed() or not may_capture(backend):
        return False
    device = _device_of(x)
    able = has_compiled_kernels() and device.type == "cpu"
    if backend == "numba" and not able:
        raise InputError(f"backend: 'numba' needs numba and CPU tensors, got {device}; use backend='auto'")
    return able


def may_launch(layer: Any, x: Any) -> bool:
    """Whether Triton's programs can do the attention of ``layer`` on features ``x`` at all.

    Whether they agree with the definition on the device at hand is for :mod:`ltga.kernels.operators.trust` to say.
    """
    device, insists = _device_of(x), layer.backend == "triton"
    if layer.backend in ("torch", "numba") or transformed() or not may_capture(layer.backend):
        return False
    if not insists and (device.type != "cuda" or not has_triton()):
        return False
    if not runs_triton(device):
        missing = "pip install 'ltga[gpu]'" if not has_triton() else "or TRITON_INTERPRET=1, to try it slowly"
        raise InputError(f"backend: 'triton' needs Triton and a GPU, got {device}; use backend='auto', {missing}")
    if layer.out_channels > MOST_CHANNELS:
        if insists:
            raise InputError(
                f"backend: 'triton' takes at most {MOST_CHANNELS} channels per head, got {layer.out_channels}; "
                f"use backend='auto'"
            )
        return False
    return True


def may_capture(backend: str) -> bool:
    """Whether our operators may stand in what is being recorded.

    A program made by ``torch.export`` is often run where ltga is not installed, so it holds plain torch unless the
    layer's backend was named; ``torch.jit`` knows none of our operators.
    """
    return not torch.jit.is_tracing() and (backend != "auto" or not is_exporting())


def _device_of(x: Any) -> torch.device:
    first = x[0] if isinstance(x, tuple | list) and x else x
    values = first if isinstance(first, Tensor) else getattr(first, "values", None)
    return values.device if isinstance(values, Tensor) else torch.device("cpu")


def is_untouched(module: nn.Module, *kinds: type[nn.Module]) -> bool:
    """Whether ``module`` is exactly one of ``kinds``, without hooks, parametrisations or methods of its own.

    >>> linear = nn.Linear(2, 2)
    >>> is_untouched(linear, nn.Linear), is_untouched(nn.utils.parametrizations.weight_norm(linear), nn.Linear)
    (True, False)
    """
    kind, own = type(module), module.__dict__
    if kind not in kinds or "forward" in own or "__call__" in own:
        return False
    if kind.forward is not _FORWARDS.get(kind):  # somebody changed the class itself
        return False
    return not any(map(own.get, _MODULE_HOOKS)) and not _has_any_global_hook()


def know(*kinds: type[nn.Module]) -> None:
    """Remember how modules of these kinds work, for :func:`is_untouched`."""
    _FORWARDS.update({kind: kind.forward for kind in kinds})


_FORWARDS: dict[type[nn.Module], Any] = {}
know(Linear, nn.Linear, SumAggregation)


def is_plain_linear(module: nn.Module) -> bool:
    """Whether a call of ``module`` is x W^T + b with its ``weight`` and ``bias``, and nobody watches."""
    if not is_untouched(module, Linear, nn.Linear):
        return False
    return is_ordinary(module.weight) and (module.bias is None or is_ordinary(module.bias))


def is_ordinary(value: Any) -> bool:
    """Whether ``value`` is a tensor of torch's own, whose memory holds its numbers, or stands for one in an export."""
    kind = type(value)
    if kind is Tensor or kind is nn.Parameter:
        return True
    if is_exporting() and kind in (FakeTensor, FunctionalTensor):
        return True
    return isinstance(value, nn.UninitializedParameter)


def has_methods(module: nn.Module, methods: Mapping[str, Any]) -> bool:
    """Whether ``module`` has these methods still: no subclass, nor anybody else, has put others in their place."""
    kind, own = type(module), module.__dict__
    for name, method in methods.items():  # noqa: SIM110 (asked for on every call of every layer)
        if getattr(kind, name) is not method or name in own:
            return False
    return True


def sums_plain_messages(layer: MessagePassing, methods: Mapping[str, Any]) -> bool:
    """Whether ``layer``'s messages are made by these ``methods``, summed, and nobody looks at them or changes them."""
    if (
        not has_methods(layer, methods)
        or layer.explain
        or layer.decomposed_layers != 1
        or not _propagates_as_pyg_does(layer)
    ):
        return False
    if any(map(layer.__dict__.get, _PYG_HOOKS)):
        return False
    return layer.aggr in ("add", "sum") and is_untouched(layer.aggr_module, SumAggregation)


def may_fuse(layer: Any, edge_index: Any, embeddings: Sequence[Tensor | None], methods: Mapping[str, Any]) -> bool:
    """Whether the fused kernels are what PyG's message passing would give, with nobody to see a difference."""
    if isinstance(edge_index, Tensor) and not (is_ordinary(edge_index) or isinstance(edge_index, PygEdgeIndex)):
        return False
    linear = layer.lin_edge
    if linear is not None and not (is_plain_linear(linear) and linear.bias is None):
        return False
    parameters = (layer.att, layer.att_target, layer.bias, *embeddings)
    ordinary = torch.compiler.is_compiling() or all(value is None or is_ordinary(value) for value in parameters)
    return ordinary and sums_plain_messages(layer, methods)


def _propagates_as_pyg_does(layer: MessagePassing) -> bool:
    """PyG generates a ``propagate`` for every class, in a module named after it; any other one is the user's."""
    propagate = getattr(layer.propagate, "__func__", layer.propagate)
    return propagate is MessagePassing.propagate or propagate.__module__ in _generated_modules(type(layer))  # type: ignore[arg-type]


@cache
def _generated_modules(kind: type) -> frozenset[str]:
    return frozenset(f"{base.__module__}_{base.__name__}_propagate" for base in kind.__mro__)
