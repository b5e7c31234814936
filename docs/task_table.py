"""The table of methods by task."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean
from typing import Any

from markdown_table import markdown

from ltga.nn.methods import METHODS
from ltga.train.show import ERRORS, shown

ROOT = Path(__file__).parents[1]


def tasks() -> str:
    """Methods by task, each beside its difference from softmax, seed by seed, from benchmarks/results/tasks.json."""
    path = ROOT / "benchmarks" / "results" / "tasks.json"
    if not path.exists():
        return "Not measured yet: `python benchmarks/tasks.py --seeds 10`, then `python docs/tables.py`."
    found = json.loads(path.read_text())
    columns = dict.fromkeys(
        row["method"] for entry in found["tasks"].values() for row in entry["rows"] if row["trained"]
    )  # fmt: skip
    rows = []
    for name, entry in found["tasks"].items():
        by_name = {row["method"]: row for row in entry["rows"]}
        cells = [_task_cell(entry["metric"], by_name.get(method)) for method in columns]
        plain = [row for row in entry["rows"] if not row["trained"] and row["mean"] is not None]
        sign = -1 if entry["metric"] in ERRORS else 1
        best = max(plain, key=lambda row: sign * row["mean"], default=None)
        cells.append("" if best is None else f"{best['label']} {shown(entry['metric'], best['mean'])}")
        if "readout" in entry:  # measured before graphs were read by their sum, too
            name = f"{name} (readout={entry['readout']})"
        rows.append([name, entry["metric"], str(entry["seeds"]), *cells])
    labels = [METHODS[method].label for method in columns]
    settings = f" With {', '.join(found['settings'])}." if found["settings"] else ""
    note = (
        "Test scores, mean ± s.d. over as many seeds or folds as the third column says; in brackets the mean "
        "difference from GATv2 on the same ones, and on how many the method does better. mae and rmse are errors: "
        f"lower is better.{settings}"
    )
    return markdown(["task", "judged by", "seeds", *labels, "best without training"], rows) + f"\n\n{note}"


def task_choices() -> str:
    """Validation scores of ways to read graphs and to tell links, from results/task-development.json."""
    measured = json.loads((ROOT / "results" / "task-development.json").read_text())
    scores: dict[tuple[str, str], dict[str, list[float]]] = {}
    for row in measured:
        scores.setdefault((row["data"], row["metric"]), {}).setdefault(row["candidate"], []).append(row["validation"])
    rows = [
        [data, metric, candidate, str(len(found)), shown(metric, fmean(found))]
        for (data, metric), of in scores.items()
        for candidate, found in of.items()
    ]
    return markdown(["data", "judged by", "candidate", "seeds", "validation"], rows)


def _task_cell(metric: str, row: dict[str, Any] | None) -> str:
    if row is None or row["mean"] is None:
        return ""
    spread = "" if row["sd"] is None else f" ± {shown(metric, row['sd'])}"
    paired, said = row["against_softmax"], ""
    if paired is not None and row["method"] != "gatv2":
        sign = -1 if metric in ERRORS else 1
        ahead = sum(sign * gap > 0 for gap in paired["gaps"])
        gap = shown(metric, abs(paired["mean"]))
        said = f" ({'-' if paired['mean'] < 0 else '+'}{gap}, {ahead} of {len(paired['gaps'])})"
    return f"{shown(metric, row['mean'])}{spread}{said}"
