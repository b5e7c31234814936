"""Linear models that see features but no edges: what every network should beat. By scikit-learn, in seconds."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor

MOST_VALUES = 20_000_000  # of features to learn from; above that only some of the rows are


def class_logits(x: Any, y: np.ndarray, train: Tensor, wanted: Tensor, classes: int) -> Tensor:
    """Log-probabilities ``[n, C]`` of rows ``wanted`` by logistic regression on the rows ``train`` of ``x`` ``[N, F]``.

    Whatever gives rows for their numbers will do for ``x``.
    """
    train = _some(train, x.shape[1], classes)
    known = np.unique(y[train])
    found = np.full((len(wanted), classes), -np.inf)
    if known.size == 1:
        found[:, known] = 0.0
        return torch.from_numpy(found)
    model = _fitted(_logistic(), x, y, train)
    for at in torch.arange(len(wanted)).split(_rows(x.shape[1], classes)):
        found[np.ix_(at, known)] = model.predict_log_proba(x[wanted[at]].numpy())
    return torch.from_numpy(found).double().log_softmax(-1)


def label_logits(x: Any, y: np.ndarray, train: Tensor, wanted: Tensor) -> Tensor:
    """Logits ``[n, L]`` of several labels ``y`` ``[N, L]``, each by itself; NaN where one is not known."""
    found = np.zeros((len(wanted), y.shape[1]))
    for label in range(y.shape[1]):
        known = train[torch.from_numpy(~np.isnan(y[train, label]))]
        column = np.nan_to_num(y[:, label]).astype(np.int64)
        log_odds = class_logits(x, column, known, wanted, 2) if len(known) else torch.zeros(len(wanted), 2)
        found[:, label] = (log_odds[:, 1] - log_odds[:, 0]).clamp(-20, 20)
    return torch.from_numpy(found)


def numbers(x: Any, y: np.ndarray, train: Tensor, wanted: Tensor) -> Tensor:
    """Predictions ``[n, 1]`` of a number by ridge regression."""
    from sklearn.linear_model import Ridge

    model = _fitted(Ridge(), x, y, _some(train, x.shape[1], 1))
    parts = [model.predict(x[some].numpy()) for some in wanted.split(_rows(x.shape[1], 1))]
    return torch.from_numpy(np.concatenate(parts) if parts else np.zeros(0)).double().unsqueeze(1)


def _logistic() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=100)


def _fitted(model: Any, x: Any, y: np.ndarray, train: Tensor) -> Any:
    """``model`` behind a scaler, fitted to some rows."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    both = make_pipeline(StandardScaler(), model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a yardstick need not be exact
        return both.fit(x[train].numpy(), y[train.numpy()])


def _rows(features: int, least: int) -> int:
    return max(MOST_VALUES // features, least)


def _some(train: Tensor, features: int, least: int) -> Tensor:
    most = _rows(features, least)
    if len(train) <= most:
        return train
    return torch.from_numpy(np.sort(np.random.default_rng(0).choice(train.numpy(), most, replace=False)))
