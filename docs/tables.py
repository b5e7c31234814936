"""Writes the generated tables into README.md and the pages, between their markers: ``python docs/tables.py``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, stdev

import pandas as pd
from markdown_table import markdown
from own_tables import OWN_TABLES
from speed_tables import SPEED_TABLES
from task_table import task_choices, tasks

from ltga.data import CATALOGUE
from ltga.nn.methods import METHODS
from ltga.study import paper
from ltga.study.archive import stored_records
from ltga.study.experiments import EXPERIMENTS, HEADLINE, runs_of
from ltga.study.lookup import find_records
from ltga.study.report.run_table import MEASURES
from ltga.train.record import Record

ROOT = Path(__file__).parents[1]
PAGES = (
    "README.md",
    "docs/results.md",
    "docs/audit.md",
    "docs/kernels.md",
    "docs/reliability.md",
    "docs/catalogue.md",
    "docs/statistics.md",
    "docs/guides/when-not.md",
    "docs/scaling.md",
    "docs/recipe.md",
    "docs/when.md",
    "docs/backbones.md",
    "docs/guides/other-tasks.md",
)
CHOSEN = {"frozen-q-tuned": "q frozen, best of a grid on validation", "entmax-tuned": "α-entmax, best on validation"}


def results() -> str:
    """The paper's main table as far as it was rerun (results/*.csv), beside its cells."""
    cells = _rerun_cells()
    datasets = sorted(cells["dataset"].unique(), key=list(CATALOGUE).index)
    methods = [name for name in HEADLINE if set(cells[cells["method"] == name]["dataset"]) == set(datasets)]
    by_key = cells.set_index(["method", "dataset"])

    def shown(method: str, dataset: str) -> str:
        cell = by_key.loc[(method, dataset)]
        return f"{cell['ours']} ✓" if cell["exact"] == "true" else f"{cell['ours']} (paper {cell['paper']})"

    rows = ([METHODS[method].label, *(shown(method, dataset) for dataset in datasets)] for method in methods)
    note = f"✓: the paper's cell, mean and s.d. to the printed digit. {reproduced()}"
    return f"{markdown(['test accuracy, 10 seeds', *datasets], rows)}\n\n{note}"


def reproduced() -> str:
    """How many of the paper's cells came out, in a sentence."""
    cells = _rerun_cells()
    exact = int((cells["exact"] == "true").sum())
    return f"Of all {len(cells)} cells rerun ({cells['method'].nunique()} methods), {exact} match."


def _rerun_cells() -> pd.DataFrame:
    files = sorted((ROOT / "results").glob("*.csv"))
    return pd.concat([pd.read_csv(path, dtype=str) for path in files], ignore_index=True)


def moved() -> str:
    """Where q leaves 1: all methods on gum-syntax with paired initialisation, each on the splits it was run on."""
    specs = runs_of(EXPERIMENTS[f"{name}-paired"] for name in ("headline", "frozen-q", "entmax", "edge-controls"))
    wanted = [spec for spec in specs if spec.dataset == "gum-syntax"]
    runs: dict[str, dict[int, Record]] = {}
    for spec, record in find_records(wanted, stored_records(ROOT / "results" / "records.jsonl.gz")).items():
        runs.setdefault(spec.method, {})[spec.seed] = record
    rows = []
    for name in (name for name in METHODS if name in runs):
        records = list(runs[name].values())
        tested = [_percent(record) for record in records]
        softmax = runs["gatv2"]
        ahead = [_percent(record) - _percent(softmax[seed]) for seed, record in runs[name].items() if seed in softmax]
        q, zeros = ([read(record) for record in records] for read in (MEASURES["q"], MEASURES["zeros"]))
        rows.append(
            [
                METHODS[name].label,
                str(len(records)),
                f"{fmean(tested):.1f}" + (f"±{stdev(tested):.1f}" if len(tested) > 1 else ""),
                f"{fmean(ahead):+.1f}, ahead on {sum(gain > 0 for gain in ahead)} of {len(ahead)}"
                if name != "gatv2" and ahead
                else "",
                f"{fmean(q):.2f}" if name.startswith("ltga") else "",
                "" if None in zeros else f"{100 * fmean(zeros):.0f} %",
            ]
        )
    header = ["gum-syntax, paired", "splits", "test accuracy", "against GATv2, same splits", "learned q", "exact zeros"]
    return markdown(header, rows)


def _percent(record: Record) -> float:
    return 100 * float(record["metrics"]["test"]["accuracy"])


def averages() -> str:
    """What the paper's own cells give on average over its eight datasets, best first."""
    methods = ["ltga-edge", "ltga-head", "gat", "gatv2", "gatv2-edge-scale", "frozen-q-tuned", "entmax-tuned", "h2gcn"]
    means = paper.PRINTED_MEANS[methods].mean().sort_values(ascending=False)
    labels = CHOSEN | {name: METHODS[name].label for name in methods if name in METHODS}
    return markdown(["method", "mean accuracy"], ([labels[str(name)], f"{mean:.1f}"] for name, mean in means.items()))


def methods() -> str:
    rows = ([f"`{m.name}`", m.about, m.family, m.source] for m in METHODS.values())
    return markdown(["name", "what", "family", "from"], rows)


def datasets() -> str:
    rows = (
        [
            f"`{facts.name}`",
            facts.task,
            f"{facts.graphs:,}",
            f"{facts.nodes:,}",
            "varies" if facts.edges is None else f"{facts.edges:,}",
            facts.convention,
            str(facts.features),
            str(facts.classes or ""),
            "" if facts.homophily is None else f"{facts.homophily:.2f}",
            facts.source,
            "; ".join(facts.traps),
        ]
        for facts in CATALOGUE.values()
    )
    header = ["name", "task", "graphs", "nodes", "edges stored", "stored as", "features", "classes", "homophily"]
    return markdown([*header, "from", "mind"], rows)


def discrepancies() -> str:
    """The printed figures that the printed tables do not give, contradictions first."""
    made, differ = paper.checks(), paper.discrepancies()
    parts = [f"{len(made)} printed figures were recomputed; {len(made) - len(differ)} follow from the cells."]
    for verdict, title in (("contradiction", "In contradiction"), ("rounding", "Open to rounding")):
        found = [check for check in differ if check.verdict == verdict]
        rows = ([check.where, check.printed, check.recomputed, check.why] for check in found)
        parts += [f"### {title} ({len(found)})", markdown(["figure", "printed", "from the cells", "remark"], rows)]
    return "\n\n".join(parts)


def fuzzers() -> str:
    """The counts of the last slow run, from results/fuzz.json."""
    counts = json.loads((ROOT / "results" / "fuzz.json").read_text())
    rows = [[family, f"{found['cases']:,}", f"{found['faults']:,}"] for family, found in counts.items()]
    return markdown(["family", "cases", "faults"], rows)


TABLES: dict[str, Callable[[], str]] = {
    made.__name__: made
    for made in (
        results, reproduced, moved, averages, methods, datasets, discrepancies, fuzzers, tasks, task_choices,
        *OWN_TABLES, *SPEED_TABLES,
    )
}  # fmt: skip


def filled(text: str) -> str:
    """A page with every marked region filled anew."""
    for name, made in TABLES.items():
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        if begin in text:
            before, _, rest = text.partition(begin)
            _, found, after = rest.partition(end)
            if not found:
                raise ValueError(f"{begin} without {end}")
            text = f"{before}{begin}\n{made()}\n{end}{after}"
    return text


if __name__ == "__main__":
    for page in PAGES:
        path = ROOT / page
        path.write_text(filled(path.read_text()))
