"""The GPU kernels in Triton's interpreter against the definition in double precision: values and every gradient."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
import torch

pytest.importorskip("triton")

from ltga import LTGAError
from ltga.bench.gpu_traffic import Traffic
from ltga.kernels import NORMALIZERS, SCORINGS, Neighbourhoods, aggregate, attend, edge_dot
from ltga.kernels.operators import attention_torch, attention_triton, trust
from ltga.kernels.operators.dropout import plain_mask
from ltga.kernels.operators.edge_dot import plain_edge_dot
from ltga.kernels.operators.operands import Kind, Needed, Operands, Structure
from ltga.kernels.operators.trust import Configuration, largest_error
from ltga.kernels.runtime import long_rows
from ltga.kernels.runtime.backends import is_interpreted
from ltga.nn import LTGAConv
from ltga.nn.masks import Draws

pytestmark = pytest.mark.skipif(not is_interpreted(), reason="no GPU to compile for: TRITON_INTERPRET is 0")
CPU = torch.device("cpu")
CLOSE = {torch.float64: 1e-12, torch.float32: 5e-6, torch.float16: 2e-3, torch.bfloat16: 2e-2}


@pytest.fixture(autouse=True)
def short_parts(monkeypatch):
    """Hubs of a dozen edges are long already."""
    monkeypatch.setattr(long_rows, "SPLIT", 8)


def gradients(module, operands, graph, kind, upstream):
    results = module.forward(operands, graph, kind)
    need = Needed(True, True, kind.normalizer != 0, kind.scoring == 0, True)
    return results, module.backward(*upstream, operands, graph, results, kind, need)._asdict()


def compare(operands, graph, kind, tolerance):
    """Triton against the definition; errors beside 1 and the value."""
    exact = Operands(*(None if value is None else value.double().requires_grad_() for value in operands))
    out, weights = attention_torch.forward(exact, graph, kind)
    upstream = torch.randn(out.shape).to(operands.x.dtype), torch.randn(weights.shape).to(operands.q.dtype)
    results, found = gradients(attention_triton, operands, graph, kind, upstream)
    names = [name for name, value in exact._asdict().items() if value is not None and name != "keep"]
    wanted = torch.autograd.grad(
        (out, weights), [getattr(exact, name) for name in names], [up.double() for up in upstream], allow_unused=True
    )
    pairs = {"out": (results.out, out), "weights": (results.weights, weights)}
    pairs |= {name: (found[name], grad) for name, grad in zip(names, wanted) if grad is not None}
    for name, (ours, theirs) in pairs.items():
        assert ours.shape == theirs.shape, name
        error = ((ours.double() - theirs).abs() / (1 + theirs.abs())).max()
        assert error < tolerance, f"{name}: {error:.1e}"  # NaN fails too
    return results


@pytest.mark.triton
@pytest.mark.parametrize("dtype", CLOSE, ids=str)
@pytest.mark.parametrize("normalizer", NORMALIZERS)
@pytest.mark.parametrize("scoring", SCORINGS)
def test_every_kernel_for_every_dtype(scoring, normalizer, dtype):
    """Empty rows, single edges, ties, masked logits, split hubs, dropout, scale, shift, q per head and per edge."""
    features = 0 if scoring == "given" else 2
    assert largest_error(Configuration(scoring, normalizer, 3, 5, features, dtype), CPU) < 2 * CLOSE[dtype]


@pytest.mark.parametrize(
    ("scoring", "normalizer", "per_edge"), [("gatv2", "q_softmax", True), ("dot", "entmax", False)]
)
def test_a_layer_averaged_over_heads(scoring, normalizer, per_edge):
    torch.manual_seed(0)
    graph, operands = trust._example(Configuration(scoring, normalizer, 3, 4, 0, torch.float64), per_edge)
    operands = operands._replace(bias=torch.randn(1, 4, dtype=torch.float64))
    compare(operands, graph, Kind(SCORINGS[scoring], NORMALIZERS[normalizer], 0.2, 0.5, True), 1e-12)


def logits_only(given, q, edge_index=None, sources=1):
    """Operands of attention over given logits [E, H]; one row if no edges are named."""
    edge_index = torch.stack([torch.zeros(len(given)).long()] * 2) if edge_index is None else edge_index
    graph = Structure(*Neighbourhoods.build(edge_index, sources, sources).structure)
    x = torch.randn(sources, given.size(1), 2, dtype=given.dtype)
    return Operands(x, given=given, q=torch.as_tensor(q, dtype=given.dtype).expand(1, given.size(1))), graph


@pytest.mark.triton
@pytest.mark.parametrize("normalizer", ["q_softmax", "entmax"])
@pytest.mark.parametrize("q", [-0.9, 0.0, 0.5, 0.999999, 1.0, 1.000001, 1.3, 1.5, 2.0, 2.5, 3.9])
def test_values_and_derivatives_through_every_index(q, normalizer):
    torch.manual_seed(1)
    given = 2 * torch.randn(13, 2, dtype=torch.float64)
    given[5] = -torch.inf
    given[7] = given[3]
    operands, graph = logits_only(given, q)
    compare(operands, graph, Kind(0, NORMALIZERS[normalizer], 0.2, 1.0, False), 1e-9)
    single = Operands(*(None if value is None else value.float() for value in operands))
    compare(single, graph, Kind(0, NORMALIZERS[normalizer], 0.2, 1.0, False), 2e-4 if q > 2 else 2e-5)


def test_masked_rows_are_zero_and_broken_ones_are_seen():
    given = torch.tensor([[-torch.inf], [-torch.inf], [1.0], [torch.nan], [torch.inf], [0.0]])
    edge_index = torch.tensor([[0, 1, 0, 1, 0, 1], [0, 0, 1, 1, 2, 2]])
    for normalizer in NORMALIZERS.values():
        operands, graph = logits_only(given, 1.5, edge_index, sources=3)
        results = attention_triton.forward(operands, graph, Kind(0, normalizer, 0.2, 1.0, False))
        assert results.weights[:2].eq(0).all() and results.out[0].eq(0).all()
        assert results.weights[2:].isnan().all()


def test_zeros_are_exact_and_their_features_are_not_read():
    given = torch.tensor([[0.0], [-5.0]])
    operands, graph = logits_only(given, 2.0, torch.tensor([[0, 1], [0, 0]]), sources=2)
    operands.x[1] = torch.inf
    for normalizer in (1, 2):
        results = attention_triton.forward(operands, graph, Kind(0, normalizer, 0.2, 1.0, False))
        assert results.weights.tolist() == [[1.0], [0.0]] and results.out[0].isfinite().all()


def rows_of_logits(shape):
    """Given logits over rows of many lengths; with 256 channels a block has four edges, half as many in float64."""
    lengths = [0, 1, 3, 5, 19]
    target = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    place = torch.cat([torch.arange(length) for length in lengths]).double()
    given = {
        "rising": 3 * place,  # every block has a new maximum
        "falling": -3 * place,
        "ties": torch.zeros(len(target)).double(),
        "far apart": 1e4 * torch.randn(len(target)).double(),
        "masked at first": torch.where(place < 9, -torch.inf, place),  # whole blocks, a whole part, whole rows
        "masked later": torch.where(place > 1, -torch.inf, place),
    }[shape]
    edge_index = torch.stack([torch.randint(0, len(lengths), target.shape), target])[:, torch.randperm(len(target))]
    graph = Structure(*Neighbourhoods.build(edge_index, len(lengths), len(lengths)).structure)
    own = torch.empty_like(given).index_copy_(0, graph.perm.long(), given)  # in the caller's order
    x = torch.randn(len(lengths), 1, 256, dtype=torch.float64)
    return Operands(x, given=own[:, None], q=torch.ones(1, 1).double(), bias=torch.randn(1, 256).double()), graph


SHAPES = ["rising", "falling", "ties", "far apart", "masked at first", "masked later"]


@pytest.mark.parametrize("shape", SHAPES)
def test_softmax_in_one_pass(shape):
    """Blocks and parts of rows whose maximum comes first, last or never; half of the weights dropped by key."""
    torch.manual_seed(0)
    operands, graph = rows_of_logits(shape)
    kind = Kind(0, 0, 0.2, 1.0, False, backend="triton", dropout=0.5, key=77)
    exact, weights = attention_torch.forward(operands, graph, kind)
    results = attention_triton.forward(operands, graph, kind)
    assert torch.allclose(results.out, exact, rtol=1e-12, atol=1e-12)
    assert torch.allclose(results.weights, weights, rtol=1e-12, atol=1e-12)


@pytest.mark.triton
@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("dtype", CLOSE, ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_softmax_in_one_pass_and_its_gradients(shape, dtype, dropout):
    """The same in every type, with and without parts."""
    torch.manual_seed(0)
    operands, graph = rows_of_logits(shape)
    wide = torch.promote_types(dtype, torch.float32)
    operands = Operands(*(None if value is None else value.to(wide) for value in operands))
    for split in (8, 1024):
        long_rows.SPLIT = split
        kind = Kind(0, 0, 0.2, 1.0, False, backend="triton", dropout=dropout, key=77)
        compare(operands._replace(x=operands.x.to(dtype)), graph, kind, CLOSE[dtype])


class ReadsOf(Traffic):
    """Counts how many elements of one tensor kernels load."""

    def __init__(self, tensor):
        super().__init__()
        self.begin, self.end, self.count = tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes, 0

    def _note(self, pointers, mask, written):
        places = np.asarray(pointers.data).ravel()[np.asarray(mask.data, bool).ravel()].astype(np.int64)
        self.count += int(((places >= self.begin) & (places < self.end)).sum())


@pytest.mark.parametrize("scoring", ["gatv2", "dot"])
def test_softmax_reads_features_once(scoring):
    graph, operands = trust._example(Configuration(scoring, "softmax", 2, 5, 0, torch.float32), False)
    for normalizer, times in (("softmax", [1, 1]), ("q_softmax", [1.1, 2])):  # zeros are not read again
        with ReadsOf(operands.x) as traffic:
            attention_triton.forward(operands, graph, Kind(SCORINGS[scoring], NORMALIZERS[normalizer], 0.2, 1.0, False))
        assert times[0] <= traffic.count / (len(graph.col) * 2 * 5) <= times[1]


def test_a_softmax_weight_of_zero_lets_no_infinite_feature_through():
    """Whether the edge that outweighs it comes before or after it, in its block, another block or another part."""
    for split, gap in ((8, 12), (1024, 1), (1024, 12)):
        long_rows.SPLIT = split
        for first, second in ((0, gap), (gap, 0)):
            given = torch.full((14, 1), -torch.inf)
            given[first], given[second] = 500.0, 0.0
            ends = torch.zeros(2, 14).long()
            ends[0, second] = 1
            operands, graph = logits_only(given, 1.0, ends, sources=2)
            operands = operands._replace(x=torch.randn(2, 1, 256))
            operands.x[1] = torch.inf
            results = attention_triton.forward(operands, graph, Kind(0, 0, 0.2, 1.0, False))
            assert torch.equal(results.out[0], operands.x[0])


@pytest.mark.parametrize("p", [0.3, 1.0])
def test_dropout_masks_are_those_of_the_cpu(p):
    x = torch.ones(3, 700)
    rows = torch.tensor([5, 0, 2])
    for key in (1, -(2**62), 2**63 - 1):
        assert np.array_equal(
            attention_triton.dropped(x, p, key, None).numpy(), plain_mask((3, 700), p, key).float().numpy()
        )
        part = plain_mask((3, 700), p, key, rows).float().numpy()
        assert np.array_equal(attention_triton.dropped(x, p, key, rows).numpy(), part)


def test_dropout_by_key_is_the_mask_of_that_key_forward_and_backward():
    torch.manual_seed(0)
    graph, operands = trust._example(Configuration("gatv2", "q_softmax", 2, 4, 0, torch.float64), False)
    key, edges = 2**62 + 12345, len(graph.col)
    keyed = Kind(1, 1, 0.2, 0.5, False, backend="triton", dropout=0.4, key=key)
    mask = plain_mask((edges, 2), 0.4, key)
    upstream = torch.randn(len(graph.ptr) - 1, 2, 4, dtype=torch.float64), None
    found = [
        gradients(attention_triton, operands._replace(keep=keep), graph, kind, upstream)
        for keep, kind in ((None, keyed), (mask, keyed._replace(dropout=0.0)))
    ]
    assert torch.equal(found[0][0].out, found[1][0].out)
    for name in ("x", "target", "att", "q"):
        assert torch.equal(found[0][1][name], found[1][1][name])
    exact, _ = attention_torch.forward(operands._replace(keep=None), graph, keyed)
    assert torch.allclose(found[0][0].out, exact)


def test_a_layer_drops_the_same_edges_on_both_backends():
    layers = [LTGAConv(6, 4, heads=2, dropout=0.5, backend=backend) for backend in ("triton", "numba")]
    layers[1].load_state_dict(layers[0].state_dict())
    x, edge_index = torch.randn(5, 6), torch.randint(0, 5, (2, 12))
    ours, theirs = (layer(x, edge_index, draws=Draws((3, 1))) for layer in layers)
    assert torch.allclose(ours, theirs, atol=1e-5)


def test_products_along_edges_and_sums_over_them():
    torch.manual_seed(0)
    edge_index = torch.cat([torch.randint(0, 5, (2, 20)), torch.tensor([[0] * 12, [1, 2, 3] * 4])], 1)
    graph = Neighbourhoods.build(edge_index, 5, 6)
    key, query = (torch.randn(n, 3, 4, dtype=torch.float64, requires_grad=True) for n in (5, 6))
    ours = edge_dot(key, query, *graph.structure, 0.5, "triton")
    theirs = plain_edge_dot(key, query, graph.ptr, graph.col, graph.perm, 0.5)
    up = torch.randn_like(ours)
    assert torch.allclose(ours, theirs)
    for a, b in zip(torch.autograd.grad(ours, (key, query), up), torch.autograd.grad(theirs, (key, query), up)):
        assert torch.allclose(a, b)
    with torch.no_grad():
        summed = aggregate(up, key, graph.ptr, graph.col, "triton")
        assert torch.allclose(summed, aggregate(up, key, graph.ptr, graph.col))


def test_the_registered_operator_passes_torchs_own_checks():
    graph, operands = trust._example(Configuration("gatv2", "q_softmax", 2, 4, 0, torch.float32), True)
    wanted = [
        None if value is None or name == "keep" else value.requires_grad_()
        for name, value in operands._asdict().items()
    ]
    arguments = (*wanted, *graph, 1, 1, 0.2, 0.5, False, False, "triton", 0.0, 0)
    torch.library.opcheck(torch.ops.ltga.attend.default, arguments, test_utils=("test_schema", "test_faketensor"))
    assert attend(*arguments)[0].requires_grad


def test_half_precision_stays_half_and_sums_are_single():
    conv = LTGAConv(6, 4, heads=2, backend="triton").bfloat16()
    x = torch.randn(5, 6).bfloat16().requires_grad_()
    out, (_, weights) = conv(x, torch.randint(0, 5, (2, 12)), return_attention_weights=True)
    out.sum().backward()
    assert out.dtype == weights.dtype == x.grad.dtype == torch.bfloat16
    plain = LTGAConv(6, 4, heads=2, backend="torch").double()
    plain.load_state_dict(conv.state_dict())
    assert {parameter.grad.dtype for parameter in conv.parameters()} == {torch.bfloat16}


@pytest.mark.parametrize(
    ("normalizer", "forward"),
    [("softmax", {"forward_softmax", "join_softmax", "softmax_weights"}), ("q_softmax", {"forward_rows"})],
)
def test_no_program_reads_what_its_launch_writes(normalizer, forward):
    """A race on a real device: programs and threads of one launch run in any order."""
    graph, operands = trust._example(Configuration("gatv2", normalizer, 3, 4, 2, torch.float32), True)
    kind, upstream = Kind(1, NORMALIZERS[normalizer], 0.2, 0.5, False), (torch.randn(len(graph.ptr) - 1, 3, 4), None)
    with Traffic() as traffic:
        gradients(attention_triton, operands, graph, kind, upstream)
    started = {name for name, _ in traffic.launches}
    assert forward | {"backward_targets", "backward_sources", "join_parts"} <= started
    assert ("forward_rows" in started) == (normalizer != "softmax")
    for name, launch in traffic.launches:
        assert not launch.read & launch.written, name
        assert len(launch.written) * 4 <= launch.bytes_written, name
        assert launch.stores == len(launch.written), f"{name}: some place is written twice"


def test_what_triton_cannot_do_is_refused_by_name(monkeypatch):
    wide = LTGAConv(3, 2000, backend="triton")
    x, edge_index = torch.randn(2, 3), torch.tensor([[0], [1]])
    with pytest.raises(LTGAError, match="1024 channels"):
        wide(x, edge_index)
    monkeypatch.setenv("TRITON_INTERPRET", "0")
    with pytest.raises(LTGAError, match="backend: 'triton' needs Triton and a GPU"):
        LTGAConv(3, 2, backend="triton")(x, edge_index)


def test_importing_ltga_does_not_import_triton():
    code = "import sys, ltga, ltga.kernels, ltga.nn; assert 'ltga.kernels.triton' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm_80", "sm_90", "gfx942"])
def test_kernels_compile_for_real_devices_without_spilling(target):
    code = """
import sys, torch
from ltga.bench.gpu_code import Configuration, compile_kernels
for dtype in (torch.float32, torch.bfloat16):
    for scoring in ("gatv2", "given", "dot"):
        for normalizer in ("softmax", "q_softmax", "entmax"):
            setting = Configuration(scoring, normalizer, 8, 64, 3 if scoring == "gatv2" else 0, dtype)
            for found in compile_kernels(setting, sys.argv[1], normalizer == "q_softmax"):
                assert found.spilled == 0, (setting, found)
                assert 0 < found.registers <= 255 and found.shared <= 48 * 1024, (setting, found)
"""
    import os

    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    subprocess.run([sys.executable, "-c", code, target], check=True, env=environment)


@pytest.mark.triton
def test_rows_of_every_length():
    """Around the bounds of blocks and parts, and one of thousands, with parts as long as they really are."""
    long_rows.SPLIT = 1024
    torch.manual_seed(0)
    lengths = [0, 1, 3, 4, 5, 63, 64, 65, 1023, 1024, 1025, 2500]
    target = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    edge_index = torch.stack([torch.randint(0, len(lengths), target.shape), target])
    given = torch.randn(len(target), 1, dtype=torch.float64)
    for normalizer, q in [("softmax", 1.0), *itertools.product(("q_softmax", "entmax"), (0.7, 1.4))]:
        operands, graph = logits_only(given, q, edge_index, sources=len(lengths))
        compare(operands, graph, Kind(0, NORMALIZERS[normalizer], 0.2, 1.0, False), 1e-10)


@pytest.mark.triton
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_a_row_of_a_hundred_thousand_edges(normalizer):
    """Ninety-eight programs share the row, and as many the one source that all of its edges leave from."""
    long_rows.SPLIT = 1024
    torch.manual_seed(0)
    count = 100_000
    hub = torch.stack([torch.arange(count) % 2 + 1, torch.zeros(count).long()])
    edge_index = torch.cat([hub, hub[:, :3].flip(0), hub.flip(0)[:, :2000]], 1)
    given = torch.randn(edge_index.size(1), 1, dtype=torch.float64)
    operands, graph = logits_only(given, 1.2, edge_index, sources=3)
    assert int(graph.ptr[1]) == count and long_rows.long_rows(graph.ptr, len(graph.col)).first_part[1] == 98
    compare(operands, graph, Kind(0, NORMALIZERS[normalizer], 0.2, 1.0, False), 1e-9)
    single = Operands(*(None if value is None else value.float() for value in operands))
    compare(single, graph, Kind(0, NORMALIZERS[normalizer], 0.2, 1.0, False), 1e-3)


def test_benchmarks_on_a_device_say_when_there_is_none_and_measure_where_there_is():
    from ltga.bench.on_device import device_table, measure, run_on_device
    from ltga.bench.works import Work, random_graph

    if not torch.cuda.is_available():
        with pytest.raises(LTGAError, match="device: torch finds no GPU"):
            run_on_device(["cora"], "cuda")
    with pytest.raises(LTGAError, match="device: expected"):
        run_on_device(["cora"], "tpu")
    work = Work("tiny", "a tiny graph", lambda _: random_graph(20, 60, 4), 4, 2, 2)
    entry = measure(work, "cpu", rivals=("pyg-gatv2", "ltga-head"))
    assert [len(rounds) for rounds in entry["seconds"].values()] == [2, 2]
    shown = device_table({"works": {"tiny": entry}, "machine": {"device": "cpu", "torch": "2"}})
    assert "| tiny | pyg-gatv2 |" in shown and "1.00x" in shown


def test_the_doctor_looks_at_the_gpu(monkeypatch):
    from ltga.cli import doctor

    if not torch.cuda.is_available():
        assert [check.state for check in doctor.gpu(None)] == ["note"]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(trust, "versions", lambda device: "a device")
    errors = {torch.float64: 1e-15, torch.float32: 1e-6, torch.float16: 1e-3, torch.bfloat16: 0.5}
    monkeypatch.setattr(trust, "largest_error", lambda configuration, device: errors[configuration.dtype])
    states = {check.what: check.state for check in doctor.gpu(None)}
    assert states == {
        "gpu": "ok",
        "gpu float64": "ok",
        "gpu float32": "ok",
        "gpu float16": "ok",
        "gpu bfloat16": "broken",
    }


@pytest.mark.parametrize("arguments", [{"scoring": "qkv"}, {"index": "edge", "normalizer": "entmax"}], ids=str)
def test_compiled_and_differentiated_twice(arguments):
    """The registered operator in a captured graph, and a second derivative by way of the definition."""
    size = {"add_self_loops": False, **arguments}
    ours, plain = (LTGAConv(6, 4, heads=2, backend=backend, **size).double() for backend in ("triton", "torch"))
    plain.load_state_dict(ours.state_dict())
    x, edge_index = torch.randn(5, 6, dtype=torch.double, requires_grad=True), torch.randint(0, 5, (2, 12))
    torch._dynamo.reset()
    captured = torch.compile(ours, fullgraph=True, backend="aot_eager")
    first, exact = captured(x, edge_index), plain(x, edge_index)
    assert torch.allclose(first, exact)
    slopes = [torch.autograd.grad(out.square().sum(), x)[0] for out in (first, exact)]
    assert torch.allclose(*slopes)
    second = []
    for layer in (ours, plain):
        (slope,) = torch.autograd.grad(layer(x, edge_index).square().sum(), x, create_graph=True)
        second.append(torch.autograd.grad(slope.square().sum(), x)[0])
    assert torch.allclose(*second)
