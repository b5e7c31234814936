"""How well each of several labels is predicted, a row each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from sklearn.metrics import average_precision_score, roc_auc_score


def label_table(probability: np.ndarray, truth: np.ndarray, names: Sequence[str]) -> pd.DataFrame:
    """Counts, F1 at one half, average precision and area under the ROC curve of every label; NaN where not defined.

    Args:
        probability: ``[n, L]``.
        truth: ``[n, L]`` of 0, 1 and NaN (not known, left out).

    >>> truth = np.array([[1.0, 0], [0, np.nan], [1, 1]])
    >>> label_table(np.array([[0.9, 0.6], [0.2, 0.1], [0.4, 0.7]]), truth, ["a", "b"])["f1"].round(3).tolist()
    [0.667, 0.667]
    """
    rows = []
    for column, name in enumerate(names):
        known = ~np.isnan(truth[:, column])
        y, p = truth[known, column] == 1, probability[known, column]
        said = p > 0.5
        both = 2 * int((said & y).sum()) + int((said != y).sum())
        mixed = 0 < int(y.sum()) < len(y)
        rows.append(
            {
                "label": name,
                "known": int(known.sum()),
                "true": int(y.sum()),
                "predicted": int(said.sum()),
                "f1": 2 * int((said & y).sum()) / both if both else float("nan"),
                "average_precision": float(average_precision_score(y, p)) if mixed else float("nan"),
                "roc_auc": float(roc_auc_score(y, p)) if mixed else float("nan"),
            }
        )
    return pd.DataFrame(rows)
