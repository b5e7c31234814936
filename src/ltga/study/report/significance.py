"""Tables of tests: the declared family under both initialisations, seeds as observations, datasets as observations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from ltga.study import EXPERIMENTS, Experiment, stats
from ltga.study.paper import PRINTED_MEANS
from ltga.study.paper.printed import FRIEDMAN_CHI2, FRIEDMAN_P, PAIRWISE, SEEDS
from ltga.study.report.accuracy import accuracies_behind, printed_ranks
from ltga.study.report.names import label
from ltga.study.report.pivot import DATASET, METHOD
from ltga.study.report.render import signed
from ltga.study.report.run_table import (
    complete_datasets,
    finished,
    mean_accuracies,
    run_table,
    tuned_rows,
    tuned_runs,
)  # fmt: skip
from ltga.study.report.runs import PAIRED, Study
from ltga.study.report.tables import Behind, Cell, Column, Table, number_cell, text_cell, with_reference
from ltga.study.spec import STAND_INS
from ltga.study.stats import PRIMARY

ALPHA = 0.05
FIRST = "ltga-edge"  # what the paper compares with the others
_PAIR = (DATASET.head, Column("comparison", numeric=False))
_TESTED = (
    Column("seeds"), Column("Δ (points)"), Column("95 % interval", numeric=False), Column("Cohen's d"),
    Column("wins/losses/ties", numeric=False), Column("test", numeric=False), Column("p"), Column("p (Holm)"),
    Column("p (splits overlap)"), Column("P(better)"), Column("remarks", numeric=False),
)  # fmt: skip


_P = [column.label for column in _TESTED[2:]].index("p")
_TERMS = (
    "Paired t or, where Shapiro-Wilk rejects normality, Wilcoxon; Holm over the whole family, whether run or not. "
    "Splits overlap: the t-test corrected for random splits that share nodes (Nadeau and Bengio), where seeds have "
    "splits of their own; not corrected by Holm. Interval: BCa bootstrap of the mean difference. P(better): share of "
    "seeds won, ties half, with Wilson's 95 % interval."
)


def primary_table(study: Study, experiment: Experiment) -> Table:
    """The declared family, under paired initialisation and under the paper's."""
    inits = {"paired": EXPERIMENTS.get(experiment.name + PAIRED), "paper": experiment}
    compared: dict[str, tuple[pd.DataFrame, pd.DataFrame]] = {}
    warnings = []
    for init, source in inits.items():
        runs = None if source is None else _within(finished(run_table(study, source)), PRIMARY)
        if runs is None or runs.empty:
            warnings.append(f"no run under {init} initialisation yet")
        else:
            compared[init] = stats.compare(stats.scores_from_records(runs["record"], init=init), PRIMARY, ALPHA), runs
    rows = []
    for dataset, method in PRIMARY:
        for init, (frame, runs) in compared.items():
            found = frame[(frame["dataset"] == dataset) & (frame["method"] == method)].iloc[0]
            cells = _tested(found, _both(runs, dataset, (method, PRIMARY.control)))
            rows.append((*_pair_cells(dataset, method, PRIMARY.control), text_cell(init), *cells))
    warnings += _warn({init: frame for init, (frame, _) in compared.items()})
    note = (
        f"The family declared in `ltga.study.stats.PRIMARY`: {len(PRIMARY)} comparisons under paired initialisation; "
        f"beside them the same under the paper's. Test accuracy, paired seeds. {_TERMS}"
    )
    columns = (*_PAIR, Column("init", numeric=False), *_TESTED)
    return Table(f"{experiment.name}-tests", "Primary comparisons", columns, tuple(rows), note, tuple(warnings))


def _within(runs: pd.DataFrame, family: stats.Family) -> pd.DataFrame:
    return runs[runs["method"].isin((*family.methods, family.control)) & runs["dataset"].isin(family.datasets)]


def _pair_cells(dataset: str, first: str, second: str) -> tuple[Cell, Cell]:
    return DATASET.cell(dataset), text_cell(f"{label(first)} – {label(second)}")


def _warn(frames: Mapping[str, pd.DataFrame]) -> list[str]:
    said = []
    for init, frame in frames.items():
        run = frame[frame["n"] > 0]
        unreachable = run[~run["reachable"] & (run["ties"] < run["n"])]
        if len(unreachable):
            said.append(
                f"{init} init: {len(unreachable)} of {len(run)} comparisons could not have reached {ALPHA:g} "
                f"whatever their outcome ({', '.join(dict.fromkeys(unreachable['dataset']))})"
            )
        single = dict.fromkeys(run.loc[run["single_split"], "dataset"])
        if single:
            said.append(
                f"{init} init: all seeds on {', '.join(single)} share one public split, so these tests speak of "
                "initialisation and dropout, not of other splits"
            )
    return said


def _tested(
    row: pd.Series[Any], pairs: Sequence[Behind], flip: bool = False, delta: str | None = None, p: str | None = None
) -> list[Cell]:
    """The cells of one row of :func:`ltga.study.stats.compare`; ``flip`` swaps the two methods.

    ``delta`` and ``p`` are what the paper prints.
    """
    sign = -1 if flip else 1
    delta = None if delta is None else delta.replace("-", "−")
    if not row["n"]:
        empty = [Cell() for _ in _TESTED[2:]]
        empty[_P] = Cell(reference=p)
        return [number_cell("0", 0), Cell(wanted=1, reference=delta), *empty[:-1], text_cell(row["note"])]
    low, high = sorted((100 * sign * row["low"], 100 * sign * row["high"]))
    change, d = 100 * sign * row["improvement"], sign * row["cohens_d"]
    wins, losses = (row["losses"], row["wins"]) if flip else (row["wins"], row["losses"])
    chance = [row["probability"], row["probability_low"], row["probability_high"]]
    if flip:
        chance = [1 - chance[0], 1 - chance[2], 1 - chance[1]]
    interval = "" if math.isnan(low) else f"{signed(low)} to {signed(high)}"
    star = "significant" if row["significant"] else ""
    change_cell = Cell(signed(change), change, tuple(pairs), best=bool(row["significant"]))
    return [
        number_cell(str(row["n"]), row["n"]),
        with_reference(change_cell, delta),
        text_cell(interval),
        _number(d, 2),
        text_cell(f"{wins}/{losses}/{row['ties']}"),
        text_cell(row["test"]),
        with_reference(_number(row["p"], 3), p),
        _number(row["p_holm"], 3),
        _number(row["p_resampled"], 3),
        number_cell("{:.2f} ({:.2f} to {:.2f})".format(*chance), float(chance[0])),
        text_cell("; ".join(filter(None, (star, row["note"])))),
    ]


def _number(value: float, digits: int) -> Cell:
    if math.isnan(value):
        return Cell("–")
    smallest = 10.0**-digits
    text = f"< {smallest:g}" if 0 < value < smallest else f"{value:.{digits}f}".replace("-", "−")
    return number_cell(text, float(value))


def _both(runs: pd.DataFrame, dataset: str, methods: Sequence[str]) -> list[Behind]:
    """Both sides of a comparison, accuracies in percent."""
    return [run for method in methods for run in accuracies_behind(runs, method, [dataset])]


def seeds_table(study: Study, experiment: Experiment) -> Table:
    """LTGA-Edge against the softmax methods within each dataset, beside the paper's differences."""
    others = tuple(method for method in experiment.methods if method != FIRST)
    family = stats.Family("pairwise-seeds", others, FIRST, experiment.datasets)
    runs = finished(run_table(study, experiment))
    note = (
        f"Seeds as observations; positive: {label(FIRST)} is better. The paper's Δ and p stand beside ours; its p are "
        f"printed as corrected by Holm and come out as uncorrected. {_TERMS}"
    )
    table = Table(experiment.name, experiment.title, (*_PAIR, *_TESTED), (), note, ("no run yet",))
    if runs.empty:
        return table
    frame = stats.compare(stats.scores_from_records(runs["record"]), family, ALPHA)
    printed = {
        (row.dataset, other): (delta, p.rstrip("*"))
        for row in SEEDS
        for other, delta, p in (("gat", row.gat, row.gat_p), ("gatv2", row.gatv2, row.gatv2_p))
    }
    rows = []
    for dataset, other in family:
        found = frame[(frame["dataset"] == dataset) & (frame["method"] == other)].iloc[0]
        delta, p = printed.get((dataset, other), (None, None))
        cells = _tested(found, _both(runs, dataset, (FIRST, other)), flip=True, delta=delta, p=p)
        rows.append((*_pair_cells(dataset, FIRST, other), *cells))
    return replace(table, rows=tuple(rows), warnings=tuple(_warn({"paper": frame})))


def datasets_table(study: Study, experiment: Experiment) -> Table:
    """LTGA-Edge against every other method, a dataset as one observation, stand-ins left out."""
    runs = finished(tuned_runs(study, experiment))
    methods = (*experiment.methods, *(row.name for row in tuned_rows(experiment)))
    others = [method for method in methods if method != FIRST and not method.endswith("-oracle")]
    where = {other: complete_datasets(runs, (FIRST, other), without=STAND_INS) for other in others}
    tests = {}
    for other, datasets in where.items():
        means = 100 * mean_accuracies(runs, (FIRST, other), datasets)
        tests[other] = stats.paired_test(means[FIRST].to_numpy(dtype=float), means[other].to_numpy(dtype=float), ALPHA)
    adjusted = stats.holm([test.p for test in tests.values()])
    smallest = stats.smallest_possible_holm([test.smallest_p for test in tests.values()])
    rows = []
    for (other, test), p_holm, least in zip(tests.items(), adjusted, smallest, strict=True):
        remark = text_cell(_remark(test, least, len(others)))
        rows.append((*_over_datasets(runs, other, where[other], test, p_holm), remark))
    columns = (
        Column("LTGA-Edge against", numeric=False), Column("datasets"), Column("Δ (points)"),
        Column("wins/losses/ties", numeric=False), Column("Cohen's d"), Column("test", numeric=False), Column("p"),
        Column("p (Holm)"), Column("P(better)"), Column("remarks", numeric=False),
    )  # fmt: skip
    note = (
        "A dataset is one observation: its mean over seeds that both methods have. Only datasets of the paper. "
        "Positive: LTGA-Edge is better. The paper's difference and counts are recomputed from its cells for the same "
        "datasets; its d and p stand here only where the datasets are its eight. P(better): share of seeds won, ties "
        "half, averaged over datasets, with a 95 % BCa interval over seeds."
    )
    return Table(experiment.name, experiment.title, columns, tuple(rows), note)


def _over_datasets(
    runs: pd.DataFrame, other: str, datasets: Sequence[str], test: stats.PairedTest, p_holm: float
) -> list[Cell]:
    """The cells of one test over datasets."""
    printed = _printed_comparison(other, datasets)
    both = tuple(run for method in (FIRST, other) for run in accuracies_behind(runs, method, datasets))
    change = Cell(signed(test.mean_difference), test.mean_difference, both) if test.n else Cell(wanted=1)
    return [
        text_cell(label(other)),
        number_cell(str(test.n), test.n, note=", ".join(datasets)),
        with_reference(change, printed.get("difference")),
        with_reference(text_cell(str(test.counts) if test.n else ""), printed.get("counts")),
        with_reference(_number(test.cohens_d, 2), printed.get("d")),
        text_cell(test.test if test.n else ""),
        with_reference(_number(test.p, 3), printed.get("p")),
        _number(p_holm, 3),
        _chance(runs, (FIRST, other), datasets),
    ]


def _chance(runs: pd.DataFrame, methods: tuple[str, str], datasets: Sequence[str]) -> Cell:
    """The probability of improvement, averaged over datasets."""
    if not datasets:
        return Cell("–")
    grouped = runs.sort_values("seed").groupby(["dataset", "method"])["accuracy"]
    by_seed = {place: group.tolist() for place, group in grouped}
    pairs = [(by_seed[name, methods[0]], by_seed[name, methods[1]]) for name in datasets]
    chance = stats.mean_probability_of_improvement(pairs)
    if math.isnan(chance.low):  # a dataset with a single seed
        return number_cell(f"{chance.estimate:.2f}", chance.estimate)
    return number_cell("{:.2f} ({:.2f} to {:.2f})".format(*chance), chance.estimate)


def _remark(test: stats.PairedTest, least: float, family: int) -> str:
    if not test.n:
        return "no dataset with both"
    if test.test == "none":
        return "too few datasets for a test"
    return f"cannot reach {ALPHA:g}: at best {least:.3f} after Holm over {family}" if least > ALPHA else ""


def _printed_comparison(other: str, datasets: Sequence[str]) -> dict[str, str]:
    """The paper's comparison of two methods over these datasets, from its printed cells."""
    if not datasets or other not in PRINTED_MEANS:
        return {}
    means = PRINTED_MEANS.loc[list(datasets)]
    a, b = means[FIRST].to_numpy(dtype=float), means[other].to_numpy(dtype=float)
    found = {"difference": signed(float((a - b).mean())), "counts": str(stats.wins_losses_ties(a, b))}
    row = next((row for row in PAIRWISE if row.control == other), None)
    if row is not None and len(datasets) == len(PRINTED_MEANS):
        found |= {"d": row.d.replace("-", "−"), "p": row.p}
    return found


def ranks_table(study: Study, experiment: Experiment) -> Table:
    """Average ranks with Friedman's test, stand-ins counted as datasets of their own."""
    runs, methods = run_table(study, experiment), experiment.methods
    datasets = complete_datasets(runs, methods)
    table = Table(experiment.name, experiment.title, (METHOD.head, Column("average rank")), ())
    if len(datasets) < 2:
        warning = f"ranks need at least two datasets with every method; there are {len(datasets)}"
        return replace(table, warnings=(warning,))
    means = mean_accuracies(runs, methods, datasets)
    test, printed = stats.friedman(means), printed_ranks(methods, datasets)
    rows = []
    for name, rank in stats.average_ranks(means).sort_values().items():
        cell = number_cell(f"{rank:.2f}", float(rank), reference=printed.get(str(name)))
        rows.append((METHOD.cell(name), replace(cell, runs=accuracies_behind(runs, str(name), datasets))))
    note = (
        f"Over {len(datasets)} datasets: {', '.join(datasets)}. Friedman χ² = {test.chi2:.2f}, p = {test.p:.3f} (the "
        f"paper, over its eight: {FRIEDMAN_CHI2}, {FRIEDMAN_P}); critical difference "
        f"{stats.critical_difference(test.methods, test.datasets):.2f}. The paper's ranks are recomputed for these "
        "datasets."
    )
    used = [name for name in datasets if name in STAND_INS]
    warnings = (f"{', '.join(used)} is a stand-in and counts as a dataset of its own here",) if used else ()
    return replace(table, rows=tuple(rows), note=note, warnings=warnings)
