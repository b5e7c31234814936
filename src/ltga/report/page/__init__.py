"""One self-contained page about a run: overview, class pairs, and neighbourhoods to walk through."""

from ltga.report.page.render import render_page, write_page

__all__ = ["render_page", "write_page"]
