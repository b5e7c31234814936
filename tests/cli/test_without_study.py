"""The library without the study's packages: everything else works and does not even look for them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fixtures.command_line import Outcome
from ltga import errors

STUDY_ONLY = ("statsmodels", "matplotlib", "scikit_posthocs", "torchmetrics")

# A finder that stands before all others: who asks for one of these packages is written down and told that it is absent.
ABSENT = f"""
import sys, traceback

class Absent:
    asked = []

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.split(".")[0] in {STUDY_ONLY!r}:
            callers = [frame.filename for frame in traceback.extract_stack() if "importlib" not in frame.filename]
            cls.asked.append((name, callers[-2]))
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent)
"""
EVERYTHING = """
from pathlib import Path
import ltga
from ltga.cli import main

settings = ["--set", "epochs=1", "--set", "hidden_channels=2", "--set", "heads=2", "--quiet"]
for command in (
    ["--help"],
    ["train", "csbm:num_nodes=60", "--method", "gcn,ltga-head", "--seeds", "1", "--out", "runs", *settings],
    ["explain"],
    ["datasets"],
    ["methods"],
):
    if command[0] == "explain":
        command += [str(path) for path in Path("runs").glob("*.json") if "ltga-head" in path.read_text()]
    try:
        main(command)
    except SystemExit as exit:
        assert exit.code == 0, command
    if command == ["--help"]:
        assert not {"torch", "numpy", "pandas", "pydantic"} & set(sys.modules), "help is not quick"
assert all(getattr(ltga, name) is not None for name in ltga.__all__)
print("asked for:", Absent.asked)
"""


def test_nothing_outside_the_study_looks_for_its_packages(tmp_path: Path) -> None:
    program = [sys.executable, "-c", ABSENT + EVERYTHING]
    here = {**os.environ, "PYTHONPATH": str(Path(errors.__file__).parents[1])}
    ended = subprocess.run(program, cwd=tmp_path, env=here, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.rstrip().endswith("asked for: []")
    assert "suite" in ended.stdout and "reproduce" in ended.stdout  # in --help


@pytest.mark.parametrize(
    "command", [["suite", "status"], ["suite", "run", "headline"], ["reproduce", "--datasets", "texas"]]
)
def test_the_study_says_in_one_line_what_to_install(
    command: list[str], ltga: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in STUDY_ONLY:
        monkeypatch.setitem(sys.modules, package, None)  # what an import and find_spec take for absent
    outcome = ltga(*command)
    assert outcome.code == 2
    assert outcome.err.splitlines() == [
        f"error: ltga {command[0]}: needs matplotlib and statsmodels; install the study with: pip install 'ltga[study]'"
    ]


def test_the_benchmarks_say_what_to_install_before_they_measure() -> None:
    script = Path(__file__).parents[2] / "benchmarks" / "run.py"
    program = (
        f"import runpy, sys; sys.modules['matplotlib'] = None; runpy.run_path({str(script)!r}, run_name='__main__')"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 1
    assert ended.stderr == "benchmarks/run.py: needs matplotlib; install it with: pip install 'ltga[study]'\n"
