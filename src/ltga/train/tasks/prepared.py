"""What each kind of task gives to whoever runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ltga.nn.interface import Network
from ltga.train.loop import Learnable

Observed = tuple[dict[str, Any], dict[str, np.ndarray]]


@dataclass(frozen=True, eq=False)
class Prepared:
    """A task ready to be trained on.

    Attributes:
        task: what the loop trains on.
        observe: from a trained model to what its record says, and to arrays beside it.
        target: what the record says about what is predicted.
    """

    task: Learnable
    observe: Callable[[Network], Observed]
    target: dict[str, Any]
