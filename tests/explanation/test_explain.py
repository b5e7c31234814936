"""Explanations against loops over edges, PyG's own layers, and the model without the ignored edges."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch
from torch_geometric.data import Data

import ltga
from ltga.data import Dataset
from ltga.explanation.node_classes import UNLABELLED, NodeClasses
from ltga.train import Run, fit
from oracles import attention as oracle

SMALL = {"epochs": 1, "hidden_channels": 3, "heads": 2, "index_form": "tanh"}
CLASSES = ("plain", "<b>&\x01", "third")


def make_graph() -> Dataset:
    """14 nodes with spread-out features, self-loops of its own, an edge given twice, an unlabelled node."""
    generator = torch.Generator().manual_seed(5)
    edge_index = torch.randint(0, 13, (2, 50), generator=generator)  # node 13 has no edge
    edge_index = torch.cat([torch.tensor([[4, 2, 2], [4, 7, 7]]), edge_index], dim=1)
    y = torch.arange(14) % 3
    y[12] = -1
    data = Data(x=4 * torch.randn(14, 5, generator=generator), y=y, edge_index=edge_index)
    data.planted_edge = torch.rand(53, generator=generator) < 0.4
    masks = torch.zeros(3, 14, dtype=torch.bool)
    masks[0, :6] = masks[1, 6:9] = masks[2, 9:12] = True
    return Dataset("mine", data, *masks, class_names=CLASSES)


@pytest.fixture(scope="module")
def graph() -> Dataset:
    return make_graph()


def shaken(graph: Dataset, method: str, init: str = "paired") -> Run:
    """A run whose index has moved and whose logits have spread, as they would after long training."""
    run = fit(graph, method, protocol={**SMALL, "init": init})
    with torch.no_grad():
        for name, parameter in run.model.named_parameters():
            if name.endswith(".att"):
                parameter.mul_(4)
            if ".index." in name:
                noise = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1))
                parameter.add_(0.05 * noise + (0.9 if name.endswith(("raw", "out.bias")) else 0.0))  # q well above 1
    return run


@pytest.fixture(scope="module")
def edge_run(graph: Dataset) -> Run:
    return shaken(graph, "ltga-edge")


@pytest.fixture(scope="module")
def inside(graph: Dataset, edge_run: Run) -> NodeClasses:
    return ltga.explain(edge_run, graph)


METHODS = [
    ("ltga-edge", "paired", {"index": "edge"}),
    ("ltga-head", "paper", {"index": "head"}),
    ("frozen-q2.0", "paper", {"index": 2.0}),
    ("sparsemax", "paired", {"index": 2.0, "normalizer": "entmax"}),
    ("gatv2", "paired", {"index": 1.0}),
    ("gatv2", "paper", {"index": 1.0}),
    ("gat", "paper", {"index": 1.0, "scoring": "gat"}),
]


@pytest.mark.parametrize(("method", "init", "form"), METHODS, ids=[f"{m}-{i}" for m, i, _ in METHODS])
def test_every_number_equals_the_loops(graph: Dataset, method: str, init: str, form: dict) -> None:
    run = shaken(graph, method, init)
    found = ltga.explain(run, graph)
    edges = oracle.with_self_loops(graph.data.edge_index.t().tolist(), 14)
    assert found.edge_index.T.tolist() == [list(edge) for edge in edges]
    x = graph.data.x.double().numpy()
    for layer in range(2):
        parameters = layer_parameters(run, layer)
        expected = oracle.layer(parameters, x, x, edges, heads=2, concat=layer == 0, **form)
        np.testing.assert_allclose(found.logits[layer], expected.logits, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(found.q[layer], expected.q, atol=1e-5)
        np.testing.assert_allclose(found.weights[layer], expected.weights, atol=2e-4)
        clear = (expected.weights == 0) | (expected.weights > 1e-3)  # not at the brink
        np.testing.assert_array_equal(found.ignored[layer][clear], (expected.weights == 0)[clear])
        x = np.where(expected.out > 0, expected.out, np.expm1(np.minimum(expected.out, 0)))
    if method in ("frozen-q2.0", "sparsemax", "ltga-edge"):
        assert found.ignored.any()


def layer_parameters(run: Run, layer: int) -> dict[str, np.ndarray]:
    prefix = f"convs.{layer}."
    state = {name: value.double().numpy() for name, value in run.model.state_dict().items()}
    own = {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
    if "lin.weight" in own:  # PyG's GATConv
        own |= {"lin_l.weight": own["lin.weight"], "lin_r.weight": own["lin.weight"]}
        own |= {"att": own["att_src"], "att_target": own["att_dst"]}
    return own


@pytest.mark.parametrize("method", ["gat", "gatv2"])
def test_pygs_networks_give_the_weights_pyg_gives(graph: Dataset, method: str) -> None:
    run = fit(graph, method, protocol=SMALL)
    found = ltga.explain(run, graph)
    with torch.no_grad():
        _, (edge_index, weights) = run.model.convs[0](
            graph.data.x, graph.data.edge_index, return_attention_weights=True
        )
    np.testing.assert_array_equal(found.edge_index, edge_index.numpy())
    np.testing.assert_allclose(found.weights[0], weights.numpy(), atol=1e-6)


def test_a_stored_run_explains_like_the_live_one(graph: Dataset, edge_run: Run, inside: NodeClasses, tmp_path: Path):
    again = ltga.explain(edge_run.save(tmp_path), graph)
    for name in ("edge_index", "position", "logits", "q", "weights"):
        np.testing.assert_array_equal(getattr(again, name), getattr(inside, name))


def test_positions_lead_back_to_the_callers_edges(graph: Dataset, inside: NodeClasses) -> None:
    own = inside.position >= 0
    np.testing.assert_array_equal(graph.data.edge_index.numpy()[:, inside.position[own]], inside.edge_index[:, own])
    assert (np.diff(inside.position[own]) > 0).all()
    assert (inside.position[inside.self_loop] == -1).all() and inside.self_loop.sum() == 14
    assert not inside.planted[~own].any()
    np.testing.assert_array_equal(inside.planted[own], graph.data.planted_edge.numpy()[inside.position[own]])


def test_edges_table(graph: Dataset, inside: NodeClasses) -> None:
    frame = inside.edges()
    for k, row in enumerate(frame.to_dict("records")):
        zeros = [[float(w) == 0 for w in inside.weights[layer, k]] for layer in range(2)]
        assert row["ignored_by_layer1"] == sum(zeros[0]) and row["ignored_by_layer2"] == sum(zeros[1])
        assert row["ignored_by"] == sum(map(sum, zeros))
        assert row["ignored"] == all(map(all, zeros))
        label = int(graph.data.y[row["source"]])
        assert row["source_class"] == (CLASSES[label] if label >= 0 else UNLABELLED)
    assert 0 < frame["ignored"].sum() < len(frame)  # the test sees both kinds


def test_coefficients_table(inside: NodeClasses) -> None:
    frame = inside.coefficients()
    assert len(frame) == inside.weights.size
    for row in frame.sample(60, random_state=0).to_dict("records"):
        same = ((row["source"], row["target"]) == inside.edge_index.T).all(axis=1) & (
            inside.position == row["position"]
        )
        (k,) = np.flatnonzero(same)
        at = (row["layer"] - 1, k, row["head"] - 1)
        assert (row["logit"], row["q"], row["weight"]) == (inside.logits[at], inside.q[at], inside.weights[at])
        assert row["ignored"] == (row["weight"] == 0) and row["self_loop"] == (row["source"] == row["target"])


def test_nodes_table(inside: NodeClasses) -> None:
    frame = inside.nodes().set_index("node")
    target = inside.edge_index[1].tolist()
    for node in range(14):
        mine = [k for k, i in enumerate(target) if i == node]
        assert frame.loc[node, "neighbors"] == len(mine)
        for layer in range(2):
            effective, exponential = [], []
            for head in range(2):
                w = [float(inside.weights[layer, k, head]) for k in mine]
                effective.append(1 / sum(v * v for v in w))
                exponential.append(math.exp(-sum(v * math.log(v) for v in w if v > 0)))
            row = frame.loc[node]
            assert row[f"effective_neighbors_layer{layer + 1}"] == pytest.approx(sum(effective) / 2)
            assert row[f"exp_entropy_layer{layer + 1}"] == pytest.approx(sum(exponential) / 2)
    assert frame.loc[13, "effective_neighbors_layer1"] == 1  # only itself
    assert frame["part"].tolist() == ["train"] * 6 + ["val"] * 3 + ["test"] * 3 + ["", ""]


def test_heads_table_agrees_with_the_record(graph: Dataset) -> None:
    run = fit(graph, "frozen-q2.0", protocol=SMALL)
    frame = ltga.explain(run, graph).heads()
    for row in frame.to_dict("records"):
        stored = run.record["attention"][row["layer"] - 1]
        for name in ("zero_fraction", "effective_neighbors"):
            assert row[name] == pytest.approx(stored[name][row["head"] - 1], rel=1e-6)
        assert row["q"] == 2


def test_class_pairs(inside: NodeClasses) -> None:
    counted: dict[tuple[str, str], list] = {}
    names = [*CLASSES, UNLABELLED]
    y = inside.dataset.data.y.tolist()
    for k, (j, i) in enumerate(inside.edge_index.T.tolist()):
        if i != j:
            counted.setdefault((names[y[i]], names[y[j]]), []).append((inside.weights[:, k] == 0).reshape(-1).tolist())
    frame = inside.class_pairs()
    assert len(frame) == len(counted)
    for row in frame.to_dict("records"):
        zeros = counted[row["target_class"], row["source_class"]]
        assert row["edges"] == len(zeros)
        assert row["ignored"] == pytest.approx(sum(map(sum, zeros)) / (4 * len(zeros)))
        assert row["unanimous"] == pytest.approx(sum(map(all, zeros)) / len(zeros))
    assert frame["ignored"].is_monotonic_decreasing


def test_the_model_predicts_the_same_without_the_ignored_edges(graph: Dataset, edge_run: Run, inside: NodeClasses):
    data = inside.pruned()
    assert data.num_edges < graph.data.num_edges
    assert data.planted_edge.shape == (data.num_edges,)
    with torch.no_grad():
        before = edge_run.model(graph.data.x, graph.data.edge_index)
        after = edge_run.model(data.x, data.edge_index)
    torch.testing.assert_close(after, before, rtol=1e-5, atol=1e-5)
    assert graph.data.num_edges == 53  # the graph itself is left alone


def test_pruning_by_share(graph: Dataset, inside: NodeClasses) -> None:
    data = inside.pruned(0.5)
    kept = []
    for p, (j, i) in enumerate(graph.data.edge_index.t().tolist()):
        k = int(np.flatnonzero(inside.position == p)[0]) if i != j else inside.weights.shape[1] - 14 + i
        if (inside.weights[:, k] == 0).mean() < 0.5:
            kept.append([j, i])
    assert data.edge_index.t().tolist() == kept
    assert len(kept) < inside.pruned().num_edges
    for share in (0, 1.5, "half", True):
        with pytest.raises(ltga.LTGAError, match="share"):
            inside.pruned(share)  # type: ignore[arg-type]


def test_parquet_holds_everything(inside: NodeClasses, tmp_path: Path) -> None:
    table = pq.read_table(inside.to_parquet(tmp_path / "edges.parquet"))
    pd.testing.assert_frame_equal(table.to_pandas(), inside.coefficients())


def test_graphml_holds_the_graph(inside: NodeClasses, tmp_path: Path) -> None:
    graph = nx.read_graphml(inside.to_graphml(tmp_path / "graph.graphml"), node_type=int, force_multigraph=True)
    assert graph.number_of_nodes() == 14 and graph.number_of_edges() == inside.weights.shape[1]
    assert graph.number_of_edges(2, 7) == int(((inside.edge_index.T == (2, 7)).all(axis=1)).sum()) >= 2
    for node in (0, 1, 12):
        k = int(np.flatnonzero(inside.self_loop & (inside.edge_index[0] == node))[0])
        (loop,) = graph.get_edge_data(node, node).values()
        assert loop["weight_layer2_head1"] == pytest.approx(float(inside.weights[1, k, 0]))
        assert loop["q_layer2_head1"] == pytest.approx(float(inside.q[1, k, 0]))
        assert loop["self_loop"] is True
    assert graph.nodes[1]["class"] == "<b>&�"  # XML cannot hold the control character


def test_a_heads_q_is_on_the_graph_not_on_every_edge(graph: Dataset, tmp_path: Path) -> None:
    inside = ltga.explain(shaken(graph, "ltga-head"), graph)
    found = nx.read_graphml(inside.to_graphml(tmp_path / "graph.graphml"))
    assert found.graph["q_layer1_head2"] == pytest.approx(float(inside.q[0, 0, 1]))
    assert not any("q_layer1_head2" in attributes for _, _, attributes in found.edges(data=True))


def test_neighbourhood(inside: NodeClasses) -> None:
    frame = inside.neighbourhood(7)
    assert (frame["target"] == 7).all() and len(frame) == int((inside.edge_index[1] == 7).sum())
    assert frame["mean_weight_layer2"].is_monotonic_decreasing
    pd.testing.assert_frame_equal(inside.neighbourhood("7"), frame)
    for node in (14, -1, "14", "seven", True):
        with pytest.raises(ltga.LTGAError, match="node: "):
            inside.neighbourhood(node)  # type: ignore[arg-type]


def test_errors_name_the_culprit(graph: Dataset, edge_run: Run, tmp_path: Path) -> None:
    with pytest.raises(ltga.LTGAError, match=r"gcn has no attention"):
        ltga.explain(fit(graph, "gcn", protocol=SMALL), graph)
    with pytest.raises(ltga.LTGAError, match=r"dataset: .*'mine'.*pass the data"):
        ltga.explain(edge_run)
    other = make_graph()
    other.data.x[0, 0] += 1
    with pytest.raises(ltga.LTGAError, match=r"dataset: .*not the graph of this run"):
        ltga.explain(edge_run, other)
    with pytest.raises(ltga.LTGAError, match="run: expected"):
        ltga.explain(replace(edge_run).record)  # type: ignore[arg-type]
    with pytest.raises(ltga.LTGAError, match="no such record"):
        ltga.explain(tmp_path / "nothing.json")
