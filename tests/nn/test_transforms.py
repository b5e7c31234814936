"""Second derivatives, torch.func, forward mode, torch.compile, torch.export and meta tensors."""

import gc
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad
from torch.func import functional_call, grad, jacfwd, jacrev, jvp, vmap
from torch_geometric.nn import GATv2Conv

from ltga.functional import entmax, q_softmax, segment_entmax, segment_q_softmax
from ltga.nn import LTGAConv

TRITON = pytest.param("triton", marks=pytest.mark.triton)
BACKENDS = ["auto", "numba", "torch", TRITON]
KINDS = [
    {},
    {"index": "edge"},
    {"normalizer": "entmax"},
    {"normalizer": "entmax", "index": 1.5},
    {"scoring": "gat", "modifier": "edge-scale"},
    {"scoring": "qkv", "modifier": "temperature"},
    {"scoring": "dot", "concat": False},
]
X = torch.randn(6, 5, dtype=torch.double, generator=torch.Generator().manual_seed(0))
EDGES = torch.randint(0, 6, (2, 14), generator=torch.Generator().manual_seed(1))
ATTR = torch.randn(14, 3, dtype=torch.double, generator=torch.Generator().manual_seed(2))


def build(backend, **kind):
    torch.manual_seed(3)
    conv = LTGAConv(5, 3, heads=2, edge_dim=3, backend=backend, **kind).double()
    for parameter in conv.parameters():
        nn.init.normal_(parameter, std=0.4)
    return conv


def penalty_gradients(conv, x):
    """The gradients of a function of the gradient of a loss that is linear in the output."""
    x = x.clone().requires_grad_()
    (g,) = torch.autograd.grad(conv(x, EDGES, ATTR.to(x.dtype)).sum(), x, create_graph=True)
    conv.zero_grad()
    g.square().sum().backward()
    return {"x": x.grad, **{name: p.grad for name, p in conv.named_parameters()}}


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("backend", ["auto", "numba", TRITON])
def test_a_gradient_penalty_sees_the_attention(backend, kind):
    wanted = penalty_gradients(build("torch", **kind), X)
    actual = penalty_gradients(build(backend, **kind), X)
    assert wanted["lin_l.weight"].abs().sum() > 0
    for name, value in wanted.items():
        assert (value is None) == (actual[name] is None) or value.abs().max() == 0, name
        if value is not None and actual[name] is not None:
            assert torch.allclose(actual[name], value, rtol=1e-8, atol=1e-9), name


def test_a_gradient_penalty_is_gatv2s():
    torch.manual_seed(3)
    theirs, ours = (
        GATv2Conv(5, 3, heads=2, edge_dim=3).double(),
        LTGAConv(5, 3, heads=2, edge_dim=3, index=1.0).double(),
    )
    ours.load_state_dict(theirs.state_dict())
    wanted, actual = penalty_gradients(theirs, X), penalty_gradients(ours, X)
    assert wanted["att"].abs().max() > 0
    for name, value in wanted.items():
        value, found = (torch.zeros(1) if grad is None else grad for grad in (value, actual[name]))
        assert torch.allclose(value.double(), found.double(), atol=1e-9), name


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_second_derivatives_by_finite_differences(kind):
    conv = build("auto", **kind).eval()
    x = X.clone().requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x: conv(x, EDGES, ATTR), (x,), atol=1e-4)


@pytest.mark.parametrize("alpha", [1.2, 1.5, 1.8])
def test_second_derivatives_of_entmax_in_single_precision(alpha):
    z = torch.randn(7, 9, generator=torch.Generator().manual_seed(4))

    def second(z, *form):
        z = z.clone().requires_grad_()
        (g,) = torch.autograd.grad((form[0](z) * torch.arange(9.0, dtype=z.dtype)).sum(), z, create_graph=True)
        return torch.autograd.grad(g.square().sum(), z)[0]

    segments = torch.arange(7).repeat_interleave(9)
    for form in (lambda z: entmax(z, alpha), lambda z: segment_entmax(z.flatten(), alpha, segments).view(7, 9)):
        wide, single = second(z.double(), form), second(z, form)
        assert float((single - wide).abs().max() / wide.abs().max()) < 1e-4


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("backend", BACKENDS)
def test_torch_func(backend, kind):
    conv, plain = build(backend, **kind), build("torch", **kind)
    parameters = {name: p.detach() for name, p in conv.named_parameters()}

    def loss(parameters, x):
        return functional_call(conv, parameters, (x, EDGES, ATTR)).square().sum()

    found = grad(loss)(parameters, X)
    plain(X, EDGES, ATTR).square().sum().backward()
    for name, p in plain.named_parameters():
        assert torch.allclose(found[name], torch.zeros(1).double() if p.grad is None else p.grad, atol=1e-10), name
    batch = torch.randn(4, 6, 5, dtype=torch.double, generator=torch.Generator().manual_seed(5))
    one_by_one = torch.stack([plain(x, EDGES, ATTR) for x in batch])
    assert torch.allclose(vmap(lambda x: conv(x, EDGES, ATTR))(batch), one_by_one, atol=1e-10)
    per_sample = vmap(grad(loss), in_dims=(None, 0))(parameters, batch)
    for n, x in enumerate(batch):
        for name, value in grad(loss)(parameters, x).items():
            assert torch.allclose(per_sample[name][n], value, atol=1e-10), name
    wanted = torch.autograd.functional.jacobian(lambda x: plain(x, EDGES, ATTR), X)
    for transform in (jacrev, jacfwd):
        assert torch.allclose(transform(lambda x: conv(x, EDGES, ATTR))(X), wanted, atol=1e-10), transform


@pytest.mark.parametrize("with_gradients", [True, False])
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("backend", BACKENDS)
def test_forward_mode_keeps_its_tangents(backend, kind, with_gradients):
    conv, plain = build(backend, **kind), build("torch", **kind)
    direction = torch.randn(6, 5, dtype=torch.double, generator=torch.Generator().manual_seed(6))
    jacobian = torch.autograd.functional.jacobian(lambda x: plain(x, EDGES, ATTR), X)
    with torch.set_grad_enabled(with_gradients), forward_ad.dual_level():
        out = forward_ad.unpack_dual(conv(forward_ad.make_dual(X, direction), EDGES, ATTR))
    assert torch.allclose(out.tangent, torch.einsum("abcd,cd->ab", jacobian, direction), atol=1e-10)


@pytest.mark.parametrize("normalise", [q_softmax, entmax], ids=["q_softmax", "entmax"])
def test_the_maths_alone_under_torch_func(normalise):
    z = torch.randn(4, 3, 5, dtype=torch.double, generator=torch.Generator().manual_seed(7))
    q = torch.tensor([0.6, 1.4, 1.7], dtype=torch.double)
    together = vmap(vmap(normalise, in_dims=(0, 0)), in_dims=(0, None))(z, q)
    assert torch.allclose(together, torch.stack([torch.stack([normalise(r, a) for r, a in zip(b, q)]) for b in z]))
    _, tangent = jvp(lambda a: normalise(z[0, 0], a), (q[1],), (torch.ones_like(q[1]),))
    step = 1e-6
    difference = (normalise(z[0, 0], q[1] + step) - normalise(z[0, 0], q[1] - step)) / (2 * step)
    assert torch.allclose(tangent, difference, atol=1e-7)
    by_head = segment_entmax if normalise is entmax else segment_q_softmax
    segments = torch.tensor([0, 0, 1, 1, 1])
    found = vmap(lambda rows: by_head(rows, q, segments))(z.transpose(1, 2))
    assert torch.allclose(found, torch.stack([by_head(rows, q, segments) for rows in z.transpose(1, 2)]))


def arguments(nodes, edges, with_attr, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(nodes, 5, dtype=torch.double, generator=generator)
    edge_index = torch.randint(0, nodes, (2, edges), generator=generator)
    attr = torch.randn(edges, 3, dtype=torch.double, generator=generator)
    return (x, edge_index, attr) if with_attr else (x, edge_index)


@pytest.mark.parametrize("edge_dim", [None, 3])
@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("backend", ["auto", "torch", TRITON])
def test_compiled_whole_with_sizes_that_change(backend, loops, edge_dim):
    torch._dynamo.reset()
    conv = LTGAConv(5, 3, heads=2, add_self_loops=loops, edge_dim=edge_dim, backend=backend).double()
    compiled = torch.compile(conv, fullgraph=True, dynamic=True, backend="aot_eager")
    for seed, (nodes, edges) in enumerate([(6, 14), (9, 20), (7, 31)]):
        given = arguments(nodes, edges, edge_dim, seed)
        leaves = [given[0].clone().requires_grad_() for _ in range(2)]
        outs = [call(leaf, *given[1:]) for call, leaf in zip((compiled, conv), leaves)]
        grads = [torch.autograd.grad(out.square().sum(), leaf)[0] for out, leaf in zip(outs, leaves)]
        assert torch.allclose(*outs) and torch.allclose(*grads)


EXPORTED = [
    {"add_self_loops": False},
    {"edge_dim": 3},
    {"edge_dim": 3, "add_self_loops": False, "index": "edge"},
    {"normalizer": "entmax", "index": "edge"},
    {"normalizer": "entmax", "scoring": "qkv", "concat": False},
    {"scoring": "gat", "modifier": "edge-scale"},
]


def exported(conv, edge_dim, strict=False):
    nodes, edges = torch.export.Dim("nodes", min=2), torch.export.Dim("edges", min=2)
    shapes = ({0: nodes}, {1: edges}, {0: edges}) if edge_dim else ({0: nodes}, {1: edges})
    return torch.export.export(conv, arguments(6, 14, edge_dim, 0), dynamic_shapes=shapes, strict=strict)


def operators_in(program):
    return {str(node.target) for node in program.graph.nodes if "ltga" in str(node.target)}


@pytest.mark.parametrize("kind", EXPORTED, ids=str)
@pytest.mark.parametrize("backend", BACKENDS)
def test_exported_with_dynamic_sizes(backend, kind):
    """A named backend's operators are in the program; "auto" leaves nothing in it that others would have to install."""
    conv = LTGAConv(5, 3, heads=2, backend=backend, **kind).double().eval()
    program = exported(conv, kind.get("edge_dim"))
    assert ("ltga.attend.default" in operators_in(program)) == (backend in ("numba", "triton"))
    assert kind.get("normalizer") == "entmax" or backend in ("numba", "triton") or not operators_in(program)
    for seed, (n, e) in enumerate([(9, 20), (30, 4)]):
        given = arguments(n, e, kind.get("edge_dim"), seed)
        assert torch.allclose(program.module()(*given), conv(*given))


@pytest.mark.filterwarnings("ignore:Dynamo detected")
@pytest.mark.parametrize("backend", ["auto", "numba"])
def test_exporting_strictly_makes_no_difference(backend):
    conv = LTGAConv(5, 3, heads=2, backend=backend, edge_dim=3).double().eval()
    strict, loose = (exported(conv, 3, strict=strict) for strict in (True, False))
    assert operators_in(strict) == operators_in(loose)
    given = arguments(9, 20, 3, 1)
    assert torch.allclose(strict.module()(*given), conv(*given))


@pytest.mark.parametrize("backend", ["auto", "numba"])
def test_an_exported_program_in_another_process(backend, tmp_path):
    """Plain torch runs wherever torch does; operators after ``import ltga.kernels``, and torch says so before it."""
    conv = LTGAConv(5, 3, heads=2, backend=backend).double().eval()
    given = arguments(9, 20, None, 1)
    torch.export.save(exported(conv, None), tmp_path / "program.pt2")
    torch.save((given, conv(*given)), tmp_path / "wanted.pt")
    code = f"""
import torch
given, wanted = torch.load({str(tmp_path / "wanted.pt")!r})
found = torch.export.load({str(tmp_path / "program.pt2")!r}).module()(*given)
assert torch.allclose(found, wanted)
"""
    without = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (without.returncode == 0) == (backend == "auto")
    if backend != "auto":
        assert "the custom op is not registered" in without.stderr
        subprocess.run([sys.executable, "-c", "import ltga.kernels\n" + code], check=True)


@pytest.mark.parametrize("backend", ["auto", "torch"])
def test_meta_tensors_have_shapes(backend):
    conv = LTGAConv(5, 3, heads=2, add_self_loops=False, edge_dim=3, backend=backend).to("meta")
    x, edges = torch.empty(6, 5, device="meta"), torch.empty(2, 14, dtype=torch.long, device="meta")
    assert conv(x, edges, torch.empty(14, 3, device="meta")).shape == (6, 6)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("aggr", ["add", "mean", "max"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_int32_edges_are_edges(backend, aggr, kind):
    results = []
    for dtype in (torch.int64, torch.int32):
        conv = build(backend, aggr=aggr, **kind)
        x = X.clone().requires_grad_()
        out, (edge_index, weights) = conv(x, EDGES.to(dtype), ATTR, return_attention_weights=True)
        assert edge_index.dtype == torch.int64
        out.square().sum().backward()
        results.append([out, weights, x.grad, *(p.grad for p in conv.parameters() if p.grad is not None)])
    for wanted, actual in zip(*results, strict=True):
        assert torch.equal(wanted, actual)


@pytest.mark.parametrize("form", [segment_q_softmax, segment_entmax])
def test_int32_segments_are_segments(form):
    z, index = torch.randn(14, 2, dtype=torch.double), EDGES[1].sort().values
    ptr = torch.tensor([0, *torch.bincount(index, minlength=6).cumsum(0).tolist()])
    leaves = [z.clone().requires_grad_() for _ in range(4)]
    kinds = ({"index": index}, {"index": index.int()}, {"ptr": ptr}, {"ptr": ptr.int()})
    outs = [form(leaf, 1.4, **kind) for leaf, kind in zip(leaves, kinds)]
    grads = [torch.autograd.grad(out.square().sum(), leaf)[0] for out, leaf in zip(outs, leaves)]
    for out, g in zip(outs[1:], grads[1:]):
        assert torch.allclose(out, outs[0]) and torch.allclose(g, grads[0])


@pytest.mark.parametrize("backend", ["auto", "numba", "torch"])
def test_passes_without_a_backward_leave_nothing_behind(backend):
    conv = LTGAConv(64, 32, heads=4, index="edge", backend=backend)
    x, edges = torch.randn(500, 64), torch.randint(0, 500, (2, 3000))

    def tensors():
        gc.collect()
        return sum(isinstance(thing, torch.Tensor) for thing in gc.get_objects())

    conv(x, edges)
    before = tensors()
    for _ in range(20):
        conv(x, edges)
    assert tensors() <= before + 2
