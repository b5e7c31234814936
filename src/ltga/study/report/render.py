"""Tables as Markdown, CSV and LaTeX; whatever stands in a cell is escaped."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable

from ltga.study.report.tables import Cell, Table

MISSING = "not run"
WIDE = 5  # columns; a table with more is made to fit the width of the page
_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "±": r"$\pm$", "−": "$-$", "α": r"$\alpha$", "δ": r"$\delta$",
    "κ": r"$\kappa$", "λ": r"$\lambda$", "Δ": r"$\Delta$", "χ": r"$\chi$", "²": r"$^2$", "√": r"$\surd$",
    "✓": r"$\checkmark$", "†": r"$^\dagger$", "≥": r"$\geq$", "≤": r"$\leq$", "×": r"$\times$", "–": "--",
    "…": r"\ldots{}", "≈": r"$\approx$", "ρ": r"$\rho$",
}  # fmt: skip


def escape_latex(text: str) -> str:
    r"""Text for LaTeX, on one line.

    >>> print(escape_latex("50 % of a_b & \\input{x}"))
    50 \% of a\_b \& \textbackslash{}input\{x\}
    """
    return "".join(_LATEX.get(letter, letter) for letter in one_line(text))


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


def signed(difference: float, digits: int = 1) -> str:
    """A difference with its sign, which even a difference that rounds to zero has.

    >>> signed(0.04), signed(-1.26), signed(0)
    ('+0.0', '−1.3', '0.0')
    """
    sign = "+" if difference > 0 else "−" if difference < 0 else ""
    return f"{sign}{abs(difference):.{digits}f}"


def digits_of(cell: Cell) -> int:
    """How many decimals the cell's text has."""
    found = re.match(r"[-−+]?\d+\.(\d+)", cell.text)
    return len(found.group(1)) if found else 1


def remarks(cell: Cell, reference: str) -> list[str]:
    """What stands beside the number: how many runs, the reference and the difference."""
    said = []
    if cell.partial:
        said.append(f"{len(cell.runs)} of {cell.wanted} runs")
    if cell.same and not cell.partial:
        said.append("✓")
    elif cell.reference is not None:
        change = "" if cell.difference is None else f", {signed(cell.difference, digits_of(cell))}"
        said.append(f"{reference} {cell.reference}{change}")
    return said


def _footnotes(table: Table) -> list[str]:
    notes = [table.note] if table.note else []
    notes += [
        f"{name} is a stand-in for {original}: its numbers are its own." for name, original in table.stand_ins.items()
    ]
    if any(cell.missing for row in table.rows for cell in row):
        notes.append(f"“{MISSING}”: there is no finished run behind this cell.")
    if any(cell.same for row in table.rows for cell in row):
        notes.append(f"✓: prints exactly as the reference ({table.reference}).")
    if table.imported.sentence:
        notes.append(table.imported.sentence)
    return notes


def to_markdown(table: Table) -> str:
    """A Markdown table with its title, notes and warnings."""
    head = [escape_markdown(column.label + (" (stand-in)" if column.stand_in else "")) for column in table.columns]
    lines = [f"### {escape_markdown(table.title)}", "", f"| {' | '.join(head)} |"]
    lines.append("|" + "|".join(" ---: " if column.numeric else " --- " for column in table.columns) + "|")
    for row in table.rows:
        lines.append(f"| {' | '.join(_markdown(cell, table, first=not k) for k, cell in enumerate(row))} |")
    lines += ["", *(f"{escape_markdown(note)}\n" for note in _footnotes(table))]
    lines += [f"**Warning:** {escape_markdown(warning)}\n" for warning in table.warnings]
    return "\n".join(lines).rstrip() + "\n"


def _markdown(cell: Cell, table: Table, first: bool) -> str:
    text = escape_markdown(MISSING if cell.missing and not cell.text else cell.text)
    text = f"**{text}**" if cell.best else f"*{text}*" if cell.missing else text
    if first and cell.stand_in:
        text += " (stand-in)"
    said = remarks(cell, table.reference)
    if said == ["✓"]:
        return f"{text} ✓"
    return f"{text} ({escape_markdown('; '.join(said))})" if said else text


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
    lines = []
    for row in table.rows:
        line: list[str] = []
        for cell, referred in zip(row, beside):
            line.append(MISSING if cell.missing and not cell.text else cell.text)
            if referred:
                line += [cell.reference or "", "" if cell.difference is None else f"{cell.difference:.6g}"]
        lines.append(line)
    if table.imported.sources:
        head.append("imported")
        for line, row in zip(lines, table.rows):
            behind = {run.id for cell in row for run in cell.runs}
            line.append((table.imported.among(behind) if behind else table.imported).sentence)
    return _csv([head, *lines])


def runs_to_csv(table: Table) -> str:
    """The runs behind the table: a line per cell and run, and the archive it was imported from, if it was."""
    lines = [["row", "column", "seed", "value", "run", "imported"]]
    sources = table.imported.sources
    for row in table.rows:
        label = " / ".join(cell.text for cell, column in zip(row, table.columns) if not column.numeric and cell.text)
        for cell, column in zip(row, table.columns):
            lines += [
                [label, column.label, str(run.seed), f"{run.value:.6g}", run.id, sources.get(run.id, "")]
                for run in cell.runs
            ]
    return _csv(lines)


def _csv(lines: Iterable[list[str]]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows([escape_csv(one_line(text)) for text in line] for line in lines)
    return stream.getvalue()


def to_latex(table: Table) -> str:
    """A table for ``booktabs`` and, if wide, ``graphicx``; reference values stand behind our own, in small type."""
    wide = len(table.columns) > WIDE
    align = "".join("r" if column.numeric else "l" for column in table.columns)
    head = " & ".join(
        escape_latex(column.label) + (r"\textsuperscript{s}" if column.stand_in else "") for column in table.columns
    )
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(table.title)}. {_latex_notes(table)}}}",
        rf"\label{{tab:{re.sub(r'[^a-zA-Z0-9:-]', '-', table.name)}}}",
        *([r"\resizebox{\textwidth}{!}{%"] if wide else []),
        rf"\begin{{tabular}}{{{align}}}",
        r"\toprule",
        head + r" \\",
        r"\midrule",
        *(" & ".join(_latex(cell, table, first=not k) for k, cell in enumerate(row)) + r" \\" for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        *(["}"] if wide else []),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex_notes(table: Table) -> str:
    said = [*_footnotes(table), *(f"Warning: {warning}." for warning in table.warnings)]
    return " ".join(escape_latex(note) for note in said)


def _latex(cell: Cell, table: Table, first: bool) -> str:
    text = r"\textit{not run}" if cell.missing and not cell.text else escape_latex(cell.text)
    text = rf"\textbf{{{text}}}" if cell.best else text
    if first and cell.stand_in:
        text += r"\textsuperscript{s}"
    said = remarks(cell, table.reference)
    return rf"{text} {{\tiny ({escape_latex('; '.join(said))})}}" if said else text


FORMATS: dict[str, Callable[[Table], str]] = {
    ".md": to_markdown,
    ".csv": to_csv,
    ".tex": to_latex,
    ".runs.csv": runs_to_csv,
}
"""Suffix of a file -> what writes it."""
