"""The names people rely on: a change here is a change of contract, not a refactoring."""

import inspect
import subprocess
import sys

import pytest
from torch_geometric.nn import GATv2Conv

import ltga
import ltga.data
import ltga.functional
import ltga.nn
import ltga.train
from ltga.nn import LTGAConv


def parameters(function):
    return {name: p for name, p in inspect.signature(function).parameters.items() if name != "self"}


def test_functional_names():
    assert sorted(ltga.functional.__all__) == [
        "bridge_scale", "entmax", "exp_q", "log_q", "q_softmax", "segment_entmax", "segment_q_softmax",
        "segment_sparsemax", "sparsemax", "tsallis_entropy",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "signature"),
    [
        ("exp_q", "x, q"),
        ("log_q", "x, q"),
        ("tsallis_entropy", "p, q, dim=-1"),
        ("q_softmax", "z, q, dim=-1"),
        ("entmax", "z, alpha, dim=-1"),
        ("sparsemax", "z, dim=-1"),
        ("segment_q_softmax", "z, q, index=None, ptr=None, num_segments=None"),
        ("segment_entmax", "z, alpha, index=None, ptr=None, num_segments=None"),
        ("segment_sparsemax", "z, index=None, ptr=None, num_segments=None"),
    ],
)
def test_functional_signatures(name, signature):
    actual = [
        p.name if p.default is p.empty else f"{p.name}={p.default!r}"
        for p in parameters(getattr(ltga.functional, name)).values()
    ]
    assert ", ".join(actual) == signature


def test_nn_names():
    contract = {"LTGAConv"}
    inside = {"Attention", "GatedIndex", "EntropicIndex", "FrozenIndex", "LearnedIndex", "index_parameters"}
    models = {"LTGA", "build_model"}  # arrive with the models
    names = set(ltga.nn.__all__)
    assert contract | inside <= names
    for name in names:
        assert getattr(ltga.nn, name) is not None
    assert names - models >= contract | inside
    assert len(ltga.nn.__all__) == len(names)


def test_top_level_names():
    assert {"LTGAClassifier", "LTGAError", "Nodes", "__version__", "fit", "load_run"} <= set(ltga.__all__)
    for name in ltga.__all__:
        assert getattr(ltga, name) is not None
    assert len(ltga.__all__) <= 16
    assert set(ltga.__all__) <= set(dir(ltga))  # which is what completion looks at


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, ltga; print([name for name in ('torch', 'sklearn', 'pandas', 'numba') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_classifier_signature():
    contract = {
        "fit": ["X", "y", "edge_index", "edge_attr", "val_mask", "callbacks"],
        "predict": ["X", "edge_index", "edge_attr"],
        "predict_proba": ["X", "edge_index", "edge_attr"],
        "score": ["X", "y", "edge_index", "edge_attr", "sample_weight"],
        "save": ["path"],
    }
    for name, arguments in contract.items():
        assert list(parameters(getattr(ltga.LTGAClassifier, name))) == arguments
    assert next(iter(parameters(ltga.LTGAClassifier.__init__))) == "method"
    for name in ("get_params", "set_params", "load"):
        assert callable(getattr(ltga.LTGAClassifier, name))


def test_run_and_sampler_signatures():
    assert list(parameters(ltga.Run.predict)) == list(parameters(ltga.Run.predict_proba))
    assert list(parameters(ltga.Run.predict)) == ["data", "batch_size", "fanout"]
    sampler = ["data", "fanout", "nodes", "batch_size", "shuffle", "seed"]
    assert list(parameters(ltga.data.NeighborSampler.__init__))[:6] == sampler
    assert list(parameters(ltga.fit))[:5] == ["dataset", "method", "seed", "split", "protocol"]
    assert {"LTGAClassifier", "MiniBatch", "TensorBoard"} <= set(ltga.train.__all__)


def test_explain_signature():
    assert [(name, p.default) for name, p in parameters(ltga.explain).items()] == [
        ("run", inspect.Parameter.empty),
        ("dataset", None),
    ]


def test_layer_signature_is_a_superset_of_gatv2s():
    ours, theirs = parameters(LTGAConv.__init__), parameters(GATv2Conv.__init__)
    shared = [name for name in theirs if name != "kwargs"]
    assert list(ours)[: len(shared)] == shared
    for name in shared:
        assert ours[name].default == theirs[name].default, name
        assert ours[name].kind == theirs[name].kind, name
    new = {name: p.default for name, p in ours.items() if p.kind is p.KEYWORD_ONLY}
    contract = {
        "index": "head", "scoring": "gatv2", "normalizer": "q_softmax", "delta": 1.0, "backend": "auto",
    }  # fmt: skip
    assert contract.items() <= new.items()
    assert set(new) - set(contract) <= {"modifier", "index_form", "index_start"}
    assert list(ours)[-1] == "kwargs"


def test_forward_signature():
    actual = [(name, p.default) for name, p in parameters(LTGAConv.forward).items()]
    assert actual[:4] == [
        ("x", inspect.Parameter.empty),
        ("edge_index", inspect.Parameter.empty),
        ("edge_attr", None),
        ("return_attention_weights", None),
    ]
    assert all(default is None for _, default in actual[4:])


def test_errors_are_one_family():
    from ltga import errors

    family = [value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, Exception)]
    assert all(issubclass(error, ltga.LTGAError) for error in family)
    assert issubclass(errors.InputError, ValueError)
