"""The maths in plain differentiable torch: the definition everything else is tested against."""

from ltga.functional.entmax import bridge_scale, entmax, segment_entmax, segment_sparsemax, sparsemax
from ltga.functional.softmax import q_softmax, segment_q_softmax
from ltga.functional.tsallis import exp_q, log_q, tsallis_entropy

__all__ = [
    "bridge_scale",
    "entmax",
    "exp_q",
    "log_q",
    "q_softmax",
    "segment_entmax",
    "segment_q_softmax",
    "segment_sparsemax",
    "sparsemax",
    "tsallis_entropy",
]
