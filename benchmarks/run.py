"""Run every benchmark and write the committed results."""

import json
from pathlib import Path

from ltga.bench.run import plot_scaling, run_benchmarks, table
from ltga.bench.works import WORKS

HERE = Path(__file__).parent

if __name__ == "__main__":
    results = run_benchmarks(list(WORKS))
    (HERE / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (HERE / "results.md").write_text(table(results) + "\n")
    plot_scaling(results, HERE.parent / "docs" / "scaling.svg")
    plot_scaling(results, HERE.parent / "docs" / "scaling.png")
    print(table(results))
