"""The contextual SBM against its own probabilities, and the digits graph against scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import norm
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors
from torch_geometric.utils import contains_self_loops, homophily

from ltga.data import csbm, digits_noise
from ltga.errors import InputError


@pytest.mark.parametrize("degree", [5, 20])
@pytest.mark.parametrize(("h", "classes"), [(0.5, 2), (0.2, 2), (0.8, 5)])
def test_degree_and_homophily_are_as_asked(degree: int, h: float, classes: int) -> None:
    dataset = csbm(4000, degree=degree, homophily=h, num_classes=classes, seed=3)
    edge_index, y = dataset.data.edge_index, dataset.data.y
    links = edge_index.shape[1] / 2
    expected = 4000 * degree / 2
    assert abs(links - expected) < 5 * math.sqrt(expected)
    share = homophily(edge_index, y, method="edge")
    assert abs(share - h) < 5 * math.sqrt(h * (1 - h) / links)
    assert dataset.data.is_undirected()
    assert not contains_self_loops(edge_index)
    assert torch.unique(edge_index, dim=1).shape[1] == edge_index.shape[1]
    assert torch.bincount(y).tolist() == [4000 // classes] * classes


def test_degrees_spread_as_in_independent_links() -> None:
    """A binomial degree has variance close to its mean."""
    dataset = csbm(4000, degree=20, seed=5)
    degrees = torch.bincount(dataset.data.edge_index[0], minlength=4000).double()
    assert float(degrees.var() / degrees.mean()) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("snr", [0.1, 1.0, 2.0])
def test_snr_sets_the_error_of_the_best_feature_classifier(snr: float) -> None:
    """Two Gaussians at distance 2 snr are told apart with error Phi(-snr)."""
    data = csbm(20000, degree=1, snr=snr, num_features=4, seed=1).data
    x, y = data.x.numpy(), data.y.numpy()
    direction = x[y == 1].mean(0) - x[y == 0].mean(0)
    middle = (x[y == 1].mean(0) + x[y == 0].mean(0)) / 2
    error = float((((x - middle) @ direction > 0) != (y == 1)).mean())
    assert error == pytest.approx(norm.cdf(-snr), abs=0.03 if snr < 0.5 else 0.015)
    assert np.linalg.norm(direction) == pytest.approx(2 * snr, abs=0.1)
    assert x[y == 0].std(axis=0) == pytest.approx(1, abs=0.05)


def test_class_means_form_a_regular_simplex() -> None:
    data = csbm(4000, degree=1, snr=50.0, num_classes=4, num_features=6, seed=2).data
    means = torch.stack([data.x[data.y == c].mean(0) for c in range(4)]) / 50.0
    distances = torch.cdist(means, means)[~torch.eye(4, dtype=torch.bool)]
    assert distances.numpy() == pytest.approx(math.sqrt(8 / 3), abs=0.02)


@pytest.mark.parametrize("make", [csbm, digits_noise])
def test_the_seed_decides_and_global_state_does_not(make: object) -> None:
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002
    before = torch.get_rng_state()
    first = make(seed=4)  # type: ignore[operator]
    assert torch.equal(torch.get_rng_state(), before)
    np.random.seed(1)  # noqa: NPY002
    again, other = make(seed=4), make(seed=5)  # type: ignore[operator]
    assert torch.equal(first.data.x, again.data.x)
    assert torch.equal(first.data.edge_index, again.data.edge_index)
    assert torch.equal(first.split(3)[0], again.split(3)[0])
    assert not torch.equal(first.data.edge_index, other.data.edge_index)
    assert not torch.equal(first.split(3)[0], other.split(3)[0])


@pytest.mark.parametrize(
    "settings",
    [
        {"num_classes": 1},
        {"num_nodes": 5},
        {"degree": 0},
        {"degree": 1200},
        {"homophily": 1.5},
        {"snr": -1},
        {"snr": float("nan")},
        {"num_features": 1, "num_classes": 3},
    ],
)
def test_impossible_models_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(settings))):
        csbm(**settings)  # type: ignore[arg-type]


def test_unplanted_edges_are_scikit_learns_neighbours() -> None:
    data = digits_noise(k=5).data
    pixels, labels = load_digits(return_X_y=True)
    assert np.array_equal(data.x.numpy() * 16, pixels)
    assert np.array_equal(data.y.numpy(), labels)
    true = {tuple(pair) for pair in data.edge_index[:, ~data.planted_edge].T.tolist()}
    distance, nearest = NearestNeighbors(n_neighbors=6).fit(pixels).kneighbors()
    # Where the fifth and sixth neighbour are equally near, either choice is right.
    certain = {
        (i, int(j)) for i in range(1797) for d, j in zip(distance[i, :5], nearest[i, :5]) if d < distance[i, 5] - 1e-9
    }
    assert certain | {(j, i) for i, j in certain} <= true
    assert abs(len(true) - len({tuple(sorted(p)) for p in certain}) * 2) < 60


@pytest.mark.parametrize("ratio", [0.0, 1.0, 3.0])
def test_planted_edges_are_marked_and_counted(ratio: float) -> None:
    data = digits_noise(planted_per_edge=ratio).data
    planted = int(data.planted_edge.sum())
    assert planted == ratio * (data.edge_index.shape[1] - planted)
    assert data.planted_edge.dtype == torch.bool
    assert data.is_undirected()
    assert not contains_self_loops(data.edge_index)
    assert torch.unique(data.edge_index, dim=1).shape[1] == data.edge_index.shape[1]
    assert "edge_attr" not in data
    same = (data.y[data.edge_index[0]] == data.y[data.edge_index[1]]).float()
    assert float(same[~data.planted_edge].mean()) > 0.95
    if planted:
        assert float(same[data.planted_edge].mean()) == pytest.approx(0.1, abs=0.02)


def test_both_directions_of_an_edge_are_planted_or_neither() -> None:
    data = digits_noise().data
    flag = dict(zip(map(tuple, data.edge_index.T.tolist()), data.planted_edge.tolist()))
    assert all(flag[b, a] == planted for (a, b), planted in flag.items())


def test_the_digits_splits_are_thirty_twenty_fifty() -> None:
    dataset = digits_noise()
    for split in range(dataset.num_splits):
        shares = [float(mask.float().mean()) for mask in dataset.split(split)]
        assert shares == pytest.approx([0.3, 0.2, 0.5], abs=0.005)


@pytest.mark.parametrize(
    "settings", [{"k": 0}, {"k": 1797}, {"planted_per_edge": -1}, {"planted_per_edge": 9, "k": 300}]
)
def test_impossible_digits_graphs_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(settings))):
        digits_noise(**settings)  # type: ignore[arg-type]
