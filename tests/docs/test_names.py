"""What pages, comments and docstrings refer to is there: links, paths of the repository, names of ltga."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), ROOT / "benchmarks" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODE = [path for folder in ("src", "tests", "docs", "benchmarks", "examples") for path in (ROOT / folder).rglob("*.py")]
OTHERS = [ROOT / name for name in ("pyproject.toml", "mkdocs.yml", ".ci/run", ".pre-commit-config.yaml")]
HERE = Path(__file__)
FORMER = re.compile(r"^  \| .*? \| ", re.MULTILINE)  # the changelog's column of names that are no longer there


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def exists(name: str) -> bool:
    """Whether a dotted name is a module, or an attribute of one."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part, None)
        return found is not None
    return False


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", path.read_text())
    made_by_mkdocs = ("api/",)
    missing = [target for target in targets if not (path.parent / target).exists()]
    assert [target for target in missing if not target.startswith(made_by_mkdocs)] == []


@pytest.mark.parametrize("folder", ["src", "tests", "docs", "benchmarks", "examples", "results"])
def test_paths_of_the_repository_exist(folder: str) -> None:
    """Wherever they are written: in pages, comments, docstrings, settings."""
    path = re.compile(rf"(?<![\w./-]){folder}/[\w./-]*[\w/]")
    stale = [
        f"{name_of(file)}: {found}"
        for file in (*PAGES, *CODE, *OTHERS)
        if file != HERE
        for found in path.findall(file.read_text())
        if not any((base / found).exists() for base in (ROOT, ROOT / "docs", file.parent))
    ]
    assert stale == []


def test_names_of_ltga_exist() -> None:
    """In pages, and where docstrings refer to other things."""
    quoted = re.compile(r"`~?(ltga(?:\.[A-Za-z_]\w*)+)")
    texts = {file: FORMER.sub("", file.read_text()) for file in PAGES} | {
        file: file.read_text() for file in CODE if file.is_relative_to(ROOT / "src")
    }
    names = {(name_of(file), name) for file, text in texts.items() for name in quoted.findall(text)}
    assert len(names) > 50
    missing = {name for name in {name for _, name in names} if not exists(name)}
    assert [found for found in sorted(names) if found[1] in missing] == []


def test_scripts_import_what_is_there() -> None:
    """Benchmarks and scripts of the docs are seldom run: a name that has moved would stay unnoticed."""
    scripts = [file for file in CODE if file.relative_to(ROOT).parts[0] in ("benchmarks", "docs", "examples")]
    imported = {
        (name_of(file), f"{statement.module}.{name.name}")
        for file in scripts
        for statement in ast.walk(ast.parse(file.read_text()))
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").split(".")[0] == "ltga"
        for name in statement.names
    }
    assert len(imported) > 100
    assert [found for found in sorted(imported) if not exists(found[1])] == []


def test_a_missing_name_is_seen() -> None:
    assert exists("ltga.nn.LTGAConv.forward") and exists("ltga.study.stats.PRIMARY")
    assert not exists("ltga.nn.LTGAConv.backwards") and not exists("ltga.stats")
