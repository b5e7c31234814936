"""What every process of ``test_distributed.py`` does: ``torchrun ... team_script.py FOLDER``; results go to FOLDER."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from ltga.data import csbm
from ltga.nn import LTGA
from ltga.nn.readout import GraphNetwork
from ltga.train.assembly import make_model
from ltga.train.checkpoint import Checkpoint
from ltga.train.crew import StepLoss
from ltga.train.distributed import Idle, Team, join
from ltga.train.fitting import execute, take_part
from ltga.train.loop import EpochInfo, Task
from ltga.train.minibatch import BatchedTask, MiniBatch
from ltga.train.planned import plan_run
from ltga.train.protocol import Protocol
from ltga.train.targets import Classes
from ltga.train.tasks.graph_task import GraphTask
from ltga.train.tasks.packed_graphs import PackedGraphs

CLASS_WEIGHTS = torch.tensor([0.3, 1.7], dtype=torch.float64)
PRIOR = 0.2


def graph() -> Any:
    """43 training nodes: batches of 7 give two processes 4 and 3 of them."""
    data = csbm(num_nodes=120, seed=3).data
    return data.x.double(), data.edge_index, data.y, torch.arange(43), torch.arange(43, 80)


def network() -> LTGA:
    torch.manual_seed(5)
    model = LTGA(graph()[0].shape[1], 2, hidden_channels=4, heads=2, index="head", dropout=0.0).double()
    with torch.no_grad():
        for index in model.layer_indices():
            for parameter in index.parameters():
                parameter.add_(0.3)  # away from softmax, where half of the gradient is zero
    return model


def graphs() -> list[Data]:
    draw = torch.Generator().manual_seed(1)
    found = []
    for _ in range(11):
        nodes = int(torch.randint(3, 7, (), generator=draw))
        edges = torch.randint(nodes, (2, 2 * nodes), generator=draw)
        found.append(Data(x=torch.randn(nodes, 3, generator=draw, dtype=torch.float64), edge_index=edges))
    return found


def graph_network() -> GraphNetwork:
    """With batch normalisation in every block."""
    torch.manual_seed(6)
    shape = {"in_channels": 3, "num_classes": 4, "num_nodes": None, "edge_dim": None}
    settings = Protocol(hidden_channels=4, heads=2, num_layers=2, dropout=0.0, backend="torch", norm="batch")
    return GraphNetwork(make_model("classic-q", settings, shape), 4, 2, 0.0).double()


def graph_task() -> GraphTask:
    y = torch.arange(11) % 2
    parts = torch.arange(9), torch.arange(9, 11), torch.arange(0)
    return GraphTask(PackedGraphs.of(graphs()), y, *parts, Classes(), 2, seed=1, device=torch.device("cpu"))


def gradients(team: Team, model: Any, task: Any, prior: float, of: Any) -> list[dict[str, Any]]:
    """Every step of an epoch: the gradient, the loss, and what this process learned from."""
    losses, found = team.losses(StepLoss(model, prior)), []
    for step in team.steps(team.share(task, 1), 1):
        model.train()
        model.zero_grad()
        loss, value, count = team.weigh(losses(step), step)
        loss.backward()
        mine = [] if isinstance(step, Idle) else of(step)
        gradient = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
        found.append({"gradient": gradient, "value": value, "count": count, "parts": team.gathered(mine)})
    return found


class Died(BaseException):
    pass


def die_at_4(info: EpochInfo) -> None:
    if info.epoch == 4:
        raise Died


def whole_runs(team: Team, folder: Path) -> dict[str, Any]:
    """A run, the same killed and resumed, and whether all processes end with the same weights."""
    protocol = Protocol(
        epochs=7, warmup=2, dropout=0.3, init="paper", hidden_channels=4, heads=2, backend="torch", patience=50
    )
    dataset = csbm(num_nodes=120, seed=3)
    planned = plan_run(dataset, "ltga-edge", 1, 0, protocol, MiniBatch(16, 3), workers=team.size)

    def weights(model: Any) -> list[list[float]]:
        return team.gathered(torch.cat([value.flatten() for value in model.state_dict().values()]).tolist())

    def do(keeper: Checkpoint | None, callbacks: Any = ()) -> tuple[Any, list[list[float]]]:
        if team.rank:
            return None, weights(take_part(planned, callbacks, keeper, team)[0])
        run = execute(planned, callbacks, keeper=keeper, crew=team)
        return run.record, weights(run.model)

    whole, final = do(None)
    try:
        do(Checkpoint(folder, planned.id, 0, crew=team), (die_at_4,))
    except Died:
        torch.rand(3 + team.rank)
    resumed, again = do(Checkpoint(folder, planned.id, 0, crew=team))
    return {"whole": whole, "weights": final, "resumed": resumed, "resumed_weights": again}


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    with join().at_work() as team:
        assert isinstance(team, Team)
        x, edge_index, y, train, val = graph()
        steps = {}
        for name, weights, prior in (("plain", None, 0.0), ("weighed", CLASS_WEIGHTS, PRIOR)):
            model = network()
            whole = Task(x, edge_index, None, y, train, val, val, target=Classes("loss", weights))
            task = BatchedTask.of(whole, MiniBatch(7, -1), model, seed=1)
            steps[name] = gradients(team, model, task, prior, lambda step: _node_numbers(x, step))
        norm = graph_network()
        steps["norm"] = gradients(team, norm, graph_task(), 0.0, lambda step: step.train.tolist())
        runs = whole_runs(team, folder)
        if team.rank == 0:
            running = {key: value for key, value in norm.state_dict().items() if "running" in key}
            torch.save({"steps": steps, "running": running}, folder / "steps.pt")
            (folder / "runs.json").write_text(json.dumps(runs))


def _node_numbers(x: torch.Tensor, step: Any) -> list[int]:
    """Which nodes of the whole graph a step learns from, by their features, which are all different."""
    rows = step.x[step.train]
    return [int((x == row).all(1).nonzero()) for row in rows]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
