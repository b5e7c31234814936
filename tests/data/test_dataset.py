"""What a `Dataset` accepts, gives back and refuses."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from ltga.data import Dataset
from ltga.errors import DataError, InputError


def parts(**changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "x": torch.arange(12.0).reshape(6, 2),
        "y": torch.tensor([0, 1, 0, 1, 2, -1]),
        "edge_index": torch.tensor([[0, 1, 2], [1, 2, 5]]),
        "train": torch.tensor([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0]]).bool(),
        "val": torch.tensor([[0, 0, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0]]).bool(),
        "test": torch.tensor([[0, 0, 0, 1, 1, 0], [0, 1, 0, 0, 0, 0]]).bool(),
    }
    values.update(changes)
    return values


def build(**changes: Any) -> Dataset:
    values = parts(**changes)
    data = Data(**{k: values[k] for k in ("x", "y", "edge_index", "edge_attr") if k in values})
    extra = {k: values[k] for k in ("class_names", "metric", "node_names") if k in values}
    return Dataset("toy", data, values["train"], values["val"], values["test"], **extra)


def flip(mask: Tensor, split: int, node: int) -> Tensor:
    changed = mask.clone()
    changed[split, node] = ~changed[split, node]
    return changed


def test_it_gives_back_what_it_was_given() -> None:
    dataset, given = build(), parts()
    assert (dataset.name, dataset.num_classes, dataset.num_splits) == ("toy", 3, 2)
    assert dataset.class_names == ("0", "1", "2")
    for split in range(2):
        for mask, key in zip(dataset.split(split), ("train", "val", "test")):
            assert mask.dtype == torch.bool
            assert torch.equal(mask, given[key][split])
    assert "2 splits" in repr(dataset)


@pytest.mark.parametrize("index", [-1, 2, 1.0, True, None])
def test_a_split_out_of_range_is_a_clear_error(index: Any) -> None:
    with pytest.raises(InputError, match=r"toy has 2 splits, numbered 0 to 1"):
        build().split(index)


def with_nan() -> Tensor:
    x = parts()["x"]
    x[3, 1] = float("nan")
    return x


REFUSED = [
    ({"x": with_nan()}, r"feature \[1\] of node 3 is nan"),
    ({"x": torch.ones(6, 2, dtype=torch.float64)}, "float32"),
    ({"x": torch.ones(6)}, r"\[nodes, features\]"),
    ({"y": torch.tensor([0, 1, 0, 1, 2, -2])}, "node 5 has label -2"),
    ({"y": torch.zeros(5, dtype=torch.int64)}, "one int64 label for each of 6"),
    ({"y": torch.tensor([0, 0, 0, 0, 0, -1])}, "at least two"),
    ({"y": torch.tensor([0, 1, 0, 1, -1, -1])}, "node 4 is unlabelled"),
    ({"edge_index": torch.tensor([[0, 1], [1, 6]])}, r"edge 1 joins \[1, 6\]"),
    ({"edge_index": torch.tensor([[0, 1]])}, r"\[2, E\]"),
    ({"edge_attr": torch.ones(2, 1)}, r"edge_attr of shape \[3, D\]"),
    ({"edge_attr": torch.tensor([1.0, float("inf"), 0.0])}, "of edge 1 is inf"),
    ({"val": flip(parts()["val"], 1, 2)}, "in split 1 node 2 is in train and val"),
    ({"test": flip(parts()["test"], 0, 5)}, r"node 5 is unlabelled \(-1\) but in split 0"),
    ({"train": torch.zeros(2, 6, dtype=torch.bool)}, "split 0 has no training nodes"),
    ({"train": parts()["train"].float()}, "boolean train"),
    ({"val": parts()["val"][:1]}, r"val masks of shape \[splits, 6\]"),
    ({"class_names": ["a", "b"]}, "node 4 has label 2"),
    ({"class_names": ["a", "b", "b"]}, "repeat"),
    ({"node_names": ["a"]}, "1 node names"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED)
def test_what_is_wrong_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        build(**changes)


def test_metrics_are_checked() -> None:
    with pytest.raises(InputError, match="roc_auc"):
        build(metric="roc_auc")
    with pytest.raises(InputError, match="metric"):
        build(metric="f1")


def test_huge_but_finite_features_pass() -> None:
    assert build(x=torch.full((6, 2), 3e38)).data.x.max() == pytest.approx(3e38)


def test_one_split_may_be_flat() -> None:
    given = parts()
    assert build(**{k: given[k][0] for k in ("train", "val", "test")}).num_splits == 1


def test_the_fingerprint_tells_graphs_apart() -> None:
    assert build().fingerprint == build().fingerprint
    changes: list[dict[str, Any]] = [
        {"x": parts()["x"] + 1},
        {"y": torch.tensor([0, 1, 0, 2, 1, -1])},
        {"edge_index": torch.tensor([[0, 1, 2], [1, 2, 4]])},
        {"edge_attr": torch.ones(3, 1)},
        {"test": flip(parts()["test"], 0, 4)},
    ]
    assert len({build().fingerprint, *(build(**change).fingerprint for change in changes)}) == 6


def test_the_fingerprint_follows_the_data():
    """Two fits with a change in between are two runs, however the change was made."""
    from ltga.data import csbm

    dataset = csbm(num_nodes=30)
    seen = {dataset.fingerprint}
    dataset.data.x[0, 0] += 1
    seen.add(dataset.fingerprint)
    dataset.data.edge_index.numpy()[0, 0] += 1
    seen.add(dataset.fingerprint)
    dataset.data.y.data[0] = 1 - dataset.data.y[0]
    seen.add(dataset.fingerprint)
    assert len(seen) == 4
