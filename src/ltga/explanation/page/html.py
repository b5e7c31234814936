"""From an explanation to one HTML file that works offline and loads nothing."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from ltga.data.atomic import write_atomic
from ltga.explanation.page.content import page_content
from ltga.explanation.page.sample import PAGE_BYTES
from ltga.explanation.result import Explanation

SCRIPTS = (
    "attention.js", "data.js", "nodes.js", "draw.js", "overview.js", "quality.js", "pairs.js", "links.js", "graphs.js",
    "search.js", "layout.js", "view.js", "pair_view.js", "whole_view.js", "panel.js", "main.js",
)  # fmt: skip


def render_page(explanation: Explanation, most: int = PAGE_BYTES) -> str:
    """The page as text, with at most about ``most`` bytes of nodes and edges.

    Names from the data reach the page through jinja's escaping or as JSON in which ``<``, ``>``, ``&`` and
    ``'`` are written as ``\\u003c`` and so on; scripts and styles are allowed by their hash and nothing else is.
    """
    folder = files("ltga.explanation.page")
    script = "\n".join((folder / name).read_text("utf-8") for name in SCRIPTS)
    style = (folder / "page.css").read_text("utf-8")
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((folder / "page.html").read_text("utf-8"))
    content = page_content(explanation, most)
    return template.render(content=content, policy=policy, script=Markup(script), style=Markup(style))


def write_page(explanation: Explanation, path: str | Path, most: int = PAGE_BYTES) -> Path:
    """Write the page, whole or not at all; returns its path."""
    path, text = Path(path), render_page(explanation, most)
    write_atomic(path, lambda stream: stream.write(text.encode()))
    return path


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
