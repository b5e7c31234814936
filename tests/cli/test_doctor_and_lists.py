"""``ltga doctor``, ``ltga datasets``, ``ltga methods``, help and completion."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ltga.cli.app import app
from ltga.data import CATALOGUE
from ltga.nn import conv as layer
from ltga.nn.methods import METHODS


def test_a_sound_installation(ltga: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cora.npz").touch()
    monkeypatch.setenv("LTGA_DATA", str(tmp_path))
    outcome = ltga("doctor", "--json")
    assert outcome.code == 0, outcome.out
    said = json.loads(outcome.out)
    checks = {check["what"]: check for check in said["checks"]}
    assert said["sound"] is True
    assert checks["cora"] == {"what": "cora", "state": "ok", "detail": str(tmp_path)}
    assert checks["digits-noise"]["detail"] == "built in"
    assert {"python", "torch", "numba", "threads", "thread team", "kernels"} <= set(checks)
    assert "gradients included" in checks["self-test"]["detail"]


@pytest.mark.parametrize("way", ["fused_attention", "in_one_step"])
def test_wrong_kernels_are_found(way: str, ltga: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    right = getattr(layer, way)

    def wrong(*given: Any) -> Any:
        found = right(*given)
        return (found[0] * 1.01, found[1]) if isinstance(found, tuple) else found * 1.01

    monkeypatch.setattr(layer, way, wrong)
    outcome = ltga("doctor")
    assert outcome.code == 1
    assert [line.split()[1] for line in outcome.out.splitlines() if line.split()[0] == "broken"] == ["self-test"]
    assert "Something is broken" in outcome.out


def test_a_wrong_environment_and_a_check_that_breaks(ltga: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def explode() -> float:
        raise RuntimeError("no\ncompiler")

    monkeypatch.setenv("LTGA_DATA", "/nowhere")
    monkeypatch.setattr("ltga.cli.doctor.largest_difference", explode)
    outcome = ltga("doctor", "--json")
    assert outcome.code == 1
    broken = {
        check["what"]: check["detail"] for check in json.loads(outcome.out)["checks"] if check["state"] == "broken"
    }
    assert broken == {
        "LTGA_DATA": "/nowhere is not a folder; correct or unset the variable",
        "self-test": "RuntimeError: no compiler",
    }


def test_lists_say_what_and_which_paper(ltga: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LTGA_DATA", str(tmp_path))
    lines = ltga("datasets").out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(CATALOGUE)
    assert all(facts.about and facts.paper for facts in CATALOGUE.values())
    assert all(facts.paper in line for facts, line in zip(CATALOGUE.values(), lines[1:]))
    rows = json.loads(ltga("datasets", "--json").out)
    assert [row["name"] for row in rows] == list(CATALOGUE)
    lines = ltga("methods").out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(METHODS)
    assert json.loads(ltga("methods", "--json").out)[2] == {
        "name": "gatv2", "label": "GATv2", "family": "softmax", "about": "dynamic attention with softmax",
        "source": "Brody et al., ICLR 2022",
    }  # fmt: skip


def test_help_everywhere_with_an_example(ltga: Any) -> None:
    outcome = ltga()
    assert outcome.code == 0
    assert "ltga train" in outcome.out
    for command in app.registered_commands:
        assert command.callback is not None
        name = command.name or command.callback.__name__
        outcome = ltga(name, "--help")
        assert outcome.code == 0
        assert f"ltga {name}" in outcome.out.split("Options")[0].replace("Usage: ltga", "")
    assert ltga("--version").out.startswith("ltga 0.")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("ltga tra", ["train"]),
        ("ltga train texa", ["texas"]),
        ("ltga train --method gatv2,ltga-h", ["gatv2,ltga-head"]),
        ("ltga train --set hid", ["hidden_channels="]),
    ],
)
def test_the_shell_completes(ltga: Any, monkeypatch: pytest.MonkeyPatch, words: str, offered: list[str]) -> None:
    monkeypatch.setenv("_LTGA_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    assert ltga().out.split() == offered
