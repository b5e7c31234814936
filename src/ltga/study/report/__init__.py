"""The study as a report: tables beside the paper's, tests, figures, and a page that shows the runs behind them."""

from ltga.study.report.render import to_csv, to_latex, to_markdown
from ltga.study.report.runs import Study
from ltga.study.report.sections import Section, make_section
from ltga.study.report.tables import Cell, Table
from ltga.study.report.write import write_report

__all__ = ["Cell", "Section", "Study", "Table", "make_section", "to_csv", "to_latex", "to_markdown", "write_report"]
