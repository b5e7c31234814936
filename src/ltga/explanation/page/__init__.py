"""One self-contained page about a run: overview, class pairs, and neighbourhoods to walk through."""

from ltga.explanation.page.html import render_page, write_page

__all__ = ["render_page", "write_page"]
