"""Run every benchmark and write the committed results."""

import json
from pathlib import Path
from typing import Any

try:  # now, rather than after an hour of measuring
    from matplotlib.figure import Figure
except ImportError:
    raise SystemExit("benchmarks/run.py: needs matplotlib; install it with: pip install 'ltga[study]'") from None

from ltga.bench.run import run_benchmarks, table
from ltga.bench.works import WORKS

HERE = Path(__file__).parent
STYLES = {
    "pyg-gatv2": ("PyG GATv2Conv", "#D55E00", "s"),
    "ltga-head": ("LTGAConv, head q", "#0072B2", "o"),
}


def scaling_figure(results: dict[str, Any]) -> Figure:
    """Time against number of edges, both axes logarithmic."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for name, (label, colour, marker) in STYLES.items():
        seconds = results["scaling"]["seconds"].items()
        points = [(int(edges), values[name]) for edges, values in seconds if name in values]
        axes.loglog(*zip(*points), marker=marker, color=colour, label=label)
    axes.set_xlabel("edges (8 per node, 64 → 8×16)")
    axes.set_ylabel("seconds, forward + backward")
    axes.grid(True, which="both", alpha=0.25)
    axes.legend(frameon=False)
    return figure


if __name__ == "__main__":
    results = run_benchmarks(list(WORKS))
    (HERE / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (HERE / "results.md").write_text(table(results) + "\n")
    scaling_figure(results).savefig(HERE.parent / "docs" / "images" / "scaling.svg")
    print(table(results))
