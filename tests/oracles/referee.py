"""Graph attention as naive differentiable float64 torch, node by node: what gradients of any order should be.

Independent of ltga: q-softmax by its textbook formula, entmax by bisection followed by two Newton steps that autograd
follows (which makes derivatives up to the third order exact).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

Blur = Callable[[Tensor], Tensor]


def exp_q(x: Tensor, q: Tensor) -> Tensor:
    u = (q - 1) * x
    inside, near = u > -1, u.abs() < 0.05
    # Close to q = 1 the textbook formula loses its digits: log(1 + u) / u by its series there.
    ratio, small = torch.zeros_like(u), torch.where(near, u, torch.zeros_like(u))
    for n in range(20, -1, -1):
        ratio = 1 / (n + 1) - small * ratio
    far = torch.where(near | ~inside, torch.ones_like(q), q - 1).expand_as(u)
    power = torch.log(torch.where(near | ~inside, torch.ones_like(u), 1 + u)) / far
    y = torch.exp(torch.where(near, x * ratio, power))
    return torch.where(inside, y, torch.zeros_like(u))


def q_softmax(z: Tensor, q: Tensor) -> Tensor:
    y = exp_q(z - z.amax(0), q)
    return y / y.sum(0)


def entmax(z: Tensor, alpha: Tensor) -> Tensor:
    with torch.no_grad():
        x = z - z.amax(0)
        low, high = torch.full_like(z[0], -(float(len(z)) ** 6) - 1), torch.zeros_like(z[0])
        for _ in range(220):
            nu = (low + high) / 2
            over = exp_q(x + nu, alpha).sum(0) > 1
            low, high = torch.where(over, low, nu), torch.where(over, nu, high)
    nu = high
    for _ in range(2):
        argument = z - z.amax(0) + nu
        p = exp_q(argument, alpha)
        slope = torch.where(p > 0, p / torch.where(p > 0, 1 + (alpha - 1) * argument, torch.ones_like(p)), p)
        nu = nu - (p.sum(0) - 1) / slope.sum(0)
    return exp_q(z - z.amax(0) + nu, alpha)


def gate(parameters: dict[str, Tensor], prefix: str, target: Tensor, source: Tensor, blur: Blur) -> Tensor:
    joined = torch.cat([target.mean(1), source.mean(1)], 1)
    hidden = F.linear(joined, parameters[f"{prefix}.hidden.weight"], parameters[f"{prefix}.hidden.bias"])
    return F.linear(blur(hidden).relu(), parameters[f"{prefix}.out.weight"], parameters[f"{prefix}.out.bias"])


def add_loops(edges: Tensor, attr: Tensor | None, nodes: int, fill: float | str) -> tuple[Tensor, Tensor | None]:
    """PyG's self-loops: those given are dropped, one per node is appended, its features filled in."""
    keep = edges[0] != edges[1]
    edges = edges[:, keep]
    if attr is not None:
        attr = attr[keep]
        if fill == "mean":
            rows = [attr[edges[1] == n] for n in range(nodes)]
            loops = torch.stack([row.mean(0) if len(row) else attr.new_zeros(attr.size(1)) for row in rows])
        else:
            loops = attr.new_full((nodes, attr.size(1)), float(fill))
        attr = torch.cat([attr, loops])
    return torch.cat([edges, torch.arange(nodes).expand(2, -1)], 1), attr


def layer(
    parameters: dict[str, Tensor],
    x: tuple[Tensor, Tensor],
    edges: Tensor,
    attr: Tensor | None = None,
    *,
    heads: int,
    concat: bool = True,
    slope: float = 0.2,
    scoring: str = "gatv2",
    normalizer: str = "q_softmax",
    index: str | float = 1.0,
    modifier: str | None = None,
    delta: float = 1.0,
    aggr: str = "add",
    loops: bool = True,
    fill: float | str = "mean",
    keep: Tensor | None = None,
    flip: bool = False,
    blur: Blur = lambda value: value,
) -> tuple[Tensor, Tensor]:
    """(output, weights after dropout); everything float64, parameters by state-dict name.

    ``blur`` is applied to what a layer in a smaller type would round on the way.
    """
    if loops:
        edges, attr = add_loops(edges, attr, min(len(x[0]), len(x[1])), fill)
    edges = edges.flip(0) if flip else edges

    def project(name: str, features: Tensor) -> Tensor:
        name = "lin_l" if f"{name}.weight" not in parameters else name  # shared weights
        return F.linear(features, parameters[f"{name}.weight"], parameters.get(f"{name}.bias")).view(
            len(features), heads, -1
        )

    source, target = blur(project("lin_l", x[0])), blur(project("lin_r", x[1]))
    j, i = edges
    key = (project("lin_key", x[0]) if scoring == "qkv" else source)[j]
    if attr is not None:
        key = key + F.linear(attr, parameters["lin_edge.weight"]).view(len(attr), heads, source.size(2))
    if scoring == "gatv2":
        logits = (F.leaky_relu(blur(key + target[i]), slope) * parameters["att"]).sum(-1)
    elif scoring == "gat":
        both = (key * parameters["att"]).sum(-1) + (target[i] * parameters["att_target"]).sum(-1)
        logits = F.leaky_relu(blur(both), slope)
    else:
        logits = (key * target[i]).sum(-1) / key.size(-1) ** 0.5
    if modifier == "edge-bias":
        logits = logits + gate(parameters, "modifier.gate", target[i], source[j], blur)
    elif modifier == "edge-scale":
        logits = logits * gate(parameters, "modifier.gate", target[i], source[j], blur).exp()
    elif modifier == "temperature":
        logits = logits * parameters["modifier.raw"].exp()
    logits = blur(logits)
    if index == "edge":
        q = 1 + delta * torch.tanh(gate(parameters, "index.gate", target[i], source[j], blur))
    elif isinstance(index, str):
        q = (1 + delta * torch.tanh(parameters["index.raw"])).expand_as(logits)
    else:
        q = torch.full_like(logits, index)
    q = torch.ones_like(q) if normalizer == "softmax" else q
    normalise = entmax if normalizer == "entmax" else q_softmax
    out = source.new_zeros(len(target), heads, source.size(2))
    weights = torch.zeros_like(logits)
    for node in range(len(target)):
        row = (i == node).nonzero().squeeze(1)
        if not len(row):
            continue
        here = normalise(logits[row], q[row])
        here = here if keep is None else here * keep[row]
        weights = weights.index_copy(0, row, here)
        messages = blur(here.unsqueeze(-1) * source[j[row]])
        total = {"add": messages.sum(0), "mean": messages.mean(0), "max": messages.amax(0)}[aggr]
        out = out.index_copy(0, torch.tensor([node]), total.unsqueeze(0))
    out = out.flatten(1) if concat else out.mean(1)
    if "bias" in parameters:
        out = out + parameters["bias"]
    if "res.weight" in parameters:
        out = out + F.linear(x[1], parameters["res.weight"])
    return out, weights
