"""Tables of tests: the declared family under both initialisations, seeds as observations, datasets as observations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from ltga.study import EXPERIMENTS, Experiment, stats
from ltga.study.experiment import PAIRED
from ltga.study.paper import PRINTED_MEANS
from ltga.study.paper.printed import FRIEDMAN_CHI2, FRIEDMAN_P, PAIRWISE, SEEDS
from ltga.study.report.accuracy import accuracies_behind, printed_ranks
from ltga.study.report.names import label
from ltga.study.report.pivot import DATASET, METHOD
from ltga.study.report.run_table import complete_datasets, finished, grouped, mean_accuracies, run_table, tuned_runs
from ltga.study.report.runs import Study
from ltga.study.report.tables import Cell, Column, Table, signed
from ltga.study.spec import STAND_INS
from ltga.study.stats import PRIMARY

ALPHA = 0.05
Test = Mapping[Any, Any]
"""A row of what :func:`_compared` gives."""
FIRST = "ltga-edge"  # what the paper compares with the others
_PAIR = (DATASET.head, Column("comparison", numeric=False))
_TESTED = (
    Column("seeds"), Column("Δ (points)"), Column("95 % interval", numeric=False), Column("Cohen's d"),
    Column("wins/losses/ties", numeric=False), Column("test", numeric=False), Column("p"), Column("p (Holm)"),
    Column("p (splits overlap)"), Column("P(better)"), Column("remarks", numeric=False),
)  # fmt: skip
_TERMS = (
    "Paired t or, where Shapiro-Wilk rejects normality, Wilcoxon; Holm over the whole family, whether run or not. "
    "Splits overlap: the t-test corrected for random splits that share nodes (Nadeau and Bengio), where seeds have "
    "splits of their own; not corrected by Holm. Interval: BCa bootstrap of the mean difference. P(better): share of "
    "seeds won, ties half, with Wilson's 95 % interval."
)


def primary_table(study: Study, experiment: Experiment) -> Table:
    """The declared family, under paired initialisation and under the paper's."""
    frames, warnings = [], []
    for init, source in {"paired": EXPERIMENTS.get(experiment.name + PAIRED), "paper": experiment}.items():
        runs = None if source is None else _within(finished(run_table(study, source)), PRIMARY)
        if runs is None or runs.empty:
            warnings.append(f"no run under {init} initialisation yet")
        else:
            frames.append(_compared(runs, PRIMARY, init))
    rows: list[tuple[Cell, ...]] = []
    if frames:
        tests = pd.concat(frames).sort_index(kind="stable")  # both initialisations of a comparison together
        rows = [(*_pair(test), Cell(test["init"]), *_tested(test)) for test in tests.to_dict("records")]
        warnings += _warnings(pd.concat(frames))
    note = (
        f"The family declared in `ltga.study.stats.PRIMARY`: {len(PRIMARY)} comparisons under paired initialisation; "
        f"beside them the same under the paper's. Test accuracy, paired seeds. {_TERMS}"
    )
    columns = (*_PAIR, Column("init", numeric=False), *_TESTED)
    return Table(f"{experiment.name}-tests", "Primary comparisons", columns, tuple(rows), note, tuple(warnings))


def _within(runs: pd.DataFrame, family: stats.Family) -> pd.DataFrame:
    return runs[runs["method"].isin((*family.methods, family.control)) & runs["dataset"].isin(family.datasets)]


def _compared(runs: pd.DataFrame, family: stats.Family, init: str = "paper", flip: bool = False) -> pd.DataFrame:
    """What :func:`ltga.study.stats.compare` says, with the runs behind each comparison; ``flip``: control first."""
    frame = stats.compare(stats.scores_from_records(runs["record"], init=init), family, ALPHA)
    frame = _the_other_way_round(frame) if flip else frame
    compared = zip(frame["dataset"], frame["method"], frame["control"])
    pairs = [accuracies_behind(runs, (method, control), [dataset]) for dataset, method, control in compared]
    return frame.assign(init=init, runs=pd.Series(pairs, dtype=object))


def _the_other_way_round(frame: pd.DataFrame) -> pd.DataFrame:
    """The same comparisons with the control first, so that positive means that it is better."""
    pairs = (
        ("method", "control"), ("wins", "losses"), ("low", "high"), ("probability_low", "probability_high")
    )  # fmt: skip
    frame = frame.rename(columns={old: new for a, b in pairs for old, new in ((a, b), (b, a))})
    for name in ("improvement", "low", "high", "cohens_d"):
        frame[name] = -frame[name]
    for name in ("probability", "probability_low", "probability_high"):
        frame[name] = 1 - frame[name]
    return frame


def _pair(test: Test) -> tuple[Cell, Cell]:
    return DATASET.cell(test["dataset"]), Cell(f"{label(test['method'])} – {label(test['control'])}")


def _warnings(frame: pd.DataFrame) -> list[str]:
    said = []
    for init, run in grouped(frame[frame["n"] > 0], "init").items():
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


def _tested(test: Test, delta: str | None = None, p: str | None = None) -> list[Cell]:
    """The cells of one comparison; ``delta`` and ``p`` are what the paper prints."""
    delta = None if delta is None else delta.replace("-", "−")
    if not test["n"]:
        known = {
            "seeds": Cell("0", 0),
            "Δ (points)": Cell(wanted=1, reference=delta),
            "p": Cell(reference=p),
            "remarks": Cell(test["note"]),
        }
        return [known.get(column.label, Cell()) for column in _TESTED]
    low, high, change = (100 * test[name] for name in ("low", "high", "improvement"))
    chance = [float(test[name]) for name in ("probability", "probability_low", "probability_high")]
    star = "significant" if test["significant"] else ""
    return [
        Cell(str(test["n"]), test["n"]),
        Cell(signed(change), change, test["runs"], reference=delta, best=bool(test["significant"])),
        Cell("" if math.isnan(low) else f"{signed(low)} to {signed(high)}"),
        _number(test["cohens_d"], 2),
        Cell(f"{test['wins']}/{test['losses']}/{test['ties']}"),
        Cell(test["test"]),
        replace(_number(test["p"], 3), reference=p),
        _number(test["p_holm"], 3),
        _number(test["p_resampled"], 3),
        Cell(_interval(chance), chance[0]),
        Cell("; ".join(filter(None, (star, test["note"])))),
    ]


def _number(value: float, digits: int) -> Cell:
    if math.isnan(value):
        return Cell("–")
    smallest = 10.0**-digits
    text = f"< {smallest:g}" if 0 < value < smallest else f"{value:.{digits}f}".replace("-", "−")
    return Cell(text, float(value))


def _interval(chance: Sequence[float]) -> str:
    return "{:.2f} ({:.2f} to {:.2f})".format(*chance)


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
    frame = _compared(runs, family, flip=True)
    printed = {
        (row.dataset, other): (delta, p.rstrip("*"))
        for row in SEEDS
        for other, delta, p in (("gat", row.gat, row.gat_p), ("gatv2", row.gatv2, row.gatv2_p))
    }
    rows = []
    for test in frame.to_dict("records"):
        said = printed.get((test["dataset"], test["control"]), (None, None))
        rows.append((*_pair(test), *_tested(test, *said)))
    return replace(table, rows=tuple(rows), warnings=tuple(_warnings(frame)))


def datasets_table(study: Study, experiment: Experiment) -> Table:
    """LTGA-Edge against every other method, a dataset as one observation, stand-ins left out."""
    everything = tuned_runs(study, experiment)
    runs = finished(everything)
    others = [name for name in everything["method"].unique() if name != FIRST and not name.endswith("-oracle")]
    where = {other: complete_datasets(runs, (FIRST, other), without=STAND_INS) for other in others}
    tests = {}
    for other, datasets in where.items():
        means = 100 * mean_accuracies(runs, (FIRST, other), datasets)
        tests[other] = stats.paired_test(means[FIRST].to_numpy(dtype=float), means[other].to_numpy(dtype=float), ALPHA)
    adjusted = stats.holm([test.p for test in tests.values()])
    smallest = stats.smallest_possible_holm([test.smallest_p for test in tests.values()])
    rows = []
    for (other, test), p_holm, least in zip(tests.items(), adjusted, smallest, strict=True):
        remark = Cell(_remark(test, least, len(others)))
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
    printed, change = _printed_comparison(other, datasets), Cell(wanted=1)
    if test.n:
        both = accuracies_behind(runs, (FIRST, other), datasets)
        change = Cell(signed(test.mean_difference), test.mean_difference, both)
    return [
        Cell(label(other)),
        Cell(str(test.n), test.n, note=", ".join(datasets)),
        replace(change, reference=printed.get("difference")),
        Cell(str(test.counts) if test.n else "", reference=printed.get("counts")),
        replace(_number(test.cohens_d, 2), reference=printed.get("d")),
        Cell(test.test if test.n else ""),
        replace(_number(test.p, 3), reference=printed.get("p")),
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
        return Cell(f"{chance.estimate:.2f}", chance.estimate)
    return Cell(_interval(chance), chance.estimate)


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
        own = accuracies_behind(runs, [str(name)], datasets)
        rows.append((METHOD.cell(name), Cell(f"{rank:.2f}", float(rank), own, reference=printed.get(str(name)))))
    note = (
        f"Over {len(datasets)} datasets: {', '.join(datasets)}. Friedman χ² = {test.chi2:.2f}, p = {test.p:.3f} (the "
        f"paper, over its eight: {FRIEDMAN_CHI2}, {FRIEDMAN_P}); critical difference "
        f"{stats.critical_difference(test.methods, test.datasets):.2f}. The paper's ranks are recomputed for these "
        "datasets."
    )
    used = [name for name in datasets if name in STAND_INS]
    warnings = (f"{', '.join(used)} is a stand-in and counts as a dataset of its own here",) if used else ()
    return replace(table, rows=tuple(rows), note=note, warnings=warnings)
