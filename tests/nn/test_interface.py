"""The interface of networks: every method answers what training asks, with or without attention and an index."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from ltga.errors import InputError
from ltga.nn import Network, build_model
from ltga.nn.build import form
from ltga.nn.methods import METHODS
from ltga.nn.reach import Reach

X = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
EDGES = torch.tensor([[0, 1, 2, 3, 4, 5, 2], [1, 2, 3, 4, 5, 0, 5]])
SIZES = {"hidden_channels": 4, "heads": 2, "num_layers": 2, "dropout": 0.5}


def built(method: str, init: str) -> Network:
    extra = {"num_nodes": len(X)} if METHODS[method].network == "linkx" else {}
    return build_model(method, X.size(1), 3, init=init, **SIZES, **extra).eval()


@pytest.mark.parametrize("init", ["paper", "paired"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_answers_everything(method: str, init: str) -> None:
    model, network = built(method, init), form(METHODS[method], init)[0]
    assert isinstance(model, Network)
    logits = model(X, EDGES)
    assert logits.shape == (6, 3) and len(model.hidden(X, EDGES)) == 6
    layers = model.attention_weights(X, EDGES)
    deep = network in ("classic", "separated")
    assert (layers is not None) == (network in ("ltga", "gat", "gatv2") or deep)
    assert model.layered == (network in ("ltga", "gat", "gatv2"))
    for edges, weights in layers or ():
        sums = torch.zeros(6, weights.size(1)).index_add(0, edges[1], weights.detach())
        assert torch.allclose(sums, torch.ones(6, weights.size(1)), atol=1e-5)
    indexed = network == "ltga" or deep
    assert len(model.layer_indices()) == len(model.index_values()) == (2 if indexed else 0)
    assert len(model.edge_gates()) == (2 if method in ("ltga-edge", "entmax-edge") else 0)
    assert model.transductive == (method == "linkx")
    assert model.attends == indexed == (model.normalizer is not None)
    assert (model.weights_for_ltga() is not None) == (network in ("gat", "gatv2"))
    if not model.edge_gates():  # those look back at a training pass
        assert isinstance(model.shannon_penalty(), Tensor) and model.shannon_penalty() == 0


@pytest.mark.parametrize("method", ["gcn", "gat", "linkx", "ltga-head"])
def test_a_dropout_key_makes_masks_where_the_network_has_such_masks_and_changes_nothing_elsewhere(method: str) -> None:
    def trained_pass(key: tuple[int, ...] | None, seed: int) -> Tensor:
        torch.manual_seed(0)
        model = built(method, "paper").train()
        model.dropout_key = key
        torch.manual_seed(seed)
        return model(X, EDGES)

    assert torch.equal(trained_pass((1, 2), 5), trained_pass((1, 2), 6)) == (method == "ltga-head")
    if method != "ltga-head":
        assert torch.equal(trained_pass((1, 2), 5), trained_pass(None, 5))


@pytest.mark.parametrize("method", METHODS)
def test_who_says_it_computes_parts_or_reads_sparse_features_does(method: str) -> None:
    model = built(method, "paper")
    reach = Reach.of(torch.tensor([3, 1]), X, EDGES, None, num_layers=2)
    if model.computes_parts:
        assert torch.allclose(model.outputs(reach), model(X, EDGES)[[3, 1]], atol=1e-6)
        assert model.reads_sparse and len(model.attend(X, EDGES)) == 2
    else:
        with pytest.raises(NotImplementedError):
            model.outputs(reach)
        if model.attends:
            assert len(model.attend(X, EDGES)) == 2
        else:
            with pytest.raises(InputError, match="cannot be looked into"):
                model.attend(X, EDGES)
