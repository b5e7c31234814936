"""What the scikit-learn style estimators of other tasks than node classification share: settings, saving, targets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from torch import Tensor

from ltga.data import make_target
from ltga.data.target import Target
from ltga.errors import DataError, InputError, RecordError
from ltga.train.classifier import LTGAClassifier, NotTrainedError, _seed
from ltga.train.classifier_file import read_estimator, write_estimator
from ltga.train.fitting import fit
from ltga.train.loop import Callback
from ltga.train.minibatch import MiniBatch
from ltga.train.protocol import Protocol


class TaskEstimator(BaseEstimator):
    """What the estimators of other tasks share.

    Args:
        method: a name of ``ltga.nn.methods.METHODS``.
        lr, weight_decay, kappa, warmup, prior, delta, dropout, epochs, patience, hidden_channels, heads, num_layers,
            residual, init, backend, metric, class_weights, index_form, index_start, norm: as in
            :class:`~ltga.Protocol`; ``None`` for what suits the task.
        options: settings of the task, see :class:`~ltga.train.tasks.task_options.TaskOptions`.
        validation_fraction: share of what has a target that is set aside to choose the best epoch: a fifth, of links a
            twentieth, if left out.
        minibatch: for nodes, train on sampled neighbourhoods: settings of :class:`~ltga.train.MiniBatch`, ``None`` for
            the whole graph at once, ``"auto"`` for what memory allows.
        random_state: decides weights, dropout and the validation part.
        progress: show a line with loss, validation and q.

    Attributes:
        run_: the run behind it: record, model, attention statistics.
        n_features_in_: number of features of a node.
    """

    _usual_share = 0.2

    def __init__(
        self,
        method: str = "ltga-head",
        *,
        lr: float | None = None,
        weight_decay: float | None = None,
        kappa: float | None = None,
        warmup: int | None = None,
        prior: float | None = None,
        delta: float | None = None,
        dropout: float | None = None,
        epochs: int | None = None,
        patience: int | None = None,
        hidden_channels: int | str | None = None,
        heads: int | str | None = None,
        num_layers: int | None = None,
        residual: bool | None = None,
        init: str | None = None,
        backend: str | None = None,
        metric: str | None = None,
        class_weights: bool | None = None,
        index_form: str | None = None,
        index_start: float | str | None = None,
        norm: str | None = None,
        options: Mapping[str, Any] | None = None,
        validation_fraction: float | None = None,
        minibatch: Mapping[str, Any] | str | None = "auto",
        random_state: int | np.random.RandomState | None = 1,
        progress: bool = False,
    ) -> None:
        # scikit-learn reads the signature and wants every argument kept under its name, as it is.
        for name, value in list(locals().items()):
            if name != "self":
                setattr(self, name, value)

    _plain_params = LTGAClassifier._plain_params

    def _validation(self, codes: np.ndarray, val_mask: Any, known: np.ndarray) -> np.ndarray:
        """Which of the known items validate, as the classifier of nodes chooses them."""
        usual = LTGAClassifier(validation_fraction=self._share)
        return usual._validation(codes, val_mask, known, self._seed)

    def save(self, path: str | Path) -> Path:
        """Store the fitted estimator in one ``.safetensors`` file: tensors and JSON, no pickle."""
        self._check_fitted()
        classes = getattr(self, "classes_", None)
        return write_estimator(path, type(self).__name__, self._plain_params(), classes, self.run_)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The estimator that :meth:`save` stored."""
        stored = read_estimator(path)
        if stored.kind != cls.__name__:
            raise RecordError(
                f"{path}: holds another estimator than {cls.__name__}; load it with {stored.kind[:40]}.load"
            )
        try:
            made = cls(**stored.params)
        except TypeError as error:
            raise RecordError(f"{path}: was stored by another version ({error}); fit it again") from None
        made._keep(stored.run)
        if stored.classes is not None:
            made.classes_ = stored.classes  # type: ignore[attr-defined]
        return made

    def _train(self, dataset: Any, seed: int, callbacks: Iterable[Callback], task: Any = None) -> Self:
        params = self._plain_params()
        protocol = {name: params[name] for name in Protocol.model_fields if params[name] is not None}
        batches = params["minibatch"]
        self._keep(
            fit(
                dataset, params["method"], seed, protocol=protocol, callbacks=callbacks, progress=self.progress,  # type: ignore[attr-defined]
                minibatch=MiniBatch(**batches) if isinstance(batches, Mapping) else batches, task=task,
                options=params["options"],
            )
        )  # fmt: skip
        return self

    def _keep(self, run: Any) -> None:
        self.run_ = run
        self.n_features_in_ = run.typed.model["in_channels"]

    def _check_fitted(self) -> None:
        if not hasattr(self, "run_"):
            raise NotTrainedError(f"{type(self).__name__}: is not fitted yet; call fit first")

    @property
    def _share(self) -> float:
        """The share that validates."""
        share = self.validation_fraction  # type: ignore[attr-defined]
        return self._usual_share if share is None else share  # type: ignore[no-any-return]

    @property
    def _seed(self) -> int:
        return _seed(self.random_state)  # type: ignore[attr-defined]


def numbers_of(y: Any, count: int, kind: str) -> np.ndarray:
    """``y`` as float64 ``[n]``, or ``[n, L]`` for labels; what is masked, ``None`` or ``pandas.NA`` is NaN.

    >>> numbers_of([1, None], 2, "number")
    array([ 1., nan])
    """
    try:
        if isinstance(y, Tensor):
            values = y.double().numpy(force=True)
        elif isinstance(y, np.ma.MaskedArray):
            values = np.ma.filled(y.astype(float), np.nan)
        elif isinstance(y, pd.Series | pd.DataFrame):
            values = y.to_numpy(dtype=float, na_value=np.nan)
        else:
            values = np.asarray(y, dtype=float)
    except (TypeError, ValueError):
        raise InputError("y: expected numbers, NaN where they are not known") from None
    if kind == "number" and values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != (2 if kind == "labels" else 1) or len(values) != count:
        wanted = f"[{count}, labels]" if kind == "labels" else f"[{count}]"
        raise InputError(f"y: expected numbers of shape {wanted}, got {list(values.shape)}")
    return values


def target_of(values: np.ndarray, kind: Any, item: str) -> Target:
    """The checked target that ``y`` holds."""
    try:
        return make_target(values, "y", kind, item=item)
    except DataError as error:
        raise InputError(str(error)) from None
