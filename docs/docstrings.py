"""Docstrings in Markdown for the API reference: roles, formulas and sections are written the Sphinx way in the code."""

from __future__ import annotations

import re
from textwrap import dedent, indent
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|func|meth|mod|attr):`(~?)([\w.]+)`")
_INLINE_MATH = re.compile(r":math:`([^`]+)`")
_DISPLAY_MATH = re.compile(r"^( *)\.\. math::\n((?:\1 +\S.*\n?|\n(?=\1 +\S))+)", re.MULTILINE)
_EXAMPLE = re.compile(r"^( *)>>> .*(?:\n\1\S.*)*", re.MULTILINE)
_TABLE = re.compile(r"^( *)=+ +=+\n(?:\1.*\n)*?\1=+ +=+$", re.MULTILINE)
_SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Shapes):\n((?: +\S.*\n?|\n(?= +\S))+)", re.MULTILINE)
_ENTRY = re.compile(r"^([\w\s,*]+): +", re.ASCII)
_TITLES = {"Args": "Arguments"}


def to_markdown(text: str) -> str:
    """Sphinx roles, formulas, doctests, simple tables and Google's sections as Markdown.

    >>> to_markdown(":math:`q = 1`, see :class:`~ltga.nn.LTGAConv`")
    '`#!math q = 1`, see <autoref identifier="ltga.nn.LTGAConv" optional><code>LTGAConv</code></autoref>'
    """
    text = _SECTION.sub(_list, text)
    text = _INLINE_MATH.sub(lambda found: f"`#!math {' '.join(found[1].split())}`", text)
    text = _DISPLAY_MATH.sub(lambda found: _fence("math", found[1], found[2]), text)
    text = _EXAMPLE.sub(lambda found: _fence("pycon", found[1], found[0]), text)
    text = _TABLE.sub(lambda found: _fence("text", found[1], found[0]), text)
    return _ROLE.sub(_link, text)


def _list(section: re.Match[str]) -> str:
    """A section as a list, where several names may share an entry, or as text where it has no names."""
    title, body = section.groups()
    if title in ("Returns", "Shapes"):
        return f"**{title}**: {' '.join(body.split())}\n"
    entries = re.split(r"\n+(?=\S)", dedent(body).strip())
    lines = [f"**{_TITLES.get(title, title)}**", ""]
    for entry in entries:
        entry = " ".join(entry.split())
        names = _ENTRY.match(entry)
        if names:
            shown = ", ".join(f"`{name.strip()}`" for name in names[1].split(","))
            entry = f"{shown}: {entry[names.end() :]}"
        lines.append(f"- {entry}")
    return "\n".join(lines) + "\n"


def _fence(language: str, margin: str, content: str) -> str:
    return indent(f"\n```{language}\n{dedent(content).strip()}\n```\n", margin)


def _link(found: re.Match[str]) -> str:
    short, name = found.groups()
    shown = name.rpartition(".")[2] if short else name
    return f'<autoref identifier="{name}" optional><code>{shown}</code></autoref>'


class SphinxDocstrings(griffe.Extension):
    """Rewrites every docstring before it is rendered."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring:
            obj.docstring.value = to_markdown(obj.docstring.value)
