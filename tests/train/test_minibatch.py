"""Mini-batches: exact with all neighbours, bounded in memory, reproducible, and refused where they cannot work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional as F
from torch_geometric.data import Data

from ltga.data import Dataset, NeighborSampler, csbm
from ltga.errors import InputError
from ltga.nn import LTGA, build_model
from ltga.train import MiniBatch, Protocol, fit, load_run
from ltga.train.layerwise import Layerwise
from ltga.train.record import run_id
from oracles.records import without_surroundings

ATTENTION = ["ltga-edge", "ltga-head", "gatv2", "gat", "entmax-1.5", "gatv2-edge-bias"]


def wiggle(model: Any) -> Any:
    """Away from q = 1 and from zero gates, where mistakes would hide."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return model.eval()


def graph(edge_attr: bool = False) -> Data:
    generator = torch.Generator().manual_seed(1)
    edge_index = torch.randint(0, 90, (2, 300), generator=generator)
    edge_index[:, :5] = edge_index[0, :5]  # some self-loops
    data = Data(x=torch.randn(90, 6, generator=generator), edge_index=edge_index)
    if edge_attr:
        data.edge_attr = torch.randn(300, 2, generator=generator)
    return data


@pytest.mark.parametrize("method", ATTENTION)
@pytest.mark.parametrize("edge_attr", [False, True])
@pytest.mark.parametrize("layers", [1, 3])
def test_full_fan_out_and_layers_give_the_whole_graphs_numbers(method: str, edge_attr: bool, layers: int) -> None:
    data = graph(edge_attr)
    settings = {"hidden_channels": 4, "heads": 2, "num_layers": layers, "edge_dim": 2 if edge_attr else None}
    model = wiggle(build_model(method, 6, 3, **settings))
    whole = model(data.x, data.edge_index, data.get("edge_attr"))
    for batch in NeighborSampler(data, [-1] * layers, batch_size=25):
        out = model(batch.x, batch.edge_index, batch.get("edge_attr"))[: batch.batch_size]
        torch.testing.assert_close(out, whole[batch.n_id[: batch.batch_size]], atol=1e-5, rtol=1e-5)
    passes = Layerwise(data.x, data.edge_index, data.get("edge_attr"), block=32)
    torch.testing.assert_close(passes.logits(model), whole, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(
        passes.hidden(model), model.hidden(data.x, data.edge_index, data.get("edge_attr")), atol=1e-5, rtol=1e-5
    )


def test_layerwise_attention_is_the_whole_graphs() -> None:
    data = graph()
    model = wiggle(LTGA(6, 3, hidden_channels=4, heads=2, index="edge"))
    passes = Layerwise(data.x, data.edge_index, block=17)

    def in_order(edges: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        rows = torch.cat([edges.T.double(), values.double()], dim=1)
        return torch.stack(sorted(rows, key=lambda row: row.tolist()))

    for ours, weights, whole in zip(
        passes.attend(model), passes.attention_weights(model), model.attend(data.x, data.edge_index)
    ):
        for name in ("logits", "q", "weights"):
            expected = in_order(whole.edge_index, getattr(whole, name))
            torch.testing.assert_close(in_order(ours.edge_index, getattr(ours, name)), expected, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(in_order(*weights), in_order(whole.edge_index, whole.weights), atol=1e-5, rtol=1e-5)


def test_one_batch_with_all_neighbours_is_full_batch_training(quick: dict) -> None:
    # Without dropout nothing depends on the order of nodes and edges, so the two runs agree epoch by epoch.
    small = csbm(num_nodes=120, seed=3)
    protocol = Protocol(epochs=12, warmup=2, dropout=0.0, prior=0.1, **quick)
    whole = fit(small, "ltga-edge", protocol=protocol)
    batched = fit(small, "ltga-edge", protocol=protocol, minibatch={"batch_size": 120, "fanout": -1, "block": 30})
    for name in ("train_loss", "val_loss", "index_gradient_norm"):
        assert batched.record["trajectory"][name] == pytest.approx(whole.record["trajectory"][name], rel=2e-3, abs=1e-5)
    for ours, theirs in zip(batched.record["trajectory"]["q"], whole.record["trajectory"]["q"]):
        for key in ("mean", "std"):
            torch.testing.assert_close(torch.tensor(ours[key]), torch.tensor(theirs[key]), atol=2e-3, rtol=0)
    for ours, theirs in zip(batched.record["attention"], whole.record["attention"]):
        assert ours["zero_fraction"] == pytest.approx(theirs["zero_fraction"], abs=0.02)


def test_no_layer_ever_sees_the_whole_graph(quick: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = csbm(num_nodes=3000, degree=4, num_splits=1, seed=1)
    seen: list[int] = []
    from ltga.nn.conv import LTGAConv

    original = LTGAConv._inputs

    def watch(self: LTGAConv, x: Any, *rest: Any) -> Any:
        seen.append(len(x[0] if isinstance(x, tuple) else x))
        return original(self, x, *rest)

    monkeypatch.setattr(LTGAConv, "_inputs", watch)
    minibatch = MiniBatch(batch_size=32, fanout=(3, 2), block=100)
    run = fit(dataset, "ltga-edge", protocol=Protocol(epochs=2, **quick), minibatch=minibatch)
    run.predict(dataset, batch_size=100)
    assert max(seen) < 1000 < len(dataset.data.x)


@pytest.mark.parametrize("init", ["paper", "paired"])
def test_it_learns_and_repeats(quick: dict, init: str, tmp_path: Path) -> None:
    dataset = csbm(num_nodes=600, snr=2.0, num_splits=1, seed=2)
    protocol = Protocol(epochs=15, warmup=2, init=init, lr=0.02, **quick)
    minibatch = MiniBatch(batch_size=64, fanout=5)
    run = fit(dataset, "ltga-head", protocol=protocol, minibatch=minibatch)
    majority = F.one_hot(dataset.data.y[dataset.split(0)[2]]).double().mean(0).max()
    assert run.metrics["accuracy"] > majority + 0.15
    again = fit(dataset, "ltga-head", protocol=protocol, minibatch=minibatch)
    assert without_surroundings(run.record) == without_surroundings(again.record)
    assert run.record["config"]["minibatch"] == {"batch_size": 64, "fanout": 5, "block": 4096, "draws": 2}
    restored = load_run(run.save(tmp_path))
    assert restored.predict(dataset).equal(run.predict(dataset, batch_size=50))


def test_ids_of_full_batch_runs_do_not_change(small: Dataset, quick: dict) -> None:
    run = fit(small, "gcn", protocol=Protocol(epochs=1, **quick))
    assert set(run.record["config"]) == {"dataset", "split", "method", "protocol", "seed", "major_version"}
    plain = fit(small, "gatv2", protocol=Protocol(epochs=1, **quick)).record
    batched = fit(small, "gatv2", protocol=Protocol(epochs=1, **quick), minibatch={}).record
    assert plain["id"] != batched["id"] == run_id(batched["config"])


BAD: list[tuple[dict[str, Any], str]] = [
    ({"minibatch": 512}, "minibatch: expected a MiniBatch or a mapping"),
    ({"minibatch": {"size": 3}}, "minibatch: has no setting 'size'; it has batch_size, fanout, block"),
    ({"minibatch": {"batch_size": 0}}, "batch_size: expected a whole number from 1"),
    ({"minibatch": {"fanout": 0}}, "fanout: expected whole numbers from 1"),
    ({"minibatch": {"fanout": [5, 5, 5]}}, "fanout: has 3 numbers, but the network has 2 layers"),
    ({"minibatch": {}, "method": "gcn"}, "minibatch: gcn needs the whole graph at once"),
    ({"minibatch": {}, "method": "linkx"}, "minibatch: linkx needs the whole graph at once"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_settings_are_named(small: Dataset, quick: dict, arguments: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        fit(small, **arguments, protocol={"epochs": 1, **quick})


def test_layerwise_needs_evaluation_mode() -> None:
    data = graph()
    with pytest.raises(InputError, match=r"call model\.eval"):
        Layerwise(data.x, data.edge_index).logits(LTGA(6, 2))
