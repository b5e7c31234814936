"""The page of runs on whole graphs: some of them drawn whole, as molecules where they are some."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ltga.explanation.graphs import Graphs
from ltga.explanation.molecule import has_rdkit, orders_of, places
from ltga.explanation.page.about import (
    PICKS,
    About,
    Places,
    reliability_section,
    scatter_section,
    score_tile,
)
from ltga.explanation.page.packing import has_one_index_per_head
from ltga.explanation.page.sample import Sample
from ltga.train.record import headline_score
from ltga.train.show import number

MOST_GRAPHS = 160  # drawn in a page; each has to be laid out
LARGEST = 600  # nodes of a graph that is drawn


def about_graphs(explanation: Graphs, most: int) -> About:
    frame, target = explanation.graphs(), explanation.dataset.target
    off = _off(explanation)
    chosen, told = _chosen(explanation, frame, off, most)
    has_row = np.isin(explanation.graph_of, chosen)
    sample = Sample(np.flatnonzero(has_row), has_row, exact=True, whole=bool(has_row.all()))
    symbols = explanation.symbols
    alphabet = [] if symbols is None else sorted(set(symbols.tolist()))
    of_nodes = {"label": np.full(explanation.num_nodes, -1, dtype=np.int16), **_coordinates(explanation, chosen)}
    if symbols is not None:
        of_nodes["label"] = np.searchsorted(np.array(alphabet), symbols.astype(str)).astype(np.int16)

    def sections(place: Places) -> dict[str, Any]:
        rows = _rows(explanation, frame, off, chosen, place)
        found: dict[str, Any] = {
            "graphs": {"rows": rows, "kind": explanation.kind, "all": explanation.num_graphs,
                       "molecules": symbols is not None, "as_molecules": symbols is not None and has_rdkit()},
            "bonds": _bonds(explanation, place),
            "picks": {"ignored": _starts(rows, "ignored_share"), "wrong": _starts(rows, "off")},
        }  # fmt: skip
        return found | _quality(explanation, chosen, rows)

    return About(
        kind="atoms",
        sizes=f"{explanation.num_graphs:,} graphs, {explanation.num_nodes:,} nodes, "
        f"{int((~explanation.self_loop).sum()):,} directed edges, target: "
        + (target.names[0] if explanation.kind == "number" else f"{len(target.names)} {target.kind}"),
        words={"known": "Atom" if alphabet else "", "same": "", "other": "", "unknown": ""},
        names=alphabet,
        scores=_scores(explanation),
        of_nodes=of_nodes,
        wanted=(),
        sections=sections,
        sample=sample,
        sample_words=None
        if len(chosen) == explanation.num_graphs
        else f"{len(chosen):,} of {explanation.num_graphs:,} graphs are drawn here ({told}); the others are left out. "
        "Numbers of the overview are of all graphs.",
    )


def _off(explanation: Graphs) -> np.ndarray:
    """``[G]``: how far off a prediction is, -1 where the target is not known."""
    y, predicted = explanation.dataset.target.y.numpy(), explanation.predicted
    if explanation.kind == "number":
        return np.nan_to_num(np.abs(predicted - y), nan=-1.0)
    if explanation.kind == "classes":
        right = predicted[np.arange(len(y)), np.maximum(y, 0)]
        return np.where(y < 0, -1.0, 1 - right)
    known = ~np.isnan(y)
    off = np.where(known, np.abs(predicted - np.nan_to_num(y)), 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    return np.where(known.any(axis=1), off, -1.0)


def _chosen(explanation: Graphs, frame: pd.DataFrame, off: np.ndarray, most: int) -> tuple[np.ndarray, str]:
    """Graphs to draw, and how they were chosen: the furthest off, those that ignore most, and a draw of the rest."""
    judged = np.flatnonzero((frame["part"] == explanation.part).to_numpy())
    worst = judged[np.argsort(-off[judged], kind="stable")[:PICKS]]
    share = frame["ignored_share"].to_numpy()
    ignoring = np.argsort(-share, kind="stable")[:PICKS]
    ignoring = ignoring[share[ignoring] > 0]
    rng = np.random.default_rng(0)
    drawn = np.concatenate([rng.permutation(judged), rng.permutation(explanation.num_graphs)])
    values = explanation.num_layers * explanation.num_heads * (2 - has_one_index_per_head(explanation))
    edges = frame["edges"].to_numpy() + frame["nodes"].to_numpy()
    cost = 4 / 3 * (edges * (4 * values + 5) + frame["nodes"].to_numpy() * 40) + 400
    sound = (frame["nodes"].to_numpy() <= LARGEST) & (frame["nodes"].to_numpy() > 0)
    taken: list[int] = []
    told, spent = [], 0.0
    part = "validation" if explanation.part == "val" else explanation.part
    reasons = ((f"the furthest off of the {part} part", worst), ("of which most is ignored", ignoring),
               (f"drawn at random, the {part} part first", drawn))  # fmt: skip
    for reason, candidates in reasons:
        before = len(taken)
        for graph in candidates.tolist():
            if len(taken) < MOST_GRAPHS and graph not in taken and sound[graph] and spent + cost[graph] <= most:
                taken.append(graph)
                spent += float(cost[graph])
        if len(taken) > before:
            told.append(f"{len(taken) - before} {reason}")
    return np.array(taken, dtype=int), "; ".join(told)


def _coordinates(explanation: Graphs, chosen: np.ndarray) -> dict[str, np.ndarray]:
    """Where the nodes of the chosen graphs are drawn, in units of a usual edge."""
    at = np.zeros((explanation.num_nodes, 2), dtype=np.float32)
    orders = orders_of(explanation.dataset.name, explanation.joined.get("edge_attr"))
    ends = explanation.joined.edge_index.numpy()
    graph_of_edge = explanation.graph_of[ends[0]]
    for graph in chosen.tolist():
        first, last = explanation.first[graph : graph + 2]
        mine = np.flatnonzero(graph_of_edge == graph)
        symbols = None if explanation.symbols is None else explanation.symbols[first:last].tolist()
        drawn = places(int(last - first), ends[:, mine] - first, symbols, None if orders is None else orders[mine])
        at[first:last] = _scaled(drawn, ends[:, mine] - first)
    return {"x": at[:, 0].copy(), "y": at[:, 1].copy()}


def _scaled(at: np.ndarray, ends: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(at[ends[0]] - at[ends[1]], axis=1)
    lengths = lengths[lengths > 0]
    middle = at - (at.max(axis=0) + at.min(axis=0)) / 2
    return middle / (np.median(lengths) if lengths.size else 1.0)


def _rows(
    explanation: Graphs, frame: pd.DataFrame, off: np.ndarray, chosen: np.ndarray, place: Places
) -> list[dict[str, Any]]:
    first = place(np.minimum(explanation.first[chosen], explanation.num_nodes - 1))
    rows = []
    for graph, at in zip(chosen.tolist(), first.tolist()):
        row = frame.iloc[graph]
        true = next(row[name] for name in ("class", "value", "labels") if name in frame)
        rows.append(
            {
                "graph": graph,
                "name": row["name"],
                "start": at,
                "nodes": int(row["nodes"]),
                "edges": int(row["edges"]),
                "part": row["part"],
                "true": _text(true, explanation.kind),
                "predicted": _text(row["predicted"], explanation.kind),
                "probability": float(row["probability"]) if "probability" in frame else None,
                "off": float(off[graph]) if off[graph] >= 0 else None,
                "wrong": bool(explanation.kind == "classes" and off[graph] >= 0 and true != row["predicted"]),
                "ignored": int(row["ignored"]),
                "ignored_share": float(row["ignored_share"]),
            }
        )
    return rows


def _starts(rows: list[dict[str, Any]], by: str) -> list[int]:
    """The first nodes of graphs, largest value first."""
    return [row["start"] for row in sorted(rows, key=lambda row: -(row[by] or 0)) if row[by]]


def _text(value: Any, kind: str) -> str:
    if kind == "number":
        return "not known" if value != value else number(value)
    return str(value) or ("none" if kind == "labels" else "not known")


def _bonds(explanation: Graphs, place: Places) -> list[list[int]] | None:
    """Bonds that stand for more than one: the places of both ends and how many (4: aromatic)."""
    orders = orders_of(explanation.dataset.name, explanation.joined.get("edge_attr"))
    if orders is None:
        return None
    ends = explanation.joined.edge_index.numpy()
    first, second = place(ends[0]), place(ends[1])
    kept = (first >= 0) & (first < second) & (orders > 1)
    return np.stack([first[kept], second[kept], orders[kept]], axis=1).tolist()  # type: ignore[no-any-return]


def _quality(explanation: Graphs, chosen: np.ndarray, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """How good predictions are, in the form that suits the target."""
    y, judged, part = explanation.dataset.target.y.numpy(), explanation.parts() == explanation.part, explanation.part
    if explanation.kind == "classes":
        confidence, said = explanation.predicted.max(axis=1), explanation.predicted.argmax(axis=1)
        return {"reliability": reliability_section(confidence[judged], said[judged] == y[judged], part, "graphs")}
    if explanation.kind == "labels":
        return {"label_table": {"rows": explanation.labels().to_dict("records"), "part": part, "unit": "graphs"}}
    start = np.full(explanation.num_graphs, -1)
    start[chosen] = [row["start"] for row in rows]
    log, name = bool(explanation.record["target"]["log"]), explanation.dataset.target.names[0]
    graphs = np.flatnonzero(judged)
    unit = f"{part} graphs"
    return {"scatter": scatter_section(y, explanation.predicted, graphs, lambda at: start[at], name, log, unit)}


def _scores(explanation: Graphs) -> list[tuple[str, str, str]]:
    part = explanation.part
    _, metric, _ = headline_score(explanation.record)
    if explanation.kind == "number":
        main = metric if metric in ("mae", "rmse") else "rmse"
        return [score_tile(explanation, part, main, ["mae", "rmse"]), score_tile(explanation, part, "r2")]
    if explanation.kind == "labels":
        return [score_tile(explanation, part, "roc_auc", ["average_precision", "macro_f1"])]
    main = metric if metric in explanation.record["metrics"].get(part, {}) else "accuracy"
    return [score_tile(explanation, part, main, [name for name in ("accuracy", "macro_f1") if name != main])]
