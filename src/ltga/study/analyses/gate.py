"""What an edge gate looks at: its q against the covariates stored with an ``ltga-edge`` run.

Self-loops are left aside: their similarity is 1 and their degrees agree by definition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GroupShuffleSplit

from ltga.errors import InputError

PAPER_COVARIATES = ("source_degree", "target_degree", "feature_cosine", "embedding_cosine")
COVARIATES = (*PAPER_COVARIATES, "logit_magnitude", "score_gap")
FLAT = 1e-6  # q that varies less than this over edges is rounding, not a choice
Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Probe:
    """How much of q a linear model of the covariates explains.

    Attributes:
        r2: on neighbourhoods that the model did not see; can be negative. NaN if q does not vary.
        importance: per covariate, how much of ``r2`` is lost on average when it is shuffled.
    """

    r2: float
    importance: Mapping[str, float]


def gate_samples(arrays: Arrays, layer: int, head: int | None = None) -> pd.DataFrame:
    """One row per edge: ``target``, ``q`` and the covariates, for a head (from 1) or averaged over heads.

    ``score_gap`` is the neighbourhood's largest logit minus the edge's own, ``logit_magnitude`` the
    absolute logit; the others do not depend on the head. See ``ltga.train.observe.edge_covariates``.
    """
    if f"layer{layer}_q" not in arrays:
        raise InputError(f"arrays: no q of layer {layer} was stored; take the arrays of an ltga-edge run")
    heads = arrays[f"layer{layer}_q"].shape[1]
    if head is not None and not 1 <= head <= heads:
        raise InputError(f"head: expected 1 to {heads}, got {head}")
    source, target = arrays["edge_index"]
    proper = source != target

    def of_head(name: str) -> np.ndarray:
        values = arrays[f"layer{layer}_{name}"][proper].astype(np.float64)
        return values.mean(axis=1) if head is None else values[:, head - 1]

    columns = {name: arrays[name][proper].astype(np.float64) for name in PAPER_COVARIATES}
    per_head = {name: of_head(name) for name in ("q", "logit_magnitude", "score_gap")}
    return pd.DataFrame({"target": target[proper], **columns, **per_head})[["target", "q", *COVARIATES]]


def binned_means(covariate: np.ndarray, q: np.ndarray, bins: int = 10) -> pd.DataFrame:
    """Mean q in bins of a covariate that hold about the same number of edges.

    Ties stay together, so a covariate with few values has fewer bins.

    Returns:
        A row per bin: ``low``, ``high`` (its smallest and largest covariate), ``centre`` (its mean
        covariate), mean ``q``, its standard error ``sem`` (NaN for a single edge) and ``count``.

    >>> binned_means(np.array([1.0, 1.0, 2.0, 5.0]), np.array([1.0, 1.5, 2.0, 2.0]), bins=2)["q"].tolist()
    [1.25, 2.0]
    """
    if bins < 1 or len(covariate) != len(q):
        raise InputError(f"covariate, q, bins: got lengths {len(covariate)} and {len(q)}, and {bins} bins")
    edges = np.unique(np.quantile(covariate, np.linspace(0, 1, bins + 1)[1:-1])) if len(q) else np.zeros(0)
    frame = pd.DataFrame({"bin": np.searchsorted(edges, covariate), "covariate": covariate, "q": q})
    grouped = frame.groupby("bin")
    return grouped.agg(
        low=("covariate", "min"),
        high=("covariate", "max"),
        centre=("covariate", "mean"),
        q=("q", "mean"),
        sem=("q", "sem"),
        count=("q", "size"),
    ).reset_index(drop=True)


def linear_probe(samples: pd.DataFrame, covariates: tuple[str, ...] = COVARIATES, seed: int = 0) -> Probe:
    """A linear regression of q, fitted on half of the neighbourhoods and judged on the other half.

    Args:
        samples: as :func:`gate_samples` gives them.
        covariates: the columns to use.
        seed: of the halves and of the shuffling (10 times per covariate).

    NaN throughout if q is flat (varies by less than 1e-6) or there are fewer than two neighbourhoods.
    """
    nothing = Probe(float("nan"), dict.fromkeys(covariates, float("nan")))
    if _flat(samples["q"]) or samples["target"].nunique() < 2:
        return nothing
    halves = GroupShuffleSplit(n_splits=1, test_size=0.5, random_state=seed)
    fitted, judged = next(halves.split(samples, groups=samples["target"]))
    if _flat(samples["q"].iloc[judged]):
        return nothing
    x = samples[list(covariates)].to_numpy()
    x = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), np.finfo(float).tiny)
    q = samples["q"].to_numpy()
    model = LinearRegression().fit(x[fitted], q[fitted])
    shuffled = permutation_importance(model, x[judged], q[judged], n_repeats=10, random_state=seed)
    lost = dict(zip(covariates, shuffled.importances_mean.tolist()))
    return Probe(float(model.score(x[judged], q[judged])), lost)


def gate_summary(arrays: Arrays, seed: int = 0) -> pd.DataFrame:
    r"""Spearman's rho and permutation importance of every covariate, and R2 of the linear probe.

    Args:
        arrays: those of an ``ltga-edge`` run (``run.arrays``).
        seed: of the probe.

    Returns:
        A row per layer, head (from 1; ``"all"`` for q and covariates averaged over heads) and covariate:
        ``spearman`` (NaN if q or the covariate is constant), ``importance``, and the same in every row of
        a head: ``r2``, ``r2_paper`` (without logit magnitude and score gap), ``q_mean``, ``q_std``.

    Covariates that move together (logit magnitude and score gap do) share what they explain: their
    importances can add up to more than ``r2``. Averaging over heads can hide what each head does.
    """
    rows = []
    for layer in range(1, _layers(arrays) + 1):
        heads = arrays[f"layer{layer}_q"].shape[1]
        for head in (*range(1, heads + 1), None):
            samples = gate_samples(arrays, layer, head)
            probe, paper = linear_probe(samples, seed=seed), linear_probe(samples, PAPER_COVARIATES, seed)
            shared = {"r2": probe.r2, "r2_paper": paper.r2}
            shared |= {"q_mean": samples["q"].mean(), "q_std": samples["q"].std(ddof=0)}
            rows += [
                {
                    "layer": layer,
                    "head": "all" if head is None else str(head),
                    "covariate": name,
                    "spearman": _spearman(samples[name], samples["q"]),
                    "importance": probe.importance[name],
                    **shared,
                }
                for name in COVARIATES
            ]
    return pd.DataFrame(rows)


def gate_bins(arrays: Arrays, bins: int = 10) -> pd.DataFrame:
    """:func:`binned_means` of q averaged over heads, for every ``layer`` and ``covariate``."""
    frames = {}
    for layer in range(1, _layers(arrays) + 1):
        samples = gate_samples(arrays, layer)
        for name in COVARIATES:
            frames[layer, name] = binned_means(samples[name].to_numpy(), samples["q"].to_numpy(), bins)
    return pd.concat(frames, names=["layer", "covariate", None]).reset_index(["layer", "covariate"])


def q_histogram(arrays: Arrays, delta: float, bins: int = 60) -> pd.DataFrame:
    """How q is distributed over edges and heads, self-loops aside.

    Args:
        arrays: those of an ``ltga-edge`` run.
        delta: q lies in [1 - delta, 1 + delta].

    Returns:
        A row per layer and bin: ``low``, ``high``, ``count``, and the layer's ``mean`` q.
    """
    frames = []
    proper = arrays["edge_index"][0] != arrays["edge_index"][1] if "edge_index" in arrays else np.zeros(0, bool)
    for layer in range(1, _layers(arrays) + 1):
        q = arrays[f"layer{layer}_q"][proper].clip(1 - delta, 1 + delta)  # float32 may round q beyond the ends
        count, edges = np.histogram(q, bins, (1 - delta, 1 + delta))
        columns = {"layer": layer, "low": edges[:-1], "high": edges[1:], "count": count, "mean": q.mean(dtype=float)}
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)


def _layers(arrays: Arrays) -> int:
    layers = sum(name.startswith("layer") and name.endswith("_q") for name in arrays)
    if not layers:
        raise InputError("arrays: no q of edges was stored; take the arrays of an ltga-edge run")
    return layers


def _spearman(covariate: pd.Series, q: pd.Series) -> float:
    if _flat(q) or covariate.nunique() < 2:
        return float("nan")
    return float(spearmanr(covariate, q).statistic)


def _flat(q: pd.Series) -> bool:
    return len(q) == 0 or float(q.max() - q.min()) < FLAT
