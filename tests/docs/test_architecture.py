"""docs/architecture.md is the house as it stands, read from the files and their imports (names: test_names.py)."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

from test_layers import FILES, KERNELS, ORDER, SOURCE, STUDY, imports

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
QUOTED = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", PAGE, flags=re.MULTILINE | re.DOTALL))


def rows(heading: str) -> list[list[str]]:
    """The cells of the table under a heading, without its head."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def names_in(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def used(path: Path) -> set[str]:
    """Every name that a file defines, imports, calls or reads."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.alias):
            found.add(node.name)
    return found


def test_the_order_is_the_one_that_is_enforced() -> None:
    chains = [re.split(r"\s→\s", chain) for chain in re.findall(r"\w+(?:\s→\s\w+)+", PAGE)]
    assert chains == [ORDER, KERNELS, STUDY]


def test_every_package_is_named_and_every_folder_exists() -> None:
    packages = {f"{path.parent.relative_to(SOURCE)}/" for path in SOURCE.rglob("*/__init__.py")} - {"./"}
    assert {names_in(row[0])[0] for row in rows("The folders")} == packages


def test_the_imports_are_those_of_the_code() -> None:
    real: dict[str, set[str]] = defaultdict(set)
    for path in FILES:
        layer = path.relative_to(SOURCE).with_suffix("").parts[0]
        real[layer] |= {other for _, (other, *_) in imports(path, path.read_text()) if other in ORDER} - {layer}
    told = {names_in(row[0])[0].strip("/"): row[2].split(", ") for row in rows("The folders") if row[2]}
    assert told == {layer: [name for name in ORDER if name in real[layer]] for layer in told}
    assert told.keys() == set(ORDER) - {"errors", "lazy"}


def test_every_path_exists() -> None:
    paths = [name for name in QUOTED if re.fullmatch(r"[\w./-]+/[\w./-]*", name)]
    assert len(paths) > 40
    assert [path for path in paths if not ((ROOT / path).exists() or (SOURCE / path).exists())] == []


@pytest.mark.parametrize("row", rows("The walk of one run"), ids=lambda row: row[0].strip("`"))
def test_a_step_of_the_run_is_in_its_file(row: list[str]) -> None:
    (file,), names = names_in(row[0]), names_in(row[2])
    assert names and set(names) <= used(SOURCE / file)


def test_what_entitles_the_fused_path_is_there() -> None:
    layer = used(SOURCE / "nn" / "conv.py") | used(SOURCE / "nn" / "projections.py")
    named = {name for name in QUOTED if name in used(SOURCE / "nn" / "entitlement.py")}
    assert {"may_compile", "is_plain_linear", "may_fuse"} <= named & layer
    assert {"sums_plain_messages", "is_ordinary"} <= named
