"""Tables as Markdown, CSV and LaTeX; whatever stands in a cell is escaped."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ltga.study.report.tables import MISSING, Cell, Table, imports

if TYPE_CHECKING:
    from ltga.study.report.sections import Section

_LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "±": r"$\pm$", "−": "$-$", "α": r"$\alpha$", "δ": r"$\delta$",
    "κ": r"$\kappa$", "λ": r"$\lambda$", "Δ": r"$\Delta$", "χ": r"$\chi$", "²": r"$^2$", "√": r"$\surd$",
    "✓": r"$\checkmark$", "†": r"$^\dagger$", "≥": r"$\geq$", "≤": r"$\leq$", "×": r"$\times$", "–": "--",
    "…": r"\ldots{}", "≈": r"$\approx$", "ρ": r"$\rho$",
})  # fmt: skip


def escape_latex(text: str) -> str:
    r"""Text for LaTeX, on one line.

    >>> print(escape_latex("50 % of a_b & \\input{x}"))
    50 \% of a\_b \& \textbackslash{}input\{x\}
    """
    return one_line(text).translate(_LATEX)


def escape_markdown(text: str) -> str:
    r"""Text for a cell of a Markdown table.

    >>> print(escape_markdown("a|b <b> [x](y) *c*"))
    a\|b &lt;b&gt; \[x\](y) \*c\*
    """
    text = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|#~$!])", r"\\\1", text)


def escape_csv(text: str) -> str:
    """Text that no spreadsheet takes for a formula.

    >>> escape_csv("=1+1"), escape_csv("-0.4 to 1.2")
    ("'=1+1", '-0.4 to 1.2')
    """
    return f"'{text}" if re.match(r"[=@\t\r]|[+-](?![\d.])", text) else text


def one_line(text: str) -> str:
    """Without line breaks and other control characters."""
    return re.sub(r"[\x00-\x1f\x7f\u2028\u2029]+", " ", text)


def _remarks(cell: Cell, reference: str) -> list[str]:
    """What stands beside the number: how many runs, the reference and the difference."""
    said = [f"{len(cell.runs)} of {cell.wanted} runs"] if cell.partial else []
    if cell.same and not cell.partial:
        said.append("✓")
    elif cell.reference is not None:
        said.append(f"{reference} {cell.reference}" + (f", {cell.change}" if cell.change else ""))
    return said


def _footnotes(table: Table) -> list[str]:
    notes = [table.note]
    notes += [
        f"{name} is a stand-in for {original}: its numbers are its own." for name, original in table.stand_ins.items()
    ]
    if any(cell.missing for cell in table.cells):
        notes.append(f"“{MISSING}”: there is no finished run behind this cell.")
    if any(cell.same for cell in table.cells):
        notes.append(f"✓: prints exactly as the reference ({table.reference}).")
    return [note for note in (*notes, table.imported) if note]


def templates(escape: Callable[[str], str] | None = None, **syntax: Any) -> Environment:
    """The templates of this package, in which everything that is filled in is escaped: for HTML if not told how."""
    environment = Environment(
        loader=PackageLoader("ltga.study.report", ""),
        undefined=StrictUndefined,
        autoescape=escape is None,
        finalize=None if escape is None else lambda value: value if isinstance(value, Markup) else escape(str(value)),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **syntax,
    )
    environment.filters |= {"remarks": _remarks, "footnotes": _footnotes}
    return environment


_MARKDOWN = templates(escape_markdown)
_TEX = templates(
    escape_latex, block_start_string="<%", block_end_string="%>", variable_start_string="<<", variable_end_string=">>"
)


def to_markdown(table: Table) -> str:
    """A Markdown table with its title, notes and warnings."""
    return _MARKDOWN.get_template("table.md.jinja").render(table=table)


def to_latex(table: Table) -> str:
    """A table for ``booktabs`` and, if wide, ``graphicx``; reference values stand behind our own, in small type."""
    return _TEX.get_template("table.tex.jinja").render(table=table)


def report_to_markdown(title: str, sections: Sequence[Section]) -> str:
    """All tables and figures, those without any run named at the end."""
    return _MARKDOWN.get_template("report.md.jinja").render(title=title, sections=sections)


def to_csv(table: Table) -> str:
    """A line per row; columns with reference values are followed by those and the differences.

    If runs behind the table are imported, a last column says of every row how many and from where.
    """
    beside = [any(row[k].reference is not None for row in table.rows) for k in range(len(table.columns))]
    head: list[str] = []
    for column, referred in zip(table.columns, beside):
        head.append(column.label)
        if referred:
            head += [f"{column.label} ({table.reference})", f"{column.label} (difference)"]
    if table.imported:
        head.append("imported")
    lines = [head]
    for row in table.rows:
        line: list[str] = []
        for cell, referred in zip(row, beside):
            line.append(cell.shown)
            if referred:
                line += [cell.reference or "", "" if cell.difference is None else f"{cell.difference:.6g}"]
        if table.imported:
            line.append(imports(row) if any(cell.runs for cell in row) else table.imported)
        lines.append(line)
    return _csv(lines)


def runs_to_csv(table: Table) -> str:
    """The runs behind the table: a line per cell and run, and the archive it was imported from, if it was."""
    lines = [["row", "column", "seed", "value", "run", "imported"]]
    for row in table.rows:
        label = " / ".join(cell.text for cell, column in zip(row, table.columns) if not column.numeric and cell.text)
        for cell, column in zip(row, table.columns):
            for run in cell.runs:
                lines.append([label, column.label, str(run.seed), f"{run.value:.6g}", run.id, run.archive])
    return _csv(lines)


def _csv(lines: Iterable[list[str]]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows([escape_csv(one_line(text)) for text in line] for line in lines)
    return stream.getvalue()


FORMATS: dict[str, Callable[[Table], str]] = {
    ".md": to_markdown,
    ".csv": to_csv,
    ".tex": to_latex,
    ".runs.csv": runs_to_csv,
}
"""Suffix of a file -> what writes it."""
