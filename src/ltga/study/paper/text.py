"""What the paper's text and captions say about its tables, checked against those tables."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from statistics import fmean

import pandas as pd

from ltga.study.paper.cells import DATASETS
from ltga.study.paper.check import CELLS, PAIR_SLACK, PRINTED_MEANS, Check, claim, judge, printed_mean
from ltga.study.paper.printed import (
    DELTA_2_LOSS_IN_TEXT,
    HEADLINE,
    PRUNING_IN_TEXT,
    ROMAN_SPARSITY_IN_CAPTION,
    SWEEPS_IN_TEXT,
)
from ltga.study.paper.printed_tables import GRANULARITY, GRANULARITY_Q, PRUNING, SWEEPS
from ltga.study.paper.rounding import half_unit
from ltga.study.stats.paired import paired_test

WEBKB = ("texas", "wisconsin", "cornell")
CITATION = ("cora", "citeseer", "pubmed")
LTGA = tuple(method for method in HEADLINE if method.startswith("ltga"))
GRID = ("frozen-q0.5", "frozen-q0.8", "frozen-q1.0", "frozen-q1.2", "frozen-q1.5", "frozen-q2.0")


def check_headline_text() -> Iterator[Check]:
    headline = PRINTED_MEANS[list(HEADLINE)]
    averages = headline.mean()
    yield claim(
        '"Where LTGA does not win": average accuracy',
        "GATv2 has the higher average accuracy over the eight datasets",
        ", ".join(f"{method} {averages[method]:.1f}" for method in ("gatv2", *LTGA)),
        averages.idxmax() == "gatv2",
        "true against the scalar granularities only",
    )
    best = {dataset: _best(dataset, HEADLINE) for dataset in WEBKB}
    yield claim(
        '"Where LTGA does not win": WebKB',
        "GATv2 wins the three WebKB graphs",
        ", ".join(f"{dataset} {' and '.join(methods)}" for dataset, methods in best.items()),
        all("gatv2" in methods for methods in best.values()),
        "true against the scalar granularities only",
    )
    edge = sum("ltga-edge" in _best(dataset, LTGA) for dataset in DATASETS)
    yield claim(
        "granularity table, caption: cells taken by ltga-edge", "5 of 8", f"{edge} of {len(DATASETS)}", edge == 5
    )
    yield claim(
        "granularity table, caption: seeds",
        "n = 3",
        "every cell equals, s.d. included, that of the headline table over 10 seeds",
        False,
    )
    yield claim(
        "headline table, bold on texas",
        "gat alone",
        " and ".join(_best("texas", HEADLINE)),
        _best("texas", HEADLINE) == ["gat"],
        "the printed average ranks need an exact tie",
    )
    spread = [float(CELLS[method, dataset].split("±")[1]) for dataset in WEBKB for method in HEADLINE]
    yield claim("s.d. on WebKB", "4.6-15.0", f"{min(spread)}-{max(spread)}", (min(spread), max(spread)) == (4.6, 15.0))


def check_baseline_text() -> Iterator[Check]:
    """Frozen q, composition, heterophily models."""
    chosen = {
        dataset: [m for m in GRID if CELLS[m, dataset] == CELLS["frozen-q-tuned", dataset]] for dataset in DATASETS
    }
    below = [dataset for dataset, methods in chosen.items() if methods and all(_q(m) < 1 for m in methods)]
    yield claim(
        "frozen q chosen on validation accuracy",
        "no dataset prefers q < 1",
        ", ".join(f"{dataset}: the tuned cell is that of {' or '.join(chosen[dataset])}" for dataset in below),
        not below,
        "mean and s.d. of the tuned row match no other frozen q",
    )
    averages = PRINTED_MEANS[list(GRID)].mean()
    yield claim("worst frozen q on average", "0.5", str(_q(str(averages.idxmin()))), averages.idxmin() == "frozen-q0.5")
    for dataset in CITATION:
        curve = [printed_mean(method, dataset) for method in GRID]
        yield claim(
            f"accuracy against frozen q on {dataset}",
            "decreases monotonically",
            " ".join(f"{value:.1f}" for value in curve),
            curve == sorted(curve, reverse=True),
        )
    dot = [printed_mean("dot-ltga-head", dataset) - printed_mean("dot-softmax", dataset) for dataset in DATASETS]
    gain = fmean(dot)
    yield judge("learned q with dot-product scores: gain", "0.3", gain, (gain - PAIR_SLACK, gain + PAIR_SLACK))
    same = [dataset for dataset in DATASETS if CELLS["dot-ltga-head", dataset] == CELLS["dot-softmax", dataset]]
    yield claim("learned q with dot-product scores: identical datasets", "6", str(len(same)), len(same) == 6)
    # The two datasets that differ both gain (Amazon-Ratings by less than a printed digit): 2 pairs, one sign.
    differing = [0.0 if dataset in same else gained or 0.01 for dataset, gained in zip(DATASETS, dot, strict=True)]
    p = paired_test(differing, [0.0] * len(DATASETS)).p
    yield judge("learned q with dot-product scores: Wilcoxon p", "0.50", p, (p, p))
    table = ("h2gcn", "gprgnn", "fagcn", "linkx", "gat", "gatv2", "ltga-head", "ltga-edge")
    wins = sum(_best(dataset, table) == ["h2gcn"] for dataset in DATASETS)
    yield claim("datasets won by h2gcn", "4", str(wins), wins == 4)


def check_sweep_text() -> Iterator[Check]:
    """The appendix's walk through the Roman-Empire sweeps quotes other numbers than their tables hold."""
    for setting, quoted in SWEEPS_IN_TEXT.items():
        row = _swept(setting)
        for what, printed, cell in zip(("accuracy", "mean q"), quoted, (_mean(row["accuracy"]), row["q"]), strict=True):
            if printed:
                value, slack = float(cell), half_unit(cell)
                yield judge(
                    f"Roman-Empire, {setting}: {what} in the text", printed, value, (value - slack, value + slack)
                )
    loss = float(_mean(_swept("delta=1.5")["accuracy"])) - float(_mean(_swept("delta=2.0")["accuracy"]))
    yield judge(
        "Roman-Empire, delta=2.0: loss in the text", DELTA_2_LOSS_IN_TEXT, loss, (loss - PAIR_SLACK, loss + PAIR_SLACK)
    )
    names = {"lambda=0": "lambda=0", "kappa=1": "kappa=1", "delta=1": "delta=1", "granularity head": "head"}
    default = {table: _swept(setting)["accuracy"] for table, setting in names.items()}
    yield claim(
        "LTGA-Head with the headline settings over five seeds",
        ", ".join(f"{cell} ({table})" for table, cell in default.items()),
        "one cell",
        len(set(default.values())) == 1,
        "if the sweeps otherwise keep the headline settings, four tables hold this configuration and disagree",
    )
    zeros = sorted(GRANULARITY_Q.loc[GRANULARITY_Q["dataset"] == "roman-empire", "zeros"].astype(float))
    low, high = map(float, ROMAN_SPARSITY_IN_CAPTION)
    yield claim(
        "share of exact zeros on Roman-Empire in the caption",
        f"{low:.0f}-{high:.0f}%",
        f"{zeros[0]}-{zeros[-1]}%",
        low - 0.5 <= zeros[0] and zeros[-1] <= high + 0.5,
    )


def check_pruning_text() -> Iterator[Check]:
    row = _roman(PRUNING, method="ltga-head")
    called = {"restore": "all edges"}
    for (better, worse), printed in PRUNING_IN_TEXT.items():
        value = float(_mean(row[better])) - float(_mean(row[worse]))
        where = f"pruning, {called.get(better, better)} minus {called.get(worse, worse)}"
        yield judge(where, printed, value, (value - PAIR_SLACK, value + PAIR_SLACK))


def _swept(setting: str) -> dict[Hashable, str]:
    """What the tables of sweeps print of Roman-Empire; settings are called as in ``SWEEPS_IN_TEXT``."""
    name, _, value = setting.partition("=")
    if not value:
        return _roman(GRANULARITY, method=f"ltga-{name}")
    return _roman(SWEEPS, setting={"lambda": "prior", "T_w": "warmup"}.get(name, name), value=float(value))


def _roman(table: pd.DataFrame, **where: object) -> dict[Hashable, str]:
    """The one row of a table that is of Roman-Empire and has these values."""
    for column, value in {"dataset": "roman-empire", **where}.items():
        table = table[table[column] == value]
    (row,) = table.to_dict("records")
    return row


def _mean(cell: str) -> str:
    return cell.partition("±")[0]


def _best(dataset: str, methods: tuple[str, ...]) -> list[str]:
    best = max(printed_mean(method, dataset) for method in methods)
    return [method for method in methods if printed_mean(method, dataset) == best]


def _q(method: str) -> float:
    return float(method.removeprefix("frozen-q"))
