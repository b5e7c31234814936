"""The fused operator: reproducible bit for bit, safe with threads and fork, compilable, and frugal."""

import os
import subprocess
import sys
import textwrap
import threading
import time
import tracemalloc

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ltga import LTGAError
from ltga.kernels import NORMALIZERS, SCORINGS, aggregate, attend, neighbourhoods
from ltga.kernels.runtime import buffers
from ltga.nn import LTGAConv


def random_graph(nodes=2000, edges=30000, seed=0):
    """Enough edges for many blocks, with a hub and isolated nodes."""
    generator = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(0, nodes - 50, (2, edges), generator=generator)
    edge_index[1, :2000] = 3
    return edge_index[:, torch.randperm(edges, generator=generator)]


def draw(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def operands(nb, heads=3, channels=5, dtype=torch.float64, per_edge=True, edge_features=2, scoring="gatv2", keep=True):
    """Arguments of ltga::attend, all of them present."""
    edges, sources, targets = nb.num_edges, nb.num_sources, nb.num_targets
    given = scoring == "given"
    leaf = {
        "x": draw(sources, heads, channels, dtype=dtype),
        "target": None if given else draw(targets, heads, channels, seed=1, dtype=dtype),
        "att": None if given else draw(heads, channels, seed=2, dtype=dtype),
        "edge_attr": None if given else draw(edges, edge_features, seed=3, dtype=dtype),
        "edge_weight": None if given else draw(edge_features, heads, channels, seed=4, dtype=dtype),
        "given": draw(edges, heads, seed=5, dtype=dtype) if given else None,
        "scale": 1 + 0.1 * draw(edges if per_edge else 1, heads, seed=6, dtype=dtype),
        "shift": draw(edges, heads, seed=7, dtype=dtype),
        "q": 1.2 + 0.1 * torch.tanh(draw(edges if per_edge else 1, heads, seed=8, dtype=dtype)),
        "keep": (draw(edges, heads, seed=9, dtype=dtype) > -0.5).to(dtype) * 1.5 if keep else None,
        "bias": draw(heads, channels, seed=10, dtype=dtype),
    }
    return leaf


def call(leaf, nb, scoring="gatv2", normalizer="q_softmax", average=False):
    leaf = {**leaf, "bias": leaf["bias"][:1] if average and leaf["bias"] is not None else leaf["bias"]}
    return attend(
        *leaf.values(),
        *nb.structure,
        SCORINGS[scoring],
        NORMALIZERS[normalizer],
        0.2,
        leaf["x"].size(2) ** -0.5,
        average,
    )


def everything(leaf, nb, **arguments):
    """Outputs and all gradients."""
    leaf = {
        name: None if value is None else value.clone().requires_grad_(name != "keep") for name, value in leaf.items()
    }
    out, weights, logits, _ = call(leaf, nb, **arguments)
    (out.square().sum() + (weights * weights.detach().cos()).sum()).backward()
    return [out.detach(), weights.detach(), logits.detach()] + [
        value.grad for name, value in leaf.items() if value is not None and name != "keep" and value.grad is not None
    ]


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("normalizer", ["q_softmax", "entmax", "softmax"])
@pytest.mark.parametrize("scoring", ["gatv2", "dot", "given"])
@pytest.mark.parametrize("per_edge", [True, False])
def test_bitwise_identical_for_any_number_of_threads(per_edge, scoring, normalizer, threads):
    nb = neighbourhoods(random_graph(), 2000, 2000, True)
    leaf = operands(nb, dtype=torch.float32, per_edge=per_edge, scoring=scoring)
    seen = []
    for count in (1, 2, 3, 3, 2):
        threads(count)
        seen.append(everything(leaf, nb, scoring=scoring, normalizer=normalizer))
    for other in seen[1:]:
        assert len(other) == len(seen[0])
        for a, b in zip(seen[0], other):
            assert torch.equal(a, b)
    assert all(torch.isfinite(value).all() for value in seen[0])


@pytest.mark.parametrize("index", ["head", "edge", 1.5])
def test_the_whole_layer_is_bitwise_reproducible(index, threads):
    edge_index, x = random_graph(), draw(2000, 16)
    torch.manual_seed(0)
    conv = LTGAConv(16, 8, heads=4, index=index, backend="numba")
    seen = []
    for count in (1, 2, 3, 2):
        threads(count)
        conv.zero_grad()
        out = conv(x, edge_index)
        out.square().sum().backward()
        seen.append([out.detach().clone(), *(p.grad.clone() for p in conv.parameters())])
    for other in seen[1:]:
        for a, b in zip(seen[0], other):
            assert torch.equal(a, b)


def test_from_several_python_threads_at_once(threads):
    threads(2)
    nb = neighbourhoods(random_graph(), 2000, 2000, True)
    leaf = operands(nb, dtype=torch.float32)
    wanted = everything(leaf, nb)
    wrong = []

    def work():
        for _ in range(4):
            for a, b in zip(wanted, everything(leaf, nb)):
                if not torch.equal(a, b):
                    wrong.append("different")

    workers = [threading.Thread(target=work) for _ in range(5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert not worker.is_alive(), "deadlock"
    assert not wrong


def wait_for(child, seconds=60):
    """Exit status of a forked child, or a failure if it hangs."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
        time.sleep(0.02)
    os.kill(child, 9)
    os.waitpid(child, 0)
    pytest.fail("the forked child hangs")
    return None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_after_fork(threads):
    # Forking with live OpenMP threads is torch's own problem, so the child stays away from torch's matmul.
    threads(2)
    nb = neighbourhoods(random_graph(), 2000, 2000, True)
    leaf = operands(nb, dtype=torch.float32)
    wanted = call(leaf, nb)[0].numpy().tobytes()
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if call(leaf, nb)[0].numpy().tobytes() == wanted else 3)
        except BaseException:
            os._exit(4)
    assert wait_for(child) == 0
    assert call(leaf, nb)[0].numpy().tobytes() == wanted  # and the parent goes on


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize(
    "lock", ["runtime.buffers", "runtime.neighbourhoods", "operators.projection", "runtime.threads"]
)  # the middle two in a memo
def test_after_a_fork_while_another_thread_holds_a_lock(lock):
    """A lock that was taken when the process forked is never released in the child."""
    import importlib

    module = importlib.import_module(f"ltga.kernels.{lock}")
    nb = neighbourhoods(random_graph(), 2000, 2000, True)
    leaf = operands(nb, heads=4, channels=64, dtype=torch.float32, edge_features=1)
    features = torch.zeros(2000, 40)
    call(leaf, nb)
    held, done = threading.Event(), threading.Event()

    def hold():
        with getattr(module, "_known", module)._lock:
            held.set()
            done.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(30)
    child = os.fork()
    if child == 0:
        try:
            torch.set_num_threads(1)
            from ltga.kernels import compact_form

            neighbourhoods(torch.tensor([[0], [1]]), 2, 2, True)
            compact_form(features)
            call(leaf, nb)
            os._exit(0)
        except BaseException:
            os._exit(4)
    done.set()
    holder.join()
    assert wait_for(child, 6) == 0


@pytest.mark.parametrize("scoring", ["gatv2", "dot", "given"])
@pytest.mark.parametrize("per_edge", [True, False])
def test_opcheck_attend(per_edge, scoring):
    nb = neighbourhoods(torch.tensor([[0, 1, 2, 2, 0], [1, 1, 0, 3, 3]]), 4, 4, True)
    leaf = operands(nb, heads=2, channels=3, per_edge=per_edge, scoring=scoring)
    leaf = {name: None if value is None else value.requires_grad_(name != "keep") for name, value in leaf.items()}
    arguments = (*leaf.values(), *nb.structure, SCORINGS[scoring], NORMALIZERS["q_softmax"], 0.2, 0.5, False)
    tests = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(torch.ops.ltga.attend.default, arguments, test_utils=tests)


@pytest.mark.parametrize("normalizer", ["q_softmax", "entmax", "softmax"])
@pytest.mark.parametrize("average", [False, True])
def test_opcheck_backward_shapes(average, normalizer):
    """What the fake implementation promises is what the real one returns, for every subset of gradients."""
    nb = neighbourhoods(torch.tensor([[0, 1, 2, 2, 0], [1, 1, 0, 3, 3]]), 4, 4, True)
    leaf = operands(nb, heads=2, channels=3)
    out, weights, logits, raw = call(leaf, nb, normalizer=normalizer, average=average)
    saved = [leaf[n] for n in ("x", "target", "att", "edge_attr", "edge_weight", "scale", "q", "keep")]
    for needs in [(True,) * 5, (False,) * 5, (True, False, True, False, True), (False, True, False, True, False)]:
        arguments = (
            torch.ones_like(out), None, *saved, *nb.structure, raw, logits, weights,
            SCORINGS["gatv2"], NORMALIZERS[normalizer], 0.2, 0.5, *needs,
        )  # fmt: skip
        torch.library.opcheck(
            torch.ops.ltga.attend_backward.default, arguments, test_utils=("test_schema", "test_faketensor")
        )


def test_opcheck_the_small_operators():
    edge_index = torch.tensor([[0, 1, 2, 2, 0], [1, 1, 0, 3, 3]])
    nb = neighbourhoods(edge_index, 4, 4, False)
    weights, x = draw(5, 2), draw(4, 2, 3)
    torch.library.opcheck(
        torch.ops.ltga.aggregate.default, (weights, x, nb.ptr, nb.col), test_utils=("test_schema", "test_faketensor")
    )
    torch.library.opcheck(
        torch.ops.ltga.sorted_structure.default,
        (edge_index, 4, 4, False),
        test_utils=("test_schema", "test_faketensor"),
    )


def test_aggregate_alone():
    nb = neighbourhoods(random_graph(), 2000, 2000, True)
    x, weights = draw(2000, 2, 5, dtype=torch.float64), draw(nb.num_edges, 2, dtype=torch.float64)
    weights[::2] = 0
    wanted = torch.zeros(2000, 2, 5, dtype=torch.float64)
    target = torch.repeat_interleave(torch.arange(2000), nb.ptr.diff())
    wanted.index_add_(0, target, weights[:, :, None] * x[nb.col.long()])
    assert torch.allclose(aggregate(weights, x, nb.ptr, nb.col), wanted, atol=1e-12)


@pytest.mark.parametrize("which", ["out", "weights", "logits"])
def test_no_gradient_is_silently_lost(which):
    """Every differentiable output of the operator has a gradient, or refuses to be differentiated."""
    nb = neighbourhoods(torch.tensor([[0, 1, 2, 2, 0], [1, 1, 0, 3, 3]]), 4, 4, True)
    leaf = operands(nb, heads=2, channels=3, keep=False)
    leaf["x"].requires_grad_()
    result = dict(zip(("out", "weights", "logits"), call(leaf, nb)[:3]))[which]
    if result.requires_grad:
        (gradient,) = torch.autograd.grad(result.square().sum(), leaf["x"], allow_unused=True)
        assert gradient is not None
        assert gradient.any()


class Recorder(TorchDispatchMode):
    """The largest tensor any torch operation returns, forward or backward."""

    def __init__(self):
        super().__init__()
        self.largest, self.name, self.names = 0, "", set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.names.add(str(func))
        for value in result if isinstance(result, tuple | list) else [result]:
            if isinstance(value, torch.Tensor) and value.numel() > self.largest:
                self.largest, self.name = value.numel(), str(func)
        return result


@pytest.mark.parametrize(
    "arguments",
    [
        {}, {"index": "edge"}, {"scoring": "gat"}, {"scoring": "dot"}, {"modifier": "edge-bias"}, {"edge_dim": 3},
        {"edge_dim": 3, "scoring": "gat"}, {"normalizer": "entmax"}, {"concat": False, "dropout": 0.5},
    ],
    ids=str,
)  # fmt: skip
def test_nothing_of_edges_heads_channels_exists(arguments):
    nodes, edges, heads, channels = 200, 20000, 4, 32
    torch.manual_seed(0)
    conv = LTGAConv(16, channels, heads=heads, backend="numba", **arguments)
    edge_index = torch.randint(0, nodes, (2, edges))
    attr = torch.randn(edges, 3, requires_grad=True) if "edge_dim" in arguments else None
    x = torch.randn(nodes, 16, requires_grad=True)
    conv(x, edge_index, attr).sum().backward()  # compile and build outside the measurement
    buffers.release()
    tracemalloc.start()
    try:
        with Recorder() as recorder:
            conv(x, edge_index, attr).square().sum().backward()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert any("ltga.attend" in name for name in recorder.names)
    assert any("ltga.attend_backward" in name for name in recorder.names)
    limit = edges * heads * channels
    assert recorder.largest <= (edges + nodes) * 8 * 2, recorder.name  # the gate's [E, 8] is the widest
    assert peak < 4 * limit / 2  # numpy's own allocations, the pool included
    assert buffers.pooled_bytes() < 4 * limit / 2


@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="needs Linux")  # noqa: PTH110
def test_peak_memory_of_the_whole_process():
    """Whatever allocates, compiled code included: far below one edges x heads x channels array."""
    program = """
    import torch
    from ltga.nn import LTGAConv
    torch.manual_seed(0)
    edge_index = torch.randint(0, 2000, (2, 150_000))
    conv, x = LTGAConv(16, 64, heads=8), torch.randn(2000, 16)
    def step(edge_index):
        conv(x, edge_index).square().sum().backward()
    def peak():
        return next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("VmHWM")) / 1024
    step(edge_index[:, :100])
    open("/proc/self/clear_refs", "w").write("5")
    before = peak()
    step(edge_index)
    print(peak() - before)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    one_array = 150_000 * 8 * 64 * 4 / 2**20  # 293 MiB
    assert float(done.stdout) < one_array / 3


COMPILED_MODULES = ("scalar", "sweeps", "normalise", "entmax_rows", "sparse_rows")


def test_nothing_is_compiled_or_loaded_until_used():
    """numba stays out (PyG's own import of it aside), and so does every module with compiled functions."""
    program = f"""
    import sys
    import ltga, ltga.functional, ltga.kernels
    assert "numba" not in sys.modules, "importing ltga.kernels loads numba"
    import torch
    from ltga.nn import LTGAConv
    conv = LTGAConv(4, 2, heads=2, index="edge", backend="torch")
    conv(torch.randn(3, 4), torch.tensor([[0, 1], [1, 2]])).sum().backward()
    loaded = [name for name in {COMPILED_MODULES} if "ltga.kernels.numba." + name in sys.modules]
    assert not loaded, loaded
    LTGAConv(4, 2, backend="numba")(torch.randn(3, 4), torch.tensor([[0, 1], [1, 2]]))
    assert "ltga.kernels.numba.sweeps" in sys.modules
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr


COMPILE_CASES = [
    {"add_self_loops": True},
    {"add_self_loops": False},
    {"index": "edge", "add_self_loops": True},
    {"index": "edge", "modifier": "edge-scale", "add_self_loops": False, "concat": False},
    {"scoring": "gat", "index": 1.5, "add_self_loops": False},
    {"scoring": "dot", "normalizer": "entmax", "add_self_loops": True},
    {"edge_dim": 2, "residual": True, "add_self_loops": False},
]


def check_compiled(backend, arguments, compiler="aot_eager"):
    torch._dynamo.reset()
    torch.manual_seed(0)
    conv = LTGAConv(6, 4, heads=2, backend=backend, **arguments)
    with torch.no_grad():
        for name, parameter in conv.named_parameters():
            if name.startswith(("index", "modifier")):
                parameter.normal_(std=0.3)
    edge_index = torch.tensor([[0, 1, 1, 2, 3, 4, 0], [1, 0, 2, 2, 1, 1, 3]])
    attr = torch.randn(7, 2) if "edge_dim" in arguments else None
    x = torch.randn(5, 6)
    results = []
    for layer in (conv, torch.compile(conv, fullgraph=True, backend=compiler)):
        conv.zero_grad()
        leaf = x.clone().requires_grad_()
        out = layer(leaf, edge_index, attr)
        out.square().sum().backward()
        results.append([out, leaf.grad, *(p.grad.clone() for p in conv.parameters())])
    for wanted, actual in zip(*results):
        assert torch.allclose(actual, wanted, atol=1e-5, rtol=1e-5)
    return torch.compile(conv, fullgraph=True, backend=compiler)


@pytest.mark.parametrize("arguments", COMPILE_CASES[:2], ids=str)
@pytest.mark.parametrize("backend", ["torch", "numba"])
def test_compiles_without_graph_breaks(backend, arguments):
    """Captured and differentiated in one graph; code generation itself is left to the slow test."""
    check_compiled(backend, arguments)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", COMPILE_CASES, ids=str)
@pytest.mark.parametrize("backend", ["torch", "numba"])
def test_every_variant_compiles_without_graph_breaks(backend, arguments):
    check_compiled(backend, arguments)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [COMPILE_CASES[0], COMPILE_CASES[2]], ids=str)
@pytest.mark.parametrize("backend", ["torch", "numba"])
def test_compiles_with_inductor(backend, arguments):
    check_compiled(backend, arguments, "inductor")


@pytest.mark.slow
def test_a_compiled_layer_takes_other_graphs():
    compiled = check_compiled("numba", {"add_self_loops": True})
    conv = compiled._orig_mod
    for nodes, edges in ((6, 9), (11, 40), (3, 1)):
        x, edge_index = torch.randn(nodes, 6), torch.randint(0, nodes, (2, edges))
        assert torch.allclose(compiled(x, edge_index), conv(x, edge_index), atol=1e-5)
    with pytest.raises((LTGAError, RuntimeError)):
        compiled(torch.randn(3, 6), torch.tensor([[0], [7]]))
