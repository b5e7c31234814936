"""One self-contained page for a report: tables to sort and filter, figures, and the runs behind every number."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from ltga.study.report.figures.style import svg_text
from ltga.study.report.render import digits_of, signed
from ltga.study.report.sections import Section
from ltga.study.report.tables import Cell, Table
from ltga.study.spec import STAND_INS
from ltga.train.record import Record, imported_from


def render_page(title: str, sections: Sequence[Section], records: Sequence[Record], svgs: Mapping[str, str]) -> str:
    """The page as HTML; it loads nothing.

    Args:
        title: of the page.
        sections: what to show, in order.
        records: all records that cells refer to.
        svgs: SVG elements by the name of their drawing; those not in it are drawn anew.
    """
    folder = files("ltga.study.report")
    template, css, script = (folder.joinpath(name).read_text("utf-8") for name in ("page.html", "page.css", "page.js"))
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    behind = _Behind(records)
    shown = [
        {
            "experiment": section.experiment,
            "done": section.done,
            "wanted": section.wanted,
            "imported": section.imported.sentence,
            "remarks": section.remarks,
            "tables": [_table(table, behind) for table in section.tables],
            "figures": [
                {"caption": d.caption, "svg": Markup(svgs.get(d.name) or svg_text(d.figure, d.name))}
                for d in section.drawings
            ],
        }
        for section in sections
    ]
    present = {name for section in sections for name in section.experiment.datasets}
    return environment.from_string(template).render(
        title=title,
        sections=shown,
        stand_ins={name: original for name, original in STAND_INS.items() if name in present},
        css=Markup(css),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        data={"runs": behind.runs, "cells": behind.cells},
    )


class _Behind:
    """The runs behind the cells of a page, each run described once."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._configs = {record["id"]: record["config"] for record in records}
        self._sources = {record["id"]: imported_from(record) or "" for record in records}
        self._number: dict[str, int] = {}
        self.runs: list[list[Any]] = []
        self.cells: list[list[list[float]]] = []

    def add(self, cell: Cell) -> int | None:
        """The number of a cell's list of runs; ``None`` if it has none."""
        if not cell.runs:
            return None
        self.cells.append([[self._run(run.id, run.seed), round(run.value, 6)] for run in cell.runs])
        return len(self.cells) - 1

    def _run(self, run: str, seed: int) -> int:
        if run not in self._number:
            config = self._configs.get(run, {})
            self._number[run] = len(self.runs)
            name = config.get("dataset", {}).get("name", "")
            init = config.get("protocol", {}).get("init", "")
            self.runs.append([run, name, config.get("method", ""), init, seed, self._sources.get(run, "")])
        return self._number[run]


def _table(table: Table, behind: _Behind) -> dict[str, Any]:
    """What the template shows of a table."""
    rows = [[_cell(cell, behind) for cell in row] for row in table.rows]
    empty = [_nothing_run([row[k] for row in table.rows]) for k in range(len(table.columns))]
    return {
        "name": table.name,
        "title": table.title,
        "note": table.note,
        "imported": table.imported.sentence,
        "warnings": table.warnings,
        "reference": table.reference,
        "columns": list(zip(table.columns, empty)),
        "rows": [(cells, _nothing_run(row)) for cells, row in zip(rows, table.rows)],
        "empty": empty,
    }


def _nothing_run(cells: Sequence[Cell]) -> bool:
    """Whether there should be runs behind these cells and there are none at all."""
    return any(cell.missing for cell in cells) and not any(cell.runs for cell in cells)


def _cell(cell: Cell, behind: _Behind) -> dict[str, Any]:
    change = None if cell.difference is None or cell.same else signed(cell.difference, digits_of(cell))
    return {"cell": cell, "behind": behind.add(cell), "change": change}
