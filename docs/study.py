"""Writes docs/results from the study's runs: ``python docs/study.py runs`` (a store, or an archive of records).

A whole report (``ltga suite report``) has every table in four formats and every figure in two. The repository keeps
what a reader opens, the page with all tables and the figures on it; the rest is for whoever makes a report.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path

from ltga.study import EXPERIMENTS
from ltga.study.report import write_report

RESULTS = Path(__file__).parent / "results"


def shown(text: str) -> set[Path]:
    """What a folder with this README.md has to hold: the page, and the figures on it."""
    return {Path("README.md"), *map(Path, re.findall(r"\]\((figures/[^)]+)\)", text))}


def keep(report: Path, folder: Path) -> None:
    """Take over from a report what its page shows; ``folder`` then holds nothing else."""
    files = shown((report / "README.md").read_text())
    shutil.rmtree(folder, ignore_errors=True)
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(report / name, folder / name)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as report:
        write_report(list(EXPERIMENTS.values()), sys.argv[1] if len(sys.argv) > 1 else "runs", report)
        keep(Path(report), RESULTS)
