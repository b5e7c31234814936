"""Operators that torch knows, so that graphs can be traced through them, called without its dispatcher otherwise.

A call through a custom operator's autograd wrapper costs some 0.2 ms in Python alone, and a layer makes half
a dozen of them: about a millisecond a step, which small graphs feel.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor, is_legacy_batchedtensor
from torch.utils._python_dispatch import _get_current_dispatch_mode

from ltga.errors import InputError


class Operator:
    """``ltga::name``: the registered operator while somebody traces, the implementation itself in eager code."""

    def __init__(self, name: str, implementation: Callable[..., Any]) -> None:
        self.__doc__, self._name = implementation.__doc__, name
        self._implementation = implementation
        self._definition = torch.library.custom_op(f"ltga::{name}", implementation, mutates_args=())
        self._registered = getattr(torch.ops.ltga, name).default
        parameters = inspect.signature(implementation).parameters.values()
        self._defaults = tuple(parameter.default for parameter in parameters)
        self._function: type[torch.autograd.Function] | None = None

    def __call__(self, *inputs: Any) -> Any:
        if _is_traced(inputs[0]):
            return self._registered(*inputs)
        inputs = (*inputs, *self._defaults[len(inputs) :])
        if self._function is None or not torch.is_grad_enabled():
            return self._implementation(*inputs)
        return self._function.apply(*inputs)

    def register_fake(self, fake: Callable[..., Any]) -> Callable[..., Any]:
        """Shapes and types of the outputs, for tracing."""
        return self._definition.register_fake(fake)  # type: ignore[no-any-return]

    def register_autograd(self, backward: Callable[..., Any], *, setup_context: Callable[..., None]) -> None:
        """The derivative, as for torch's custom operators; with gradients enabled it must be differentiable itself."""
        self._definition.register_autograd(backward, setup_context=setup_context)
        implementation = self._implementation

        def forward(ctx: Any, *inputs: Any) -> Any:  # with a setup_context of its own torch inspects every call
            output = implementation(*inputs)
            setup_context(ctx, inputs, output)
            return output

        members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        self._function = type(self._name, (torch.autograd.Function,), members)


def operator(name: str) -> Callable[[Callable[..., Any]], Operator]:
    """Make a function the operator ``ltga::name``."""
    return lambda implementation: Operator(name, implementation)


def differentiable_gradients(
    definition: Callable[..., tuple[Tensor, ...]],
    inputs: Sequence[Tensor | None],
    needed: Sequence[bool],
    grads: Sequence[Tensor | None],
) -> list[Tensor | None]:
    """Gradients that can be differentiated again: those of the plain ``definition`` of what compiled code computed.

    Backward passes come here when gradients are enabled in them (``create_graph=True``): somebody wants a second
    derivative, of which compiled code knows nothing.
    """
    with torch.enable_grad():
        # Aliases, because one tensor may be two inputs, or one input may have been made from another.
        own = [value.view_as(value) if need and value is not None else value for value, need in zip(inputs, needed)]
        outputs = definition(*own)
        reached = [(out, grad) for out, grad in zip(outputs, grads) if grad is not None and out.requires_grad]
        wanted = [value for value, need in zip(own, needed) if need and value is not None]
        if not reached or not wanted:
            return [None] * len(inputs)
        ends, upstream = zip(*reached)
        found = iter(torch.autograd.grad(ends, wanted, upstream, create_graph=True, allow_unused=True))
    return [next(found) if need and value is not None else None for value, need in zip(own, needed)]


class Unsaved:
    """Tensors whose values nothing but a second derivative needs: until then they may change, unlike those saved."""

    def __init__(self, *tensors: Tensor | None) -> None:
        self._tensors, self._versions = tensors, [_version(value) for value in tensors]

    def values(self) -> tuple[Tensor | None, ...]:
        """The tensors; raises if one was written to since."""
        if self._versions != [_version(value) for value in self._tensors]:
            raise InputError(
                "backward: a second derivative needs the layer's parameters as they were in the forward pass, "
                "but one was changed in place; take the derivative first"
            )
        return self._tensors


def _version(value: Tensor | None) -> int:
    return -1 if value is None or value.is_inference() else value._version


def is_observed() -> bool:
    """Whether a compiler or a dispatch mode wants to see operators: nothing remembered may enter their graphs."""
    return torch.compiler.is_compiling() or _get_current_dispatch_mode() is not None


def transformed() -> bool:
    """Whether torch.func or forward-mode differentiation is at work, which compiled code cannot see."""
    if torch.compiler.is_compiling():
        return False
    return torch._C._are_functorch_transforms_active() or torch.autograd.forward_ad._current_level >= 0


def wants_definition(*grads: Tensor | None) -> bool:
    """Whether a backward pass must go through plain torch: it will be differentiated, or is batched."""
    return torch.is_grad_enabled() or any(
        grad is not None and (is_functorch_wrapped_tensor(grad) or is_legacy_batchedtensor(grad)) for grad in grads
    )


def _is_traced(x: Any) -> bool:
    """Whether a compiler, a fake tensor or a dispatch mode wants to see operators rather than numbers."""
    return is_observed() or type(x) not in (Tensor, torch.nn.Parameter)
