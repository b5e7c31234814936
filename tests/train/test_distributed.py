"""Two real processes, started by torchrun on gloo, against one process that sees the same batches."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Batch

from ltga.errors import InputError
from ltga.train.crew import StepLoss
from ltga.train.distributed import Team
from ltga.train.loop import Task
from ltga.train.targets import Classes
from ltga.train.tasks.graph_task import GraphStep
from ltga.train.tasks.packed_graphs import GraphBatch
from train import team_script as script

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What two processes found."""
    folder = tmp_path_factory.mktemp("team")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*command, str(HERE / "team_script.py"), str(folder)], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = torch.load(folder / "steps.pt")
    return {**found, **json.loads((folder / "runs.json").read_text())}


def agree(step: dict[str, Any], model: Any, loss: Any) -> None:
    """The gradient of the one process, in float64."""
    model.zero_grad()
    loss.backward()
    assert step["value"] == pytest.approx(loss.item(), abs=1e-12)
    for name, parameter in model.named_parameters():
        assert (step["gradient"][name] - parameter.grad).abs().max() < 1e-10, name
    assert max(float(gradient.abs().max()) for gradient in step["gradient"].values()) > 1e-3


@pytest.mark.parametrize(("name", "weights", "prior"), [("plain", None, 0), ("weighed", script.CLASS_WEIGHTS, 0.2)])
def test_the_gradient_is_that_of_one_process(team: dict[str, Any], name: str, weights: Any, prior: float) -> None:
    x, edge_index, y, train, val = script.graph()
    steps = team["steps"][name]
    sizes = [[len(part) for part in step["parts"]] for step in steps]
    assert sizes == [[7, 7], [7, 7], [7, 7], [1, 0]], "seeds are divided, and one process runs out before the other"
    for step in steps:
        model = script.network().train()
        nodes = torch.tensor([node for part in step["parts"] for node in part])
        whole = Task(x, edge_index, None, y, nodes, val, val, target=Classes("loss", weights))
        agree(step, model, StepLoss(model, prior)(whole))
        assert step["count"] == len(nodes)
    seen = sorted(node for step in steps for part in step["parts"] for node in part)
    assert seen == train.tolist(), "an epoch sees every training node once"


def test_batch_norm_is_over_the_batches_of_all(team: dict[str, Any]) -> None:
    model, graphs, y = script.graph_network(), script.graphs(), script.graph_task().y
    steps = team["steps"]["norm"]
    assert [[len(part) for part in step["parts"]] for step in steps] == [[2, 2], [2, 2], [1, 0]]
    for step in steps:
        model.train()
        chosen = torch.tensor([graph for part in step["parts"] for graph in part])
        every = Batch.from_data_list([graphs[number] for number in chosen.tolist()])
        batch = GraphBatch(every.x, every.edge_index, None, every.batch, every.num_graphs)
        whole = GraphStep(batch, y, chosen, Classes())
        agree(step, model, StepLoss(model, 0.0)(whole))
    found = model.state_dict()
    assert len(team["running"]) >= 2
    for name, value in team["running"].items():
        assert torch.allclose(value, found[name], rtol=0, atol=1e-12), name


def test_a_run_of_two_processes(team: dict[str, Any]) -> None:
    whole = team["whole"]
    assert whole["config"]["workers"] == 2 and whole["epochs"] == 7
    first, second = team["weights"]
    assert first == second, "every process ends with the same network"
    heads = whole["trajectory"]["q"][0]["mean"]
    assert heads[0] == heads[1] != heads[3], "q stays where it starts during the warm-up, and moves after it"


def test_a_run_of_two_processes_resumes(team: dict[str, Any]) -> None:
    """To the bit, because the sum of two numbers does not depend on their order."""
    whole, resumed = team["whole"], team["resumed"]
    assert resumed["resumed"] == [{"epoch": 3, "changed": []}]
    for key in ("metrics", "trajectory", "best_epoch", "attention"):
        assert resumed[key] == whole[key], key
    assert team["resumed_weights"] == team["weights"]


def test_what_cannot_be_divided_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.distributed.get_rank", lambda: 0)
    monkeypatch.setattr("torch.distributed.get_world_size", lambda: 50)
    x, edge_index, y, train, val = script.graph()
    with pytest.raises(InputError, match=r"workers: several processes divide batches.*--batch-size"):
        Team().share(Task(x, edge_index, None, y, train, val, val), 1)
    with pytest.raises(InputError, match="workers: 50 processes for 9 to learn from"):
        Team().share(script.graph_task(), 1)
