"""How a seed becomes weights: exactly as in the paper, or paired across all attention methods."""

from __future__ import annotations

import hashlib
import math
from typing import Literal, TypeVar, get_args

import torch
from torch import Tensor, nn

from ltga.errors import InputError
from ltga.nn.conv import LTGAConv
from ltga.nn.edge_mlp import EdgeMLP
from ltga.nn.index import GatedIndex, LearnedIndex
from ltga.nn.network import LTGA

Init = Literal["paper", "paired"]
Model = TypeVar("Model", bound=nn.Module)


def initialize(model: Model, seed: int, init: str) -> Model:
    """Give ``model`` the weights of ``seed``; returns the model.

    ``"paper"`` seeds torch, draws what the paper's construction draws and leaves torch's generator
    where the paper's leaves it, because dropout continues from there. ``"paired"`` draws each
    parameter from a stream of its own, keyed by seed, layer and name: methods with a parameter in
    common start with the same values in it, and torch's generator is not touched.

    A network other than :class:`~ltga.nn.LTGA` keeps what its construction drew: call
    ``torch.manual_seed(seed)`` right before building it.

    >>> first, second = (initialize(LTGA(5, 2, index=index), 1, "paired") for index in ("head", "edge"))
    >>> first.convs[0].att.equal(second.convs[0].att)
    True
    """
    if init not in get_args(Init):
        raise InputError(f"init: expected 'paper' or 'paired', got {init!r}")
    if not isinstance(model, LTGA):
        return model
    if init == "paper":
        torch.manual_seed(seed)
    convs = [conv for conv in model.convs if isinstance(conv, LTGAConv)]
    with torch.no_grad():
        if init == "paper":
            for conv in convs:  # the paper's cells come out if the gates of all layers are drawn before the first layer
                _paper_extras(conv)
            for conv in convs:
                _paper_layer(conv)
        else:
            for layer, conv in enumerate(convs):
                _paired_layer(conv, seed, layer)
                _index_to_start(conv.index)
    return model


def _paper_layer(conv: LTGAConv) -> None:
    """The paper's layer: two ``nn.Linear`` as torch draws them, then xavier over both and the attention.

    The first linear serves the node that attends, the second makes the messages.
    """
    linears: list[nn.Module] = list(dict.fromkeys((conv.lin_r, conv.lin_l)))
    if conv.lin_key is not None:  # queries and keys come besides the usual two, of which the first is then of no use
        unused = nn.utils.skip_init(nn.Linear, conv.lin_r.weight.size(1), conv.lin_r.weight.size(0))
        linears = [unused, conv.lin_l, conv.lin_r, conv.lin_key]
    for linear in linears:
        _torch_linear(linear)
    for linear in linears:
        nn.init.xavier_uniform_(linear.weight)  # type: ignore[arg-type]
        _zero(linear.bias)  # type: ignore[arg-type]
    for attention in (conv.att, conv.att_target):
        if attention is not None:
            nn.init.xavier_uniform_(attention)
    for extra in (conv.lin_edge, conv.res):
        if extra is not None:
            nn.init.xavier_uniform_(extra.weight)
    _zero(conv.bias)


def _paper_extras(conv: LTGAConv) -> None:
    """Index and modifier: scalars start at 0 and draw nothing, a gate draws its two linears and the first one again."""
    for owner in (conv.index, conv.modifier):
        gate = getattr(owner, "gate", None)
        if isinstance(gate, EdgeMLP):
            _torch_linear(gate.hidden)
            _torch_linear(gate.out)
            nn.init.xavier_uniform_(gate.hidden.weight)
            _zero(gate.hidden.bias)
            _zero(gate.out.weight)
            _zero(gate.out.bias)
            _index_to_start(owner)
        elif owner is not None:
            owner.reset_parameters()  # type: ignore[operator]


def _torch_linear(linear: nn.Module) -> None:
    """What ``nn.Linear`` draws when it is built."""
    weight, bias = linear.weight, linear.bias
    assert isinstance(weight, Tensor)
    nn.init.kaiming_uniform_(weight, a=math.sqrt(5))
    if isinstance(bias, Tensor):
        bound = 1 / math.sqrt(weight.size(1))
        nn.init.uniform_(bias, -bound, bound)


def _zero(parameter: Tensor | None) -> None:
    if parameter is not None:
        nn.init.zeros_(parameter)


def _paired_layer(conv: LTGAConv, seed: int, layer: int) -> None:
    """Glorot for matrices and attention vectors, zero for biases, index and the gate's output."""
    for name, parameter in conv.named_parameters():
        role = name.removeprefix("index.").removeprefix("modifier.")  # a control's gate is the index's gate
        drawn = role.startswith("att") or (role.endswith("weight") and role != "gate.out.weight")
        if drawn:
            bound = math.sqrt(6 / (parameter.size(-2) + parameter.size(-1)))
            parameter.uniform_(-bound, bound, generator=stream(f"{seed}/{layer}/{role}"))
        else:
            nn.init.zeros_(parameter)


def _index_to_start(index: nn.Module | None) -> None:
    """A learned index starts where it was built to start, which need not be 1."""
    if isinstance(index, GatedIndex):
        index.to_start()
    elif isinstance(index, LearnedIndex):
        index.reset_parameters()


def stream(key: str) -> torch.Generator:
    """Random numbers that depend on ``key`` alone."""
    digest = hashlib.sha256(key.encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)
