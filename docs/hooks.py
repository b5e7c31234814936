"""What mkdocs needs beyond its settings: formulas as MathML, and an API page for every package of ltga."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

from docstrings import to_markdown
from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

SOURCE = Path(__file__).parents[1] / "src" / "ltga"
ORDER = ("functional", "nn", "data", "train", "explanation", "kernels", "study")
_FETCHED = re.compile(r'<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)="((?:https?:)?//[^"]+)')
HIDDEN = ("bench", "cli", "study.command")  # commands, not a library


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    fence = {"name": "math", "class": "math", "format": display_math}
    config.mdx_configs.setdefault("pymdownx.superfences", {})["custom_fences"] = [fence]
    inline = {"name": "math", "class": "math", "format": inline_math}
    config.mdx_configs.setdefault("pymdownx.inlinehilite", {})["custom_inline"] = [inline]
    assert config.nav is not None
    pages = [{f"ltga.{name}": f"api/{name}.md"} for name in packages()]
    config.nav.append({"API": ["api/index.md", *pages]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    files.append(File.generated(config, "api/index.md", content=api_index()))
    for name in packages():
        files.append(File.generated(config, f"api/{name}.md", content=api_page(name)))
    return files


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Refuse a page that would fetch something from elsewhere."""
    found = _FETCHED.search(output)
    if found:
        raise PluginError(f"{page.file.src_uri}: fetches {found[1]}; the documentation must work offline")
    return output


def display_math(source: str, *_: Any, **__: Any) -> str:
    return f'<div class="formula">{mathml(source, "block")}</div>'


def inline_math(source: str, *_: Any, **__: Any) -> str:
    return mathml(source, "inline")


def mathml(source: str, display: str) -> str:
    return str(convert(source.replace("'", r"^{\prime}"), display=display))  # the apostrophe comes out as a dot


def packages() -> list[str]:
    """Names below ltga: every package, and the shelves of the study, which is too large for one page."""
    found = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    found |= {f"study.{path.parent.name}" for path in (SOURCE / "study").glob("*/__init__.py")}
    return sorted(found - set(HIDDEN), key=lambda name: (ORDER.index(name.split(".")[0]), name))


def api_index() -> str:
    """The public names of ltga with the first line of their docstrings, and its errors."""
    package = importlib.import_module("ltga")
    lines = ["# API reference", "", "What `import ltga` offers; the rest is listed by package.", ""]
    lines += ["| name | what |", "| --- | --- |"]
    for name in package.__all__:
        if not name.startswith("_"):
            thing = getattr(package, name)
            meaning = to_markdown((inspect.getdoc(thing) or "").splitlines()[0])
            lines.append(f"| [`ltga.{name}`][{thing.__module__}.{name}] | {meaning} |")
    return "\n".join([*lines, "", "::: ltga.errors", ""])


def api_page(name: str) -> str:
    """A package: its public names, or its modules where it has none of its own."""
    folder = SOURCE.joinpath(*name.split("."))
    names = _public_names(folder / "__init__.py")
    modules = sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")
    nested = sorted(path.parent.name for path in folder.glob("*/__init__.py") if _public_names(path))
    nested = [part for part in nested if f"{name}.{part}" not in packages()]
    # A function called as its module is hidden by it in static analysis; a path of its own brings it back.
    shown = [f"{module}.{module}" for module in modules if module in names] if names else modules
    whole = f"::: ltga.{name}\n    options:\n      show_root_heading: false\n" if names else ""
    parts = [f"::: ltga.{name}.{part}\n" for part in (*shown, *nested)]
    return "\n".join([f"# ltga.{name}\n", whole, *parts])


def _public_names(path: Path) -> list[str]:
    """What a file lists in ``__all__``."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return list(ast.literal_eval(node.value))
    return []
