"""What the recommended protocol leaves to the graph is settled before anything is trained, and the record says so."""

from __future__ import annotations

import pytest

from ltga import LTGAClassifier, Protocol, fit
from ltga.data import csbm
from ltga.errors import InputError
from ltga.nn import LTGAConv
from ltga.train.batches import choose_batches
from ltga.train.left_to_the_graph import LARGE, settle
from ltga.train.planned import plan_run


@pytest.mark.parametrize(("nodes", "size"), [(LARGE - 1, (32, 4)), (LARGE, (64, 8))])
def test_the_width_follows_the_nodes(nodes: int, size: tuple[int, int]) -> None:
    settled, before = settle(Protocol.recommended(), nodes, 0.5)
    assert settled.size == size and before["heads"] == before["hidden_channels"] == "auto"
    assert settle(Protocol.recommended(heads=2), nodes, 0.5)[0].size == (size[0], 2)
    assert settle(Protocol.paper(), nodes, 0.01) == (Protocol.paper(), {})


def test_a_run_has_numbers_and_says_what_was_asked() -> None:
    graph = csbm(num_nodes=60)
    run = fit(graph, "gatv2", protocol={"epochs": 1})
    assert run.record["config"]["protocol"]["heads"] == 4
    assert run.record["config"]["protocol"]["hidden_channels"] == 32
    assert run.record["asked"] == {"hidden_channels": "auto", "heads": "auto", "index_start": "auto"}
    assert next(layer.heads for layer in run.model.modules() if isinstance(layer, LTGAConv)) == 4
    same = plan_run(graph, "gatv2", 1, protocol=Protocol.recommended(epochs=1, hidden_channels=32, heads=4))
    assert same.id == run.record["id"]  # what was left to the graph is no other run


def test_memory_is_judged_by_the_settled_width() -> None:
    assert choose_batches(csbm(num_nodes=60), ["gatv2"], Protocol.recommended()) == (None, "")


def test_a_network_cannot_be_made_of_open_settings() -> None:
    with pytest.raises(InputError, match="'auto' has no meaning without a graph"):
        Protocol.recommended().size  # noqa: B018
    assert LTGAClassifier().get_params()["heads"] == "auto"


@pytest.mark.parametrize("value", [0, "wide", 2.5, True])
def test_other_words_are_refused(value: object) -> None:
    with pytest.raises(InputError, match=r"heads: .*(or 'auto', got|number)"):
        Protocol(heads=value)
