"""The documents say what the code does: their code runs, their tables are the generated ones, their pictures draw."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

import ltga.study.experiments  # noqa: F401  (its protocols must be made before a fixture shortens them)
from ltga.train import Protocol

ROOT = Path(__file__).parents[2]
SMALLEST = {"epochs": 2, "hidden_channels": 4, "heads": 2}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_CODE = [path for path in PAGES if "\n```python\n" in path.read_text()]


def load(name: str) -> ModuleType:
    """A script of docs/, which is no package."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if str(ROOT / "docs") not in sys.path:  # scripts import each other as they do when they are run
        sys.path.append(str(ROOT / "docs"))
    spec.loader.exec_module(module)
    return module


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def code_of(text: str) -> list[tuple[int, str]]:
    """(line, code) of every Python block."""
    found = re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(text[: match.start()].count("\n") + 1, match[1]) for match in found]


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a page trains, here it trains for two epochs."""
    original = Protocol.__init__

    def shortened(self: Protocol, **values: Any) -> None:
        largest = {key: Protocol.model_fields[key].default for key in SMALLEST} | values
        original(
            self,
            **(
                values
                | {
                    key: small if largest[key] == "auto" else min(largest[key], small)
                    for key, small in SMALLEST.items()
                }
            ),
        )

    monkeypatch.setattr(Protocol, "__init__", shortened)


@pytest.mark.parametrize("path", WITH_CODE, ids=name_of)
def test_the_code_of_a_page_runs(path: Path, tiny: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = path.read_text()
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    with torch.random.fork_rng(devices=[]):
        for line, code in code_of(text):
            # Blank lines in front make a traceback name the line of the page.
            exec(compile("\n" * line + code, str(path), "exec"), names)


def test_pages_have_code() -> None:
    assert {"README.md", "docs/theory.md", "docs/guides/own-graph.md"} <= {name_of(path) for path in WITH_CODE}


def test_code_blocks_are_found_with_their_lines() -> None:
    assert code_of("a\n```python\nx = 1\n```\n```\nno\n```\n```python\ny\n```\n") == [(2, "x = 1\n"), (8, "y\n")]


def test_generated_tables_are_up_to_date() -> None:
    tables = load("tables")
    stale = [page for page in tables.PAGES if tables.filled((ROOT / page).read_text()) != (ROOT / page).read_text()]
    assert stale == [], "run: python docs/tables.py"


def test_every_table_is_shown_and_every_marker_is_filled() -> None:
    tables = load("tables")
    marked = [(name_of(path), name) for path in PAGES for name in re.findall(r"<!-- (\w+):begin -->", path.read_text())]
    assert {name for _, name in marked} == set(tables.TABLES)
    assert {page for page, _ in marked} == set(tables.PAGES)


def test_a_table_escapes_its_own_syntax() -> None:
    assert load("tables").markdown(["a"], [["x|y <b>"]]).splitlines()[-1] == "| x\\|y &lt;b> |"


def test_a_marker_without_end_is_refused() -> None:
    with pytest.raises(ValueError, match="speed:begin"):
        load("tables").filled("<!-- speed:begin -->\n")


def test_the_pictures_draw(tmp_path: Path) -> None:
    plots = load("plots")
    plots.draw(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"{name}.svg" for name in plots.PLOTS)
    for path in tmp_path.iterdir():
        assert (ROOT / "docs" / "images" / path.name).exists()
        assert path.read_text().count("<path") > 10


def test_the_results_are_what_their_page_shows() -> None:
    """Tables in other formats, and figures in another, are left to `ltga suite report`."""
    study = load("study")
    there = {path.relative_to(study.RESULTS) for path in study.RESULTS.rglob("*") if path.is_file()}
    assert there == study.shown((study.RESULTS / "README.md").read_text()), "run: python docs/study.py STORE"


def test_of_a_report_its_page_and_the_figures_on_it_are_kept(tmp_path: Path) -> None:
    report, kept = tmp_path / "report", tmp_path / "kept"
    for name in ("figures/a.svg", "figures/a.png", "tables/a.csv", "index.html"):
        (report / name).parent.mkdir(parents=True, exist_ok=True)
        (report / name).write_text(name)
    (report / "README.md").write_text("![A.](figures/a.svg) and [elsewhere](https://example.org)\n")
    kept.mkdir()
    (kept / "old.svg").touch()
    load("study").keep(report, kept)
    assert {str(path.relative_to(kept)) for path in kept.rglob("*") if path.is_file()} == {"README.md", "figures/a.svg"}
    assert (kept / "figures" / "a.svg").read_text() == "figures/a.svg"


def test_the_readme_keeps_its_two_commands() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    start = "python3 -m venv .venv && .venv/bin/pip install -q -c constraints.txt "
    assert start + ". && .venv/bin/ltga train" in lines
    assert start + "-e '.[dev]' && .venv/bin/pytest -q -n 2" in lines


DOCSTRING = inspect.cleandoc(r"""
    First :math:`q = 1 +
    x_i` and :func:`exp_q`.

    .. math::
        a = b

        + c

    Args:
        x, y,
            z: see :class:`~ltga.nn.LTGAConv`.
        q: a number: any.

    Returns:
        Two
        lines.

    ===  ===
    one  two
    ===  ===

    >>> f(1)
    2
    >>> g()

    End.
""")


def test_docstrings_become_markdown() -> None:
    pytest.importorskip("griffe")
    text = load("docstrings").to_markdown(DOCSTRING)
    assert "First `#!math q = 1 + x_i` and <autoref" in text
    assert "```math\na = b\n\n+ c\n```" in text
    entry = '- `x`, `y`, `z`: see <autoref identifier="ltga.nn.LTGAConv" optional><code>LTGAConv</code></autoref>.'
    assert f"**Arguments**\n\n{entry}\n- `q`: a number: any.\n" in text
    assert "**Returns**: Two lines.\n" in text
    assert "```text\n===  ===\none  two\n===  ===\n```" in text
    assert "```pycon\n>>> f(1)\n2\n>>> g()\n```\n" in text and text.endswith("\n\nEnd.")


def test_every_package_gets_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mkdocs")
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    hooks = load("hooks")
    assert {"functional", "nn", "data", "train", "study", "study.stats", "study.analyses"} <= set(hooks.packages())
    assert not {"cli", "study.command"} & set(hooks.packages())
    assert "::: ltga.study.analyses.pruning\n" in hooks.api_page("study.analyses")
    assert "::: ltga.nn\n" in hooks.api_page("nn")
    assert "::: ltga.train\n" in hooks.api_page("train")
    assert hooks.display_math("x^2").count("<math") == 1


def test_a_page_that_fetches_from_elsewhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    exceptions = pytest.importorskip("mkdocs.exceptions")
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    hooks, page = load("hooks"), SimpleNamespace(file=SimpleNamespace(src_uri="a.md"))
    fine = '<a href="https://example.org">link</a><script src="local.js"></script>'
    assert hooks.on_post_page(fine, page, None) == fine
    for bad in ('<script async src="https://cdn/x.js">', '<link rel="stylesheet" href="//fonts/x.css">'):
        with pytest.raises(exceptions.PluginError, match="must work offline"):
            hooks.on_post_page(bad, page, None)
