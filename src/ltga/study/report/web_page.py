"""One self-contained page for a report: tables to sort and filter, figures, and the runs behind every number."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from ltga.study.report.render import templates
from ltga.study.report.sections import Section
from ltga.study.report.tables import Behind, Cell, Table
from ltga.study.spec import STAND_INS


def render_page(title: str, sections: Sequence[Section], svgs: Mapping[str, str]) -> str:
    """The page as HTML; it loads nothing.

    Args:
        title: of the page.
        sections: what to show, in order.
        svgs: SVG elements by the name of their drawing.
    """
    css, script = (files("ltga.study.report").joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    environment, behind = templates(), _Behind()
    environment.filters["number_of_runs"] = behind.add
    environment.tests["not_run"] = _nothing_run
    environment.filters["columns_not_run"] = _columns_not_run
    present = {name for section in sections for name in section.experiment.datasets}
    return environment.get_template("page.html").render(
        title=title,
        sections=sections,
        svgs=svgs,
        stand_ins={name: original for name, original in STAND_INS.items() if name in present},
        css=Markup(css),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        runs=behind,
    )


class _Behind:
    """The runs behind the cells of a page, each run described once."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {}
        self.runs: list[list[Any]] = []
        self.cells: list[list[list[float]]] = []

    def add(self, cell: Cell) -> int | None:
        """The number of a cell's list of runs; ``None`` if it has none."""
        if not cell.runs:
            return None
        self.cells.append([[self._run(run), round(run.value, 6)] for run in cell.runs])
        return len(self.cells) - 1

    def _run(self, run: Behind) -> int:
        if run.id not in self._number:
            config = run.record["config"]
            self._number[run.id] = len(self.runs)
            said = config["dataset"]["name"], config["method"], config["protocol"]["init"]
            self.runs.append([run.id, *said, run.seed, run.archive])
        return self._number[run.id]


def _nothing_run(cells: Sequence[Cell]) -> bool:
    """Whether there should be runs behind these cells and there are none at all."""
    return any(cell.missing for cell in cells) and not any(cell.runs for cell in cells)


def _columns_not_run(table: Table) -> list[bool]:
    return [_nothing_run([row[k] for row in table.rows]) for k in range(len(table.columns))]
