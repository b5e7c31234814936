"""The check of GPU kernels on the user's machine: what it finds, and that a first call may come from anywhere."""

import contextlib
import warnings

import pytest
import torch

pytest.importorskip("triton")

from ltga import LTGAError
from ltga.kernels.operators import attention_triton, trust
from ltga.kernels.operators.trust import Configuration, agrees
from ltga.kernels.runtime import long_rows
from ltga.kernels.runtime.backends import is_interpreted
from ltga.nn import LTGAConv

pytestmark = pytest.mark.skipif(not is_interpreted(), reason="no GPU to compile for: TRITON_INTERPRET is 0")
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def checked_anew(monkeypatch):
    """As on a GPU, in a new process; hubs of a dozen edges are long already."""
    monkeypatch.setenv(trust.ENVIRONMENT, "always")
    monkeypatch.setattr(trust, "_found", {})
    monkeypatch.setattr(long_rows, "SPLIT", 8)


def conv_and_graph():
    x, edge_index = torch.randn(5, 6, device="cpu"), torch.randint(0, 5, (2, 12), device="cpu")
    return LTGAConv(6, 4, heads=2, backend="triton").to("cpu").eval(), x, edge_index


FIRST_CALLS = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "another default device": lambda: torch.device("meta"),
    "training": contextlib.nullcontext,
}


@pytest.mark.parametrize("where", FIRST_CALLS)
def test_the_first_call_may_come_from_anywhere(where):
    """Without gradients, for one: a process that only predicts must get the kernels too."""
    conv, x, edge_index = conv_and_graph()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with FIRST_CALLS[where]():
            conv(x, edge_index)
    assert list(trust._found.values()) == [True]


@pytest.mark.filterwarnings("ignore:Dynamo detected")
@pytest.mark.parametrize("how", ["compile", "export", "strict export"])
def test_the_first_call_may_be_traced(how):
    conv, x, edge_index = conv_and_graph()
    torch._dynamo.reset()
    if how == "compile":
        found = torch.compile(conv, fullgraph=True, backend="aot_eager")(x, edge_index)
    else:
        program = torch.export.export(conv, (x, edge_index), strict=how == "strict export")
        assert any(str(node.target) == "ltga.attend.default" for node in program.graph.nodes)
        found = program.module()(x, edge_index)
    assert list(trust._found.values()) == [True]
    assert torch.allclose(found, conv(x, edge_index), atol=1e-6)


def test_dropout_by_a_hash_is_checked_too(monkeypatch):
    """Against masks that no kernel made."""
    monkeypatch.setattr(attention_triton, "threshold", lambda p: (int(p * 2**31), 1 / (1 - p)))
    with pytest.warns(UserWarning, match="not used.*off by"):
        assert not agrees(*Configuration("given", "softmax", 2, 4, 0, torch.float32), CPU)


def test_wrong_kernels_are_found_named_and_not_used(monkeypatch):
    right = attention_triton.forward

    def wrong(operands, graph, kind):
        results = right(operands, graph, kind)
        return results._replace(out=results.out * 1.01)

    monkeypatch.setattr(attention_triton, "forward", wrong)
    conv = LTGAConv(6, 4, heads=2, backend="triton")
    plain = LTGAConv(6, 4, heads=2, backend="torch")
    plain.load_state_dict(conv.state_dict())
    x, edge_index = torch.randn(5, 6), torch.randint(0, 5, (2, 12))
    with pytest.warns(UserWarning, match=r"not used.*off by.*triton 3.*torch 2"):
        out = conv(x, edge_index)
    assert torch.equal(out, plain(x, edge_index))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it warns once
        conv(x, edge_index)
    monkeypatch.setattr(attention_triton, "forward", lambda *_: 1 / 0)
    with pytest.warns(UserWarning, match="fail with ZeroDivisionError"):
        assert not agrees(*Configuration("dot", "softmax", 1, 2, 0, torch.float32), CPU)
    monkeypatch.setenv(trust.ENVIRONMENT, "0")
    assert agrees(*Configuration("dot", "softmax", 1, 2, 0, torch.float32), CPU)
    monkeypatch.setenv(trust.ENVIRONMENT, "perhaps")
    with pytest.raises(LTGAError, match=trust.ENVIRONMENT):
        agrees(*Configuration("dot", "softmax", 1, 2, 0, torch.float32), CPU)
