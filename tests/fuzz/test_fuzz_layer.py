"""LTGAConv against PyG's GATv2Conv and a float64 referee: output, weights, all gradients and second derivatives.

Every case draws every argument anew. In float64 the layer must agree with the referee to rounding; in smaller types it
may be no further from it than rounding of inputs and intermediate values explains.
"""

import random
import zlib

import pytest
import torch
from torch.nn import functional as F
from torch_geometric.nn import GATv2Conv

from fuzz import tally
from ltga.kernels.runtime import long_rows
from ltga.nn import LTGAConv
from oracles import referee

QUICK, MANY = 150, 3000
TOLERANCE = {
    torch.double: (1e-9, 1e-8),
    torch.float: (2e-4, 5e-3),
    torch.bfloat16: (3e-2, None),
    torch.half: (5e-3, None),
}


def draw_case(seed: int, dtype: torch.dtype) -> dict:
    r = random.Random(seed)
    scoring = r.choice(["gatv2", "gatv2", "gat", "dot", "qkv"])
    bipartite = r.random() < 0.25
    flow = "source_to_target" if bipartite or r.random() < 0.8 else "target_to_source"
    edge_dim = r.choice([None, None, 1, 3])
    concat = r.random() < 0.6
    in_channels = r.randint(1, 5)
    arguments = {
        "heads": r.choice([1, 2, 3, 4]),
        "concat": concat,
        "negative_slope": r.choice([0.0, 0.2, 0.7]),
        "dropout": r.choice([0.0, 0.0, 0.5]),
        "add_self_loops": not bipartite and r.random() < 0.7,
        "edge_dim": edge_dim,
        "fill_value": r.choice(["mean", 0.5]),
        "bias": r.random() < 0.8,
        "share_weights": r.random() < 0.2,
        "residual": r.random() < 0.3,
        "aggr": r.choice(["add"] * 6 + ["mean", "max"]),
        "flow": flow,
    }
    own = {
        "index": r.choice([1.0, 1.0, 0.4, 1.3, 1.5, 1.9, "head", "head", "layer", "edge", "edge"]),
        "scoring": scoring,
        "normalizer": r.choice(["q_softmax"] * 3 + ["entmax", "softmax"]),
        "modifier": r.choice([None, None, "edge-bias", "edge-scale", "temperature"]),
        "delta": r.choice([0.5, 0.9]),
    }
    sources, edges = r.randint(1, 9), r.randint(0, 24)
    targets = r.randint(1, 7) if bipartite else sources
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.double).to(dtype)

    edge_index = torch.stack(
        [
            torch.randint(0, sources, (edges,), generator=generator),
            torch.randint(0, targets, (edges,), generator=generator),
        ]
    )
    return {
        "seed": seed, "dtype": dtype, "arguments": arguments, "own": own, "in_channels": in_channels,
        "channels": r.randint(1, 5), "edge_index": edge_index.to(r.choice([torch.int64, torch.int64, torch.int32])),
        "x": (draw(sources, in_channels), draw(targets, in_channels)) if bipartite else draw(sources, in_channels),
        "attr": None if edge_dim is None else draw(edges, edge_dim), "backend": r.choice(["auto", "numba", "torch"]),
        "factor": draw, "training": r.random() < 0.7,
    }  # fmt: skip


def make_layers(case: dict) -> tuple[LTGAConv, GATv2Conv | None]:
    """(the layer, PyG's if it is one of its kind)."""
    arguments = case["arguments"]
    ends = case["in_channels"]
    if isinstance(case["x"], tuple):
        ends = (ends, ends)
    torch.manual_seed(case["seed"])
    ours = LTGAConv(ends, case["channels"], backend=case["backend"], **arguments, **case["own"])
    generator = torch.Generator().manual_seed(case["seed"] + 1)
    with torch.no_grad():  # nothing at its start: every gradient counts
        for parameter in ours.parameters():
            parameter.add_(0.4 * torch.randn(parameter.shape, generator=generator))
    ours = ours.to(case["dtype"]).train(case["training"])
    own, theirs = case["own"], None
    gatv2 = own["index"] == 1.0 or own["normalizer"] == "softmax"
    if gatv2 and own["scoring"] == "gatv2" and own["modifier"] is None:
        theirs = GATv2Conv(ends, case["channels"], **arguments).to(case["dtype"]).train(case["training"])
        theirs.load_state_dict({k: v for k, v in ours.state_dict().items() if not k.startswith("index")})
    return ours, theirs


def run(call, leaves: dict[str, torch.Tensor], case: dict, second: bool) -> dict[str, torch.Tensor]:
    """Output, weights, gradients of a loss linear in both and, if asked for, of a function of those gradients."""
    torch.manual_seed(7)
    out, weights = call()
    values = {"out": out, "weights": weights}

    def like(value: torch.Tensor, name: str) -> torch.Tensor:
        generator = torch.Generator().manual_seed(zlib.crc32(f"{name} {case['seed']}".encode()))
        return torch.randn(value.shape, generator=generator, dtype=torch.double).to(value.dtype)

    loss = (out * like(out, "out")).sum() + (weights * like(weights, "weights")).sum()
    names = list(leaves)
    if not loss.requires_grad:  # no edges, no bias
        return {name: v.detach().double() for name, v in values.items()}
    found = torch.autograd.grad(loss, list(leaves.values()), create_graph=second, allow_unused=True)
    values |= {f"d {name}": g for name, g in zip(names, found)}
    if second and any(g is not None and g.requires_grad for g in found):
        penalty = sum((g * like(g, name)).sum() for name, g in zip(names, found) if g is not None)
        again = torch.autograd.grad(penalty, list(leaves.values()), allow_unused=True)
        values |= {f"dd {name}": g for name, g in zip(names, again)}
    return {name: torch.zeros(0) if v is None else v.detach().double() for name, v in values.items()}


def of_layer(conv, case: dict, second: bool) -> dict[str, torch.Tensor]:
    x = tuple(part.clone().requires_grad_() for part in case["x"]) if isinstance(case["x"], tuple) else None
    single = None if x else case["x"].clone().requires_grad_()
    attr = None if case["attr"] is None else case["attr"].clone().requires_grad_()
    leaves = {"x0": x[0], "x1": x[1]} if x else {"x0": single}
    if attr is not None:
        leaves["attr"] = attr
    leaves |= dict(conv.named_parameters())

    def call() -> tuple[torch.Tensor, torch.Tensor]:
        out, (_, weights) = conv(x or single, case["edge_index"], attr, return_attention_weights=True)
        return out, weights

    return run(call, leaves, case, second)


def of_referee(conv: LTGAConv, case: dict, second: bool, noise: float = 0.0, draw: int = 0) -> dict[str, torch.Tensor]:
    """The truth; with ``noise``, as it is when inputs and intermediate values are off by so much, relatively."""
    generator = torch.Generator().manual_seed(1000 * case["seed"] + draw)

    def wide(value: torch.Tensor) -> torch.Tensor:
        return blur(value.detach().double()).detach().requires_grad_()

    def blur(value: torch.Tensor) -> torch.Tensor:
        if noise == 0.0 or not value.numel():
            return value
        off = torch.randn(value.shape, generator=generator, dtype=torch.double)
        return value + noise * value.detach().abs().amax() * off

    parameters = {name: wide(parameter) for name, parameter in conv.named_parameters()}
    x = case["x"] if isinstance(case["x"], tuple) else (case["x"],)
    x = tuple(wide(part) for part in x)
    leaves = {f"x{n}": part for n, part in enumerate(x)}
    attr = None if case["attr"] is None else wide(case["attr"])
    if attr is not None:
        leaves["attr"] = attr
    leaves |= parameters
    arguments, own = case["arguments"], case["own"]
    edges = case["edge_index"].long()
    count = edges.size(1)
    if arguments["add_self_loops"]:
        count = int((edges[0] != edges[1]).sum()) + len(x[0])

    def call() -> tuple[torch.Tensor, torch.Tensor]:
        keep = None
        if conv.training and conv.dropout > 0:
            keep = F.dropout(torch.ones(count, conv.heads, dtype=case["dtype"]), conv.dropout).double()
        return referee.layer(
            parameters, (x[0], x[-1]), edges, attr, heads=conv.heads, concat=conv.concat, slope=conv.negative_slope,
            aggr=arguments["aggr"], loops=arguments["add_self_loops"], fill=arguments["fill_value"], keep=keep,
            flip=arguments["flow"] != "source_to_target", blur=blur, **own,
        )  # fmt: skip

    return run(call, leaves, case, second)


def distance(actual: dict, wanted: dict, order: str) -> dict[str, float]:
    """Largest deviation of every value of an order, relative to the largest of that order."""
    chosen = {name: value for name, value in wanted.items() if name.startswith(order)}
    scale = max([float(value.abs().max()) for value in chosen.values() if value.numel()] + [1.0])
    found = {}
    for name, value in chosen.items():
        got = actual.get(name, torch.zeros(0))
        got = torch.zeros_like(value) if not got.numel() else got  # never reached: no gradient
        value = torch.zeros_like(got) if not value.numel() else value
        found[name] = float((got - value).abs().max()) / scale if value.numel() else 0.0
        if not torch.isfinite(got).all():
            found[name] = float("inf")
    return found


ORDERS = ("out", "weights", "d ", "dd ")


def faults_of(case: dict) -> list[str]:
    """What is wrong with a case; empty if nothing is."""
    ours, theirs = make_layers(case)
    second = case["dtype"] in (torch.double, torch.float) and case["arguments"]["aggr"] != "max"
    # Gradients that will be differentiated come from the definition, all others from the kernels.
    actual = (of_layer(ours, case, second) if second else {}) | of_layer(ours, case, False)
    wanted = of_referee(ours, case, second)
    first_order, second_order = TOLERANCE[case["dtype"]]
    faults = []
    blurred = None
    for order in ORDERS if second else ORDERS[:3]:
        limit = second_order if order == "dd " else first_order
        for name, error in distance(actual, wanted, order).items():
            allowed = limit
            if not error <= limit and case["dtype"] != torch.double:
                # What rounding does to this case shows in the truth for values that are off by as much (a ReLU's
                # argument changes sign, another message is the largest), and in PyG's layer where there is one.
                noise = torch.finfo(case["dtype"]).eps
                blurred = blurred or [of_referee(ours, case, second, noise, draw) for draw in range(12)]
                peers = blurred + ([] if theirs is None else [of_layer(theirs, case, second)])
                allowed = max(limit, 3 * max(max(distance(peer, wanted, order).values()) for peer in peers))
            if not error <= allowed:
                faults.append(f"{name}: off by {error:.2e}, allowed {allowed:.2e}")
    return faults


def check(dtype: torch.dtype, cases: range, **other: str) -> None:
    broken = {}
    for seed in cases:
        faults = faults_of(draw_case(seed, dtype) | other)
        if faults:
            broken[seed] = faults[:3]
    name = " ".join(("layer", *other.values()))
    tally.report(f"{name}, {str(dtype).removeprefix('torch.')}", len(cases), len(broken))
    assert not broken, dict(list(broken.items())[:5])


@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
def test_some_layers(dtype):
    check(dtype, range(QUICK if dtype == torch.double else QUICK // 3))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
def test_many_layers(dtype):
    check(dtype, range(10_000, 10_000 + MANY))


@pytest.mark.triton
@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
def test_layers_on_triton(dtype, monkeypatch):
    """Nodes of more than three edges are cut into parts."""
    monkeypatch.setattr(long_rows, "SPLIT", 3)
    check(dtype, range(50_000, 50_000 + QUICK // 10), backend="triton")
