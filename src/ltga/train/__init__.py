"""Training: the protocol, one run, and its record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ltga.lazy import lazy_names

if TYPE_CHECKING:
    from ltga.train.classifier import LTGAClassifier
    from ltga.train.estimators import (
        LTGAGraphClassifier,
        LTGAGraphRegressor,
        LTGALinkPredictor,
        LTGAMultiLabelClassifier,
        LTGARegressor,
    )
    from ltga.train.finished import Run, load_run
    from ltga.train.fitting import fit
    from ltga.train.loop import EpochInfo
    from ltga.train.minibatch import MiniBatch
    from ltga.train.protocol import Protocol
    from ltga.train.tensorboard import TensorBoard
    from ltga.train.tuning.search import tune

__all__ = [
    "EpochInfo",
    "LTGAClassifier",
    "LTGAGraphClassifier",
    "LTGAGraphRegressor",
    "LTGALinkPredictor",
    "LTGAMultiLabelClassifier",
    "LTGARegressor",
    "MiniBatch",
    "Protocol",
    "Run",
    "TensorBoard",
    "fit",
    "load_run",
    "tune",
]

__getattr__ = lazy_names(
    __name__,
    {
        "ltga.train.classifier": "LTGAClassifier",
        "ltga.train.estimators": (
            "LTGAGraphClassifier LTGAGraphRegressor LTGALinkPredictor LTGAMultiLabelClassifier LTGARegressor"
        ),
        "ltga.train.finished": "Run load_run",
        "ltga.train.fitting": "fit",
        "ltga.train.loop": "EpochInfo",
        "ltga.train.minibatch": "MiniBatch",
        "ltga.train.protocol": "Protocol",
        "ltga.train.tensorboard": "TensorBoard",
        "ltga.train.tuning.search": "tune",
    },
)
