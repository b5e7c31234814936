"""What the runs behind the recommended protocol say, as rows of tables: development, noise, and against softmax."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from ltga.errors import RecordError
from ltga.nn.methods import METHODS
from ltga.study.stats.paired import holm, paired_test
from ltga.train.record import Record, headline_score, kept_index

BUDGETS = (20, 40, 80, 120, 200)
Rows = tuple[list[str], list[list[str]]]


def development_rows(measured: Sequence[Mapping[str, Any]]) -> Rows:
    """A row per candidate: its worst and mean gap to the best candidate over budgets, by group of graphs.

    The gap is in points of validation accuracy, the mean over the seeds that all of a graph's candidates have.
    """
    groups = {
        "digits, noise 0 and 3": ("digits-noise:planted_per_edge=0,seed=1", "digits-noise:planted_per_edge=3,seed=1"),
        "digits, noise 10 and 20": (
            "digits-noise:planted_per_edge=10,seed=1",
            "digits-noise:planted_per_edge=20,seed=1",
        ),
        "citeseer": ("citeseer",),
        "citeseer, noise 5": ("citeseer:planted_per_edge=5",),
        "gum-syntax": ("gum-syntax",),
        "citeseer, noise 5, 20 % labels": ("citeseer:planted_per_edge=5@0.2",),
        "citeseer, noise 5, 5 % labels": ("citeseer:planted_per_edge=5@0.05",),
        "digits, noise 10, 2 and 5 % labels": tuple(
            f"digits-noise:label_share={share},planted_per_edge=10,seed=1" for share in (0.02, 0.05)
        ),
    }
    seeds: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for row in measured:
        seeds[row["graph"]][row["candidate"]].add(row["seed"])
    common = {graph: set.intersection(*of.values()) for graph, of in seeds.items()}
    scores: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row in measured:
        if row["seed"] not in common[row["graph"]]:
            continue
        for budget, value in row["validation"].items():
            scores[row["graph"], row["candidate"], budget].append(100 * value)
    best: dict[tuple[str, str], float] = {}
    for (graph, _, budget), values in scores.items():
        best[graph, budget] = max(best.get((graph, budget), 0.0), fmean(values))
    candidates = dict.fromkeys(row["candidate"] for row in measured)
    rows = []
    for candidate in candidates:
        cells = [candidate]
        for graphs in groups.values():
            gaps = [
                fmean(values) - best[graph, budget]
                for (graph, name, budget), values in scores.items()
                if name == candidate and graph in graphs
            ]
            cells.append(f"{min(gaps):.1f} ({fmean(gaps):.1f})" if gaps else "")
        rows.append(cells)
    rows.sort(key=lambda cells: float(cells[2].split(" ")[0]) if cells[2] else -100.0, reverse=True)
    return ["candidate", *groups], rows


def size_rows(measured: Sequence[Mapping[str, Any]]) -> Rows:
    """A row per graph: mean validation accuracy with each size of network and, in brackets, seconds to train it.

    >>> one = {"graph": "g", "channels": 8, "heads": 4, "validation": 0.5, "seconds": 2.0}
    >>> size_rows([one, {**one, "validation": 0.7}])
    (['graph', '4 heads of 8'], [['g', '60.0 (2 s)']])
    """
    sizes = dict.fromkeys((row["channels"], row["heads"]) for row in measured)
    found: dict[tuple[str, tuple[int, int]], list[Mapping[str, Any]]] = defaultdict(list)
    for row in measured:
        found[row["graph"], (row["channels"], row["heads"])].append(row)
    rows = []
    for graph in dict.fromkeys(row["graph"] for row in measured):
        of = {size: found[graph, size] for size in sizes}
        cells = [
            f"{100 * fmean(row['validation'] for row in some):.1f} ({fmean(row['seconds'] for row in some):.0f} s)"
            if some
            else ""
            for some in of.values()
        ]
        rows.append([graph, *cells])
    return ["graph", *(f"{heads} heads of {channels}" for channels, heads in sizes)], rows


def noise_rows(records: Iterable[Record], graphs: Sequence[str]) -> Rows:
    """Per graph and method: test accuracy, and the best validation accuracy within each budget of epochs."""
    header = ["graph", "method", "seeds", "test", *(f"val. by epoch {budget}" for budget in BUDGETS), "index"]
    rows = []
    for (graph, method), found in _groups(records, graphs).items():
        courses = [record["trajectory"]["val_accuracy"] for record in found]
        within = [f"{fmean(100 * max(course[:budget]) for course in courses):.1f}" for budget in BUDGETS]
        rows.append([graph, METHODS[method].label, str(len(found)), _mean(found), *within, _index(found)])
    return header, rows


def against_rows(records: Iterable[Record], graphs: Sequence[str], baseline: str = "gatv2") -> Rows:
    """Per graph and method: test score beside the baseline's on the same seeds, and whether chance explains it.

    ``p`` is of the paired test, after Holm over all rows of the table that have pairs enough for one.
    """
    header = ["graph", "method", "seeds", "test", "against GATv2, same seeds", "p", "index", "exact zeros"]
    groups = _groups(records, graphs)
    rows: list[list[str]] = []
    tests: list[tuple[int, float]] = []
    for (graph, method), found in groups.items():
        partners = {record["config"]["seed"]: _score(record) for record in groups.get((graph, baseline), ())}
        pairs = [(_score(run), partners[seed]) for run in found if (seed := run["config"]["seed"]) in partners]
        told = ""
        if method != baseline and pairs:
            test = paired_test(*zip(*pairs))  # type: ignore[arg-type]
            told = f"{test.mean_difference:+.1f}, ahead on {test.counts.wins} of {test.n}"
            if test.p == test.p:
                tests.append((len(rows), test.p))
        zeros = [value for run in found for layer in run.get("attention") or () for value in layer["zero_fraction"]]
        shown = f"{100 * fmean(zeros):.0f} %" if zeros else ""
        rows.append([graph, METHODS[method].label, str(len(found)), _mean(found), told, "", _index(found), shown])
    if tests:
        places, plain = zip(*tests)
        for place, corrected in zip(places, holm(plain)):
            rows[place][5] = f"{corrected:.3f}" if corrected >= 0.001 else "<0.001"
    return header, rows


def bar_rows(records: Iterable[Record], graphs: Sequence[str], method: str = "entmax-head") -> Rows:
    """Per graph: how far ``method`` is from the best rival within each budget of epochs, and where its index ended.

    A gap is the mean difference in points over the seeds that all methods have, with its standard error: validation
    accuracy within a budget, test accuracy in the end. The rival is the best of all others by that very mean, a choice
    that by itself makes the gap look larger than it is.
    """
    within = [f"by epoch {budget}" for budget in BUDGETS]
    header = [
        "graph",
        "seeds",
        *within,
        "test",
        "fixed index that validation prefers",
        "learned, lowest to highest head",
    ]
    rows = []
    groups = _groups(records, graphs)
    for graph in graphs:
        of = {name: {run["config"]["seed"]: run for run in runs} for (at, name), runs in groups.items() if at == graph}
        seeds = sorted(set.intersection(*map(set, of.values()))) if len(of) > 1 and method in of else []
        if not seeds:
            continue
        courses = {
            name: [
                [100 * max(runs[seed]["trajectory"]["val_accuracy"][:budget]) for seed in seeds] for budget in BUDGETS
            ]
            for name, runs in of.items()
        }
        tested = {name: [_score(runs[seed]) for seed in seeds] for name, runs in of.items()}
        cells = [_gap({name: course[at] for name, course in courses.items()}, method) for at in range(len(BUDGETS))]
        fixed = [name for name in of if METHODS[name].family in ("softmax", "entmax", "frozen q")]
        preferred = METHODS[max(fixed, key=lambda name: fmean(courses[name][-1]))].label if fixed else ""
        ends = [value for seed in seeds for layer in kept_index(of[method][seed]) for value in layer["mean"] if value]
        learned = f"{min(ends):.2f} to {max(ends):.2f}" if ends else ""
        rows.append([graph, str(len(seeds)), *cells, _gap(tested, method), preferred, learned])
    return header, rows


def _gap(scores: Mapping[str, Sequence[float]], method: str) -> str:
    """The method against the best of the others: mean difference, its standard error, and who that is."""
    rival = max((name for name in scores if name != method), key=lambda name: fmean(scores[name]))
    differences = [ours - theirs for ours, theirs in zip(scores[method], scores[rival], strict=True)]
    error = f"±{stdev(differences) / len(differences) ** 0.5:.1f}" if len(differences) > 1 else ""
    return f"{fmean(differences):+.1f}{error} ({METHODS[rival].label})"


def _groups(records: Iterable[Record], graphs: Sequence[str]) -> dict[tuple[str, str], list[Record]]:
    """Records by graph and method, in the order of ``graphs`` and of the catalogue of methods."""
    found: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        found[record["config"]["dataset"]["name"], record["config"]["method"]].append(record)
    keys = [(graph, method) for graph in graphs for method in METHODS if (graph, method) in found]
    return {key: sorted(found[key], key=lambda record: record["config"]["seed"]) for key in keys}


def _score(record: Record) -> float:
    part, metric, score = headline_score(record)
    if part != "test" or score is None:
        raise RecordError(f"record {record['id'][:12]}: has no test {metric} to show")
    return 100 * float(score)


def _mean(records: Sequence[Record]) -> str:
    scores = [_score(record) for record in records]
    return f"{fmean(scores):.1f}±{stdev(scores):.1f}" if len(scores) > 1 else f"{scores[0]:.1f}"


def _index(records: Sequence[Record]) -> str:
    """Mean q or alpha of the kept epoch, for methods that learn it."""
    if not METHODS[records[0]["config"]["method"]].learns_index:
        return ""
    values = [
        value for record in records for layer in kept_index(record) for value in layer["mean"] if value is not None
    ]
    return f"{fmean(values):.2f}" if values else ""
