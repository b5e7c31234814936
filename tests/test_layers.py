"""The house keeps its plan: data flows down the list of layers, and a module can be found by its name."""

import ast
from collections import Counter
from pathlib import Path

import pytest

import ltga

SOURCE = Path(ltga.__file__).parent
# From the ground up: a layer may import itself and what stands before it. Data knows nothing of attention, and
# attention nothing of data. Nothing imports the study.
ORDER = ["errors", "lazy", "functional", "kernels", "nn", "data", "train", "explanation", "bench", "cli", "study"]
APART = {("data", "functional"), ("data", "kernels"), ("data", "nn"), ("bench", "explanation")}
# The same inside two of them.
KERNELS = ["numba", "triton", "runtime", "operators"]
STUDY = ["stats", "paper", "analyses", "report", "command"]
FILES = sorted(path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.stem in ("errors", "lazy"))


def imports(path: Path, text: str) -> set[tuple[int, tuple[str, ...]]]:
    """(line, parts of the name below ltga) of every import of ltga in a file, wherever in the file it stands."""
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
        found |= {(node.lineno, tuple(name.split(".")[1:])) for name in names if name.split(".")[0] == "ltga"}
    return found


def allowed(layer: str) -> set[str]:
    return {other for other in ORDER[: ORDER.index(layer) + 1] if (layer, other) not in APART}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_file_imports_a_higher_layer(path):
    layer, *inner = path.relative_to(SOURCE).with_suffix("").parts
    assert layer in ORDER, f"{layer}: not in the order of layers"
    for line, (other, *rest) in imports(path, path.read_text()):
        # `from ltga import name` reaches the whole package; inside it, say which layer is meant.
        assert other in ORDER or other == "__version__", f"{path}:{line} imports ltga.{other}"
        assert other not in ORDER or other in allowed(layer), f"{path}:{line}: {layer} may not import {other}"
        for shelf, order in (("kernels", KERNELS), ("study", STUDY)):
            if layer == other == shelf and inner[0] in order and rest[0] in order:
                assert order.index(rest[0]) <= order.index(inner[0]), f"{path}:{line}: imports {shelf}.{rest[0]}"


def test_the_checker_sees_every_form_of_import():
    text = "import ltga.nn\nfrom ltga import train\nfrom ..kernels import x\ndef f():\n    from ltga.study.a import b\n"
    found = imports(SOURCE / "functional" / "made_up.py", text)
    assert found == {(1, ("nn",)), (2, ("train",)), (3, ("kernels", "x")), (5, ("study", "a", "b"))}


def test_the_order_is_the_designs():
    assert allowed("kernels") == {"errors", "lazy", "functional", "kernels"}
    assert allowed("data") == {"errors", "lazy", "data"}
    assert {"nn", "data"} < allowed("train")
    assert "data" not in allowed("nn")
    assert [layer for layer in ORDER if "study" in allowed(layer)] == ["study"]


def test_no_two_modules_share_a_name():
    names = Counter(path.stem if path.stem != "__init__" else path.parent.name for path in FILES)
    assert [name for name, count in names.items() if count > 1] == []
