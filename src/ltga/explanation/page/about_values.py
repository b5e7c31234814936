"""The page of a run on nodes' numbers or labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ltga.explanation.node_values import NodeValues
from ltga.explanation.page.about import PICKS, About, Places, ignoring_most, part_codes, scatter_section, score_tile
from ltga.train.record import headline_score


def about_values(explanation: NodeValues) -> About:
    truth, predicted, target = explanation.truth, explanation.predicted, explanation.dataset.target
    parts, part, number = explanation.parts(), explanation.part, explanation.kind == "number"
    chosen = np.flatnonzero(parts == part)
    if number:
        off = np.abs(predicted - truth)
    else:
        off = np.where(np.isnan(truth), 0, np.abs(predicted - truth)).sum(axis=1)
    worst = chosen[np.argsort(-np.nan_to_num(off[chosen], nan=-1.0), kind="stable")[:PICKS]]
    ignoring = ignoring_most(explanation)

    def sections(places: Places) -> dict[str, Any]:
        picked = {name: places(nodes) for name, nodes in (("ignored", ignoring), ("wrong", worst))}
        found: dict[str, Any] = {"picks": {name: at[at >= 0].tolist() for name, at in picked.items()}}
        if number:
            log = bool(explanation.record["target"]["log"])
            found["scatter"] = scatter_section(truth, predicted, chosen, places, target.names[0], log, f"{part} nodes")
            found["spread"] = float(np.nanstd(truth[parts == "train"]))
        else:
            found["label_table"] = {"rows": explanation.labels().to_dict("records"), "part": part, "unit": "nodes"}
        return found

    return About(
        kind=explanation.kind,
        sizes=f"{explanation.num_nodes:,} nodes, {int((~explanation.self_loop).sum()):,} edges, "
        + (f"target: {target.names[0]}" if number else f"{len(target.names)} labels"),
        words=_words(explanation),
        names=target.names,
        scores=_scores(explanation, part),
        of_nodes={
            "label": truth.astype(np.float32),
            "predicted": predicted.astype(np.float32),
            "part": part_codes(parts),
        },
        wanted=(("that ignore most", ignoring), (f"of the {part} part that are predicted worst", worst)),
        sections=sections,
        node_bytes=0 if number else 8 * len(target.names),
    )


def _words(explanation: NodeValues) -> dict[str, str]:
    if explanation.kind == "number":
        return {
            "known": explanation.dataset.target.names[0],
            "same": "value within one standard deviation of the node's",
            "other": "further away",
            "unknown": "not known",
        }
    return {"known": "Labels", "same": "shares a label with the node", "other": "shares none", "unknown": "not known"}


def _scores(explanation: NodeValues, part: str) -> list[tuple[str, str, str]]:
    _, metric, _ = headline_score(explanation.record)
    if explanation.kind == "number":
        main = metric if metric in ("mae", "rmse", "log_mae") else "mae"
        return [score_tile(explanation, part, main, ["mae", "rmse"]), score_tile(explanation, part, "r2", ["log_r2"])]
    main = metric if metric in explanation.record["metrics"].get(part, {}) else "micro_f1"
    others = [name for name in ("micro_f1", "macro_f1") if name != main]
    return [
        score_tile(explanation, part, main, others),
        score_tile(explanation, part, "average_precision", ["roc_auc"]),
    ]
