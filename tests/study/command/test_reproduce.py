"""``ltga reproduce``: which methods it runs, and what it says where the paper's numbers cannot come out."""

import io

import pytest
from rich.console import Console

from ltga.nn.methods import METHODS
from ltga.study.command.reproduce_command import reproduce_cells
from ltga.study.reproduce import Reproduced


@pytest.fixture
def asked(monkeypatch):
    """The methods that would be run."""
    seen = []

    def table(methods, graphs, *rest, **settings):
        seen.extend(methods)
        return [Reproduced(method, graph.name, (1, 2), (0.5, 0.6)) for method in methods for graph in graphs]

    monkeypatch.setattr("ltga.study.command.reproduce_command.reproduction_table", table)
    return seen


def run(tmp_path, methods):
    said = io.StringIO()
    reproduce_cells(Console(file=said), methods, ["csbm:num_nodes=60"], 2, tmp_path / "runs", None, None)
    return said.getvalue()


def test_all_means_every_method_once(asked, tmp_path, capsys):
    run(tmp_path, ["all"])
    assert asked == list(METHODS)
    assert capsys.readouterr().out.count("55.0±7.1") == len(METHODS)


@pytest.mark.parametrize("same", [True, False])
def test_a_machine_that_draws_other_numbers_is_named(asked, tmp_path, monkeypatch, same):
    monkeypatch.setattr("ltga.study.command.reproduce_command.draws_like_the_paper", lambda: same)
    assert ("not to the digit" in " ".join(run(tmp_path, ["gcn"]).split())) is not same
