"""The decoupled optimiser: weights with decay from the start, index parameters without it after a warm-up."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from ltga.nn.index import index_parameters
from ltga.train.protocol import Protocol

_MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # of a parameter, as torch's Adam calls them


class DecoupledAdam:
    """Two Adams that never share a setting.

    The weights step every epoch, with weight decay on biases too. The index parameters have their own
    rate and no decay; during the first ``warmup`` epochs their gradients are thrown away, so that q
    stays at exactly 1 and the second Adam's moments start with its first step.

    >>> from ltga.nn.network import LTGA
    >>> optimizer = DecoupledAdam(LTGA(4, 2, index="head"), Protocol())
    >>> len(optimizer.index)
    2
    """

    def __init__(self, model: nn.Module, protocol: Protocol) -> None:
        self.warmup = protocol.warmup
        self.index = list(index_parameters(model))
        apart = {id(parameter) for parameter in self.index}
        weights = [parameter for parameter in model.parameters() if id(parameter) not in apart]
        self._weights = torch.optim.Adam(weights, lr=protocol.lr, weight_decay=protocol.weight_decay, fused=True)
        self._index = torch.optim.Adam(self.index, lr=protocol.lr_index) if self.index else None

    def zero_grad(self) -> None:
        self._weights.zero_grad()
        if self._index is not None:
            self._index.zero_grad()

    def index_gradient_norm(self) -> float:
        """Euclidean norm of the gradient that reaches the index parameters, 0 if there are none."""
        gradients = [parameter.grad for parameter in self.index if parameter.grad is not None]
        squares = [gradient.double().square().sum() for gradient in gradients]
        return math.sqrt(sum(torch.stack(squares).tolist())) if squares else 0.0  # one number read, not one for each

    def step(self, epoch: int) -> None:
        """Update after ``epoch`` (counted from 1)."""
        self._weights.step()
        if self._index is not None and epoch > self.warmup:
            self._index.step()

    def tensors(self) -> dict[str, Tensor]:
        """The moments and step counts of both Adams, by names that :meth:`load` understands."""
        found: dict[str, Tensor] = {}
        for name, adam in self._adams().items():
            for number, moments in adam.state_dict()["state"].items():
                found |= {f"{name}/{number}/{key}": value for key, value in moments.items()}
        return found

    def misfit(self, tensors: Mapping[str, Tensor]) -> str | None:
        """What :meth:`load` could not go on from: a moment of no parameter, or of another kind or shape."""
        wanted = {
            f"{name}/{number}/{key}": parameter if key != "step" else None
            for name, adam in self._adams().items()
            for number, parameter in enumerate(adam.param_groups[0]["params"])
            for key in _MOMENTS
        }
        for key, found in tensors.items():
            if key not in wanted:
                return f"{key}: no such moment"
            model = wanted[key]
            kind = (torch.float32, torch.Size([])) if model is None else (model.dtype, model.shape)
            if (found.dtype, found.shape) != kind:
                return f"{key}: {found.dtype} {list(found.shape)} instead of {kind[0]} {list(kind[1])}"
        begun = {key.rpartition("/")[0] for key in tensors}
        lost = next(
            (f"{part}/{key}" for part in sorted(begun) for key in _MOMENTS if f"{part}/{key}" not in tensors), None
        )
        return None if lost is None else f"{lost} is missing"

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from what :meth:`tensors` gave; rates and decay are the protocol's, not stored ones."""
        states: dict[str, dict[int, dict[str, Tensor]]] = {name: {} for name in self._adams()}
        for key, value in tensors.items():
            name, number, moment = key.split("/")
            states[name].setdefault(int(number), {})[moment] = value
        for name, adam in self._adams().items():
            adam.load_state_dict({"state": states[name], "param_groups": adam.state_dict()["param_groups"]})

    def _adams(self) -> dict[str, torch.optim.Adam]:
        return {"weights": self._weights} | ({} if self._index is None else {"index": self._index})
