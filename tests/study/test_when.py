"""The comparison behind *when*, on records made up so that the answer is known."""

from typing import Any

import pytest

from ltga.data import csbm, load_graph
from ltga.errors import InputError
from ltga.study.when import CHOSEN, FIXED, gains, setting_of


def record(method: str, seed: int, test: float, course: list[float]) -> dict[str, Any]:
    return {
        "config": {"dataset": {"name": "graph"}, "method": method, "seed": seed},
        "metrics": {"val": {"accuracy": max(course)}, "test": {"accuracy": test}},
        "trajectory": {"val_accuracy": course},
    }


def test_a_method_is_compared_with_softmax_seed_by_seed() -> None:
    records = [
        record("gatv2", 1, 0.50, [0.1, 0.2, 0.3, 0.6]),  # 95 % of 0.6 in epoch 4
        record("gatv2", 2, 0.60, [0.1, 0.8, 0.8, 0.8]),  # in epoch 2
        record("gatv2", 3, 0.10, [0.1, 0.1, 0.1, 0.1]),  # nobody to compare it with
        record("ltga-head", 1, 0.54, [0.6, 0.5, 0.5, 0.5]),  # in epoch 1: four times as fast
        record("ltga-head", 2, 0.58, [0.1, 0.2, 0.3, 0.4]),  # never, which counts as epoch 4: half as fast
    ]
    gain = gains(records)["graph"]["ltga-head"]
    assert gain.points == pytest.approx(1.0) and gain.ahead == 1 and gain.seeds == 2
    assert gain.speed == pytest.approx((4 * 0.5) ** 0.5)


def test_the_chosen_one_is_the_best_on_validation_not_on_test() -> None:
    base = [record("gatv2", 1, 0.5, [0.5, 0.5])]
    others = [record(method, 1, test, [0.4, val]) for method, test, val in zip(FIXED, (0.9, 0.6, 0.7), (0.5, 0.8, 0.7))]
    assert gains(base + others)["graph"][CHOSEN].points == pytest.approx(10.0)
    assert CHOSEN not in gains(base + others[:2]).get("graph", {})


def test_what_is_known_of_a_graph_before_training() -> None:
    told = setting_of(load_graph("csbm:num_nodes=500,degree=20,homophily=0.8,label_share=0.1"))
    data = csbm(num_nodes=500, degree=20, homophily=0.8).data
    source, target = data.edge_index
    assert told.agreement == pytest.approx((data.y[source] == data.y[target]).double().mean().item())
    assert told.neighbours == target.bincount(minlength=500).median().item()
    assert told.labels == pytest.approx(0.1) and told.many_labels


@pytest.mark.parametrize("share", ["0", "0.8", "-1", "nan", "x"])
def test_a_share_of_labels_that_leaves_nothing_is_refused(share: str) -> None:
    with pytest.raises(InputError, match=r"label_share"):
        load_graph(f"csbm:label_share={share}")
