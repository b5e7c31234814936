"""Typed links: filtered ranks against brute force, questions both ways, and a rule that can be learned."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import ltga
from ltga.data import Triples
from ltga.errors import InputError
from ltga.train.tasks.objectives import Ranks
from ltga.train.tasks.typed_task import TypedTask

QUICK = {"epochs": 60, "hidden_channels": 8, "heads": 2, "num_layers": 1, "dropout": 0.0}


@pytest.fixture(scope="module")
def family() -> Triples:
    """30 nodes in a circle: "next" is one step on, "skip" two; a seventh of "skip" is held out."""
    nodes = torch.arange(30)
    edges = torch.cat([torch.stack([nodes, (nodes + step) % 30]) for step in (1, 2)], dim=1)
    kind = torch.arange(2).repeat_interleave(30)
    number = torch.arange(60)
    val, test = (kind == 1) & (number % 7 == 0), (kind == 1) & (number % 7 == 3)
    return Triples("circle", edges, kind, ~val & ~test, val, test, list(map(str, range(30))), ["next", "skip"])


def test_ranks_are_filtered_in_both_directions(family: Triples) -> None:
    run = ltga.fit(family, "ltga-head", protocol={**QUICK, "epochs": 3})
    known = {(h, r, t) for (h, t), r in zip(family.edge_index.t().tolist(), family.edge_type.tolist())}
    reciprocal = []
    for at in family.split(0)[2].nonzero().flatten().tolist():
        (head, tail), relation = family.edge_index[:, at].tolist(), int(family.edge_type[at])
        for near, far, kind, backwards in ((head, tail, relation, False), (tail, head, relation + 2, True)):
            scores = run.predict_proba(family, torch.tensor([[near], [kind]]))[0]
            rank = 1.0
            for other in range(30):
                triple = (other, relation, near) if backwards else (near, relation, other)
                if other != far and triple not in known:
                    rank += float(scores[other] > scores[far]) + 0.5 * float(scores[other] == scores[far])
            reciprocal.append(1 / rank)
    assert run.metrics["mrr"] == pytest.approx(sum(reciprocal) / len(reciprocal), rel=1e-3)


@pytest.mark.parametrize("method", ["ltga-head", "gatv2", "features"])
def test_training_triples_are_learned(family: Triples, method: str) -> None:
    run = ltga.fit(family, method, protocol={**QUICK, "patience": 60, "metric": "loss"})
    course = run.record["trajectory"]["train_loss"]
    assert course[-1] < 0.5 * course[0] and run.record["config"]["task"] == "typed link prediction"


def test_what_is_held_out_is_not_in_the_graph_and_validation_asks_both_ways(family: Triples) -> None:
    task = TypedTask(family, 0, Ranks("mrr", pairwise=False))
    edge_index, edge_type = task.graph
    passed = set(zip(*edge_index.tolist(), edge_type.tolist()))
    for at in torch.cat([part.nonzero().flatten() for part in family.split(0)[1:]]).tolist():
        (head, tail), kind = family.edge_index[:, at].tolist(), int(family.edge_type[at])
        assert (head, tail, kind) not in passed and (tail, head, kind + 2) not in passed
    asked = {(*task.queries[:, row].tolist(), int(task.y[row])) for row in task.val.tolist()}
    at = int(family.split(0)[1].nonzero()[0])
    (head, tail), kind = family.edge_index[:, at].tolist(), int(family.edge_type[at])
    assert {(head, kind, tail), (tail, kind + 2, head)} <= asked and len(asked) == 2 * int(family.split(0)[1].sum())
    assert not task.others("val").gather(1, task.y[task.val].unsqueeze(1)).any()


def test_a_run_is_the_same_for_a_seed_and_comes_back_from_a_file(family: Triples, tmp_path: Path) -> None:
    runs = [ltga.fit(family, "ltga-edge", protocol={**QUICK, "epochs": 3, "dropout": 0.3}) for _ in range(2)]
    assert runs[0].record["metrics"] == runs[1].record["metrics"]
    asked = torch.tensor([[0, 4], [0, 3]])
    assert ltga.load_run(runs[0].save(tmp_path)).predict(family, asked).equal(runs[1].predict(family, asked))


def test_what_is_refused(family: Triples) -> None:
    run = ltga.fit(family, "features", protocol={**QUICK, "epochs": 1})
    for data, asked, message in (
        (family, None, "for links give the pairs"),
        (family, torch.tensor([[0], [4]]), "row 1 must hold numbers from 0 to 3"),
        (family, torch.tensor([0, 4]), "shape .2, questions."),
        (family.graph(), torch.tensor([[0], [1]]), "expected the Triples"),
    ):
        with pytest.raises(InputError, match=message):
            run.predict(data, asked)
    with pytest.raises(InputError, match="circle is for typed link prediction; use task='link'"):
        ltga.fit(family, task="node")
    with pytest.raises(InputError, match="typed link prediction has no setting 'each'; it has none"):
        ltga.fit(family, options={"each": 3})
