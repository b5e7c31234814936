"""The page of link prediction: pairs of nodes, and what both ends attend to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ltga.explanation.page.about import About, Places, ignoring_most, score_tile
from ltga.explanation.pairs_of_nodes import Links, TypedLinks

EACH = 20  # pairs of each group in the table
BINS = 20


def about_links(explanation: Links) -> About:
    frame, typed = explanation.candidates(), isinstance(explanation, TypedLinks)
    chosen = _chosen(frame)
    ignoring, ends = ignoring_most(explanation), chosen[["first", "second"]].to_numpy().ravel()
    scores = [
        score_tile(explanation, "test", "mrr", ["hits_at_1", "hits_at_10"]),
        *([] if typed else [score_tile(explanation, "test", "roc_auc", ["average_precision"])]),
    ]

    def sections(places: Places) -> dict[str, Any]:
        picked = places(ignoring)
        return {
            "links": {
                "rows": _rows(explanation, chosen, places),
                "histogram": _histogram(frame),
                "typed": typed,
                "against": _against(explanation),
                "edges": int(frame["edge"].sum()),
            },
            "picks": {"ignored": picked[picked >= 0].tolist(), "wrong": []},
        }

    apart = int((~explanation.self_loop).sum())
    kinds = f", {len(explanation.relations) // 2} relations" if isinstance(explanation, TypedLinks) else ""
    return About(
        kind="nothing",
        sizes=f"{explanation.num_nodes:,} nodes, {apart:,} directed training edges{kinds}",
        words={"known": "Common", "same": "neighbour of both ends", "other": "neighbour of one end", "unknown": ""},
        names=(),
        scores=scores,
        of_nodes={},
        wanted=(("ends of the pairs below", ends), ("that ignore most", ignoring)),
        sections=sections,
    )


def _chosen(frame: pd.DataFrame) -> pd.DataFrame:
    """Held-out edges ranked last and first, and the pairs without an edge that look most like one."""
    edges = frame[frame["edge"]].assign(group="edge, ranked last")
    last = edges.sort_values(["rank", "score"], ascending=[False, True], kind="stable").head(EACH)
    first = edges.drop(last.index).sort_values(["rank", "score"], ascending=[True, False], kind="stable")
    others = frame[~frame["edge"]].sort_values("score", ascending=False, kind="stable")
    others = others.drop_duplicates(["first", "second"]).assign(group="no edge, looks like one")
    return pd.concat([last, first.head(EACH).assign(group="edge, ranked first"), others.head(EACH)])


def _rows(explanation: Links, chosen: pd.DataFrame, places: Places) -> list[dict[str, Any]]:
    at = {end: places(chosen[end]) for end in ("first", "second", *(["best"] if "best" in chosen else []))}
    rows = []
    for number, row in enumerate(chosen.to_dict("records")):
        rows.append(
            {
                "group": row["group"],
                "edge": bool(row["edge"]),
                "first": int(at["first"][number]),
                "second": int(at["second"][number]),
                "names": [_name(explanation, int(row[end])) for end in ("first", "second")],
                "relation": row.get("relation"),
                "best": _name(explanation, int(row["best"])) if "best" in row else None,
                "probability": row["probability"],
                "rank": row["rank"],
                "among": row["among"],
                "common": row["common"],
                "degrees": [row["first_degree"], row["second_degree"]],
            }
        )
    return rows


def _histogram(frame: pd.DataFrame) -> dict[str, Any]:
    """Shares by probability (edges beside pairs without one), or by rank where only edges are judged."""
    if (~frame["edge"]).any():
        bounds = np.linspace(0, 1, BINS + 1)
        groups = (("held-out edges", frame["edge"]), ("pairs without an edge", ~frame["edge"]))
        counts = {name: np.histogram(frame.loc[rows, "probability"], bounds)[0] for name, rows in groups}
        return {"by": "probability", "bounds": bounds.tolist(), "shares": _shares(counts)}
    bounds = np.array([1, 2, 4, 11, 31, 101, np.inf])
    counts = {"questions": np.histogram(frame["rank"], bounds)[0]}
    labels = ["1", "2–3", "4–10", "11–30", "31–100", "> 100"]
    return {"by": "rank", "labels": labels, "shares": _shares(counts)}


def _shares(counts: dict[str, np.ndarray]) -> dict[str, list[float]]:
    return {name: (values / max(values.sum(), 1)).tolist() for name, values in counts.items()}


def _against(explanation: Links) -> str:
    if isinstance(explanation, TypedLinks):
        return "all nodes that are no other right answer"
    options = explanation.record["config"]["options"]
    return f"{options['each']} {options['negatives']} pairs without an edge"


def _name(explanation: Links, node: int) -> str:
    names = explanation.node_names if explanation.node_names is not None else explanation.node_ids
    return str(node) if names is None else str(names[node])
