"""The fused edge gate against the same perceptron in plain torch."""

import pytest
import torch
from torch import nn

from ltga import LTGAError
from ltga.kernels import edge_mlp, neighbourhoods
from ltga.nn import LTGAConv


def setup(dtype=torch.float64, nodes=40, edges=300, depth=8, heads=3):
    generator = torch.Generator().manual_seed(1)
    edge_index = torch.randint(0, nodes, (2, edges), generator=generator)
    graph = neighbourhoods(edge_index, nodes, nodes, True)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=dtype).requires_grad_()

    return graph, (draw(nodes, depth), draw(nodes, depth), draw(heads, depth), draw(heads))


def plain(graph, per_target, per_source, weight, bias, bound):
    j, i = graph.edge_index
    out = torch.relu(per_target[i] + per_source[j]) @ weight.t() + bias
    return 1 + bound * torch.tanh(out) if bound else out


@pytest.mark.parametrize("bound", [0.0, 1.0, 0.3])
@pytest.mark.parametrize("csr_order", [False, True])
@pytest.mark.parametrize(("depth", "heads"), [(8, 8), (8, 3), (1, 1), (5, 11)])
def test_values_and_gradients(depth, heads, csr_order, bound):
    graph, leaves = setup(depth=depth, heads=heads)
    order = graph.perm.long() if csr_order else slice(None)
    actual, wanted = edge_mlp(*leaves, *graph.structure, csr_order, bound), plain(graph, *leaves, bound)[order]
    assert torch.allclose(actual, wanted, atol=1e-12)
    upstream = torch.randn(wanted.shape, dtype=wanted.dtype)
    gradients = (torch.autograd.grad(value, leaves, upstream) for value in (actual, wanted))
    for ours, reference in zip(*gradients):
        assert torch.allclose(ours, reference, atol=1e-10)


@pytest.mark.parametrize("bound", [0.0, 1.5])
def test_gradcheck(bound):
    graph, leaves = setup(nodes=6, edges=10, depth=3, heads=2)
    assert torch.autograd.gradcheck(lambda *values: edge_mlp(*values, *graph.structure, True, bound), leaves)


def test_the_bounded_gate_is_exactly_one_at_the_start_and_saturates():
    graph, (per_target, per_source, weight, bias) = setup(torch.float32)
    start = edge_mlp(
        per_target, per_source, torch.zeros_like(weight), torch.zeros_like(bias), *graph.structure, True, 1.0
    )
    assert (start == 1).all()
    far = edge_mlp(
        per_target, per_source, torch.zeros_like(weight), bias.detach() * 0 + 1e4, *graph.structure, True, 1.0
    )
    assert (far == 2).all()


def test_opcheck():
    graph, leaves = setup(nodes=6, edges=10)
    torch.library.opcheck(torch.ops.ltga.edge_mlp.default, (*leaves, *graph.structure, True, 1.0))


def test_same_bits_for_any_number_of_threads():
    graph, leaves = setup(torch.float32, nodes=500, edges=20000)
    threads, results = torch.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            out = edge_mlp(*leaves, *graph.structure, True, 1.0)
            results.append((out, *torch.autograd.grad(out.square().sum(), leaves)))
    finally:
        torch.set_num_threads(threads)
    for other in results[1:]:
        assert all(a.equal(b) for a, b in zip(results[0], other))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, torch.zeros(39, 8)),
        (1, torch.zeros(39, 8)),
        (2, torch.zeros(3, 7)),
        (2, torch.zeros(3, 8, dtype=torch.float64)),
        (2, torch.zeros(3, 8, dtype=torch.float16)),
        (3, torch.zeros(4)),
        (0, torch.zeros(8)),
    ],
)
def test_bad_input(place, value):
    graph, leaves = setup(torch.float32)
    arguments = [leaf.detach() for leaf in leaves]
    arguments[place] = value
    with pytest.raises(LTGAError):
        edge_mlp(*arguments, *graph.structure, False)


def test_hooks_on_the_gate_still_fire():
    conv = LTGAConv(4, 3, heads=2, index="edge")
    x, edge_index = torch.randn(20, 4), torch.randint(0, 20, (2, 60))
    nn.init.normal_(conv.index.gate.out.weight)
    wanted, seen = conv(x, edge_index), []
    handle = conv.index.gate.out.register_forward_hook(lambda *_: seen.append(1))
    assert torch.allclose(conv(x, edge_index), wanted, atol=1e-6)
    handle.remove()
    assert seen == [1]


def test_inspection_reports_q_in_the_callers_order():
    """Each edge's q must follow from its own endpoints, whatever order the kernels worked in."""
    conv = LTGAConv(4, 3, heads=2, index="edge", add_self_loops=False)
    nn.init.normal_(conv.index.gate.out.weight)
    x, edge_index = torch.randn(20, 4), torch.randint(0, 20, (2, 60))
    fused = conv.attend(x, edge_index)
    conv.backend = "torch"
    assert torch.allclose(fused.q, conv.attend(x, edge_index).q, atol=1e-6)
    assert fused.q.std() > 0.01
