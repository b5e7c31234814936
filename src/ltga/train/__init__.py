"""Training: the protocol, one run, and its record."""

from ltga.train.classifier import LTGAClassifier
from ltga.train.fit import Run, fit, load_run
from ltga.train.loop import EpochInfo
from ltga.train.minibatch import MiniBatch
from ltga.train.protocol import Protocol
from ltga.train.tensorboard import TensorBoard

__all__ = ["EpochInfo", "LTGAClassifier", "MiniBatch", "Protocol", "Run", "TensorBoard", "fit", "load_run"]
