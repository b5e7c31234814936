"""Data flows down the list of layers and never back up: a lower layer may not import a higher one."""

import ast
from pathlib import Path

import pytest

import ltga

SOURCE = Path(ltga.__file__).parent
# What each layer may import besides itself. Higher layers may use everything below them.
ORDER = [
    {"errors"},
    {"functional"},
    {"kernels"},
    {"nn"},
    {"train"},
    {"suite"},
    {"stats", "analysis", "bench"},
    {"report"},
    {"cli"},
]
RANK = {layer: rank for rank, layers in enumerate(ORDER) for layer in layers}
ABOVE_DATA = {layer for layer, rank in RANK.items() if rank >= RANK["train"]}


def layer_of(path: Path) -> str:
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imported_layers(path: Path, text: str) -> set[tuple[int, str]]:
    """(line, layer) of every import of ltga in a file, wherever in the file it stands."""
    package = ("ltga", *path.relative_to(SOURCE).parent.parts)
    found = set()
    for node in ast.walk(ast.parse(text)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join((*package[: len(package) - node.level + 1], *filter(None, [base])))
            names = [f"{base}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "ltga":
                found.add((node.lineno, parts[1] if len(parts) > 1 else "ltga"))
    return found


def allowed(layer: str) -> set[str]:
    if layer == "data":
        return {"data", "errors"}
    below = {other for other, rank in RANK.items() if rank < RANK[layer]} | {layer}
    return below | {"data"} if layer in ABOVE_DATA else below


FILES = sorted(path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.stem == "errors")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_file_imports_a_higher_layer(path):
    layer = layer_of(path)
    assert layer in RANK or layer == "data", f"{layer}: not in the order of layers"
    known = set(RANK) | {"data"}
    for line, other in imported_layers(path, path.read_text()):
        # `from ltga import name` reaches the whole package; inside it, say which layer is meant.
        assert other in known or other == "__version__", f"{path}:{line} imports ltga.{other}"
        if other in known:
            assert other in allowed(layer), f"{path}:{line}: {layer} may not import {other}"


def test_the_checker_sees_every_form_of_import(tmp_path):
    text = "import ltga.nn\nfrom ltga import train\nfrom ..kernels import x\ndef f():\n    from ltga.suite.a import b\n"
    found = imported_layers(SOURCE / "functional" / "made_up.py", text)
    assert found == {(1, "nn"), (2, "train"), (3, "kernels"), (5, "suite")}


def test_the_order_is_the_designs():
    assert allowed("kernels") == {"errors", "functional", "kernels"}
    assert allowed("data") == {"errors", "data"}
    assert "data" in allowed("train")
    assert "data" not in allowed("nn")
    assert "stats" not in allowed("analysis")
    assert "nn" in allowed("cli")
