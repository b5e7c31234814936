"""The page inside a notebook: a small sample of it in a frame."""

from __future__ import annotations

from html import escape

from ltga.explanation.page.html import render_page
from ltga.explanation.result import Explanation

INLINE_BYTES = 300_000  # of nodes and edges: a notebook is saved with what it shows


def framed(explanation: Explanation) -> str:
    """A line that is there without scripts too, and the page in a frame of its own."""
    page = escape(render_page(explanation, INLINE_BYTES), quote=True)
    return (
        f"<p>{escape(repr(explanation))}</p>"
        f'<iframe srcdoc="{page}" title="Explanation" loading="lazy" '
        'style="width: 100%; height: 760px; border: 1px solid #d9dfe6; border-radius: 8px"></iframe>'
    )
