"""The study as a report: tables beside the paper's, tests, figures, and a page that shows the runs behind them."""

from ltga.report.study.render import to_csv, to_latex, to_markdown
from ltga.report.study.runs import Study
from ltga.report.study.sections import Section, make_section
from ltga.report.study.tables import Cell, Table
from ltga.report.study.write import write_report

__all__ = ["Cell", "Section", "Study", "Table", "make_section", "to_csv", "to_latex", "to_markdown", "write_report"]
