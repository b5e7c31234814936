"""The tables about edges, declared: what the edge gate follows, and which edges are pruned."""

from __future__ import annotations

from ltga.study.paper import printed_tables as paper
from ltga.study.report import names
from ltga.study.report.analysis_table import (
    SIDES,
    counterfactual_runs,
    covariate_runs,
    gate_runs,
    planted_edge_runs,
    pruned_edge_runs,
)  # fmt: skip
from ltga.study.report.pivot import DATASET, METHOD, Measure, Pivot, number_key, text_key
from ltga.study.report.tables import COUNT, FINE_PERCENT, PERCENT, THREE_SPREAD, TWO_SPREAD

_LAYER = number_key("layer")
_PLACE = (DATASET, METHOD, _LAYER, text_key("head", names.HEADS.__getitem__, "pruned by"))

GATE = Pivot(
    rows=(DATASET, _LAYER),
    measures=(
        Measure("mean q", "q_mean", THREE_SPREAD),
        Measure("s.d. of q", "q_std", THREE_SPREAD),
        Measure("s.d. of q, one head", "q_std_one", THREE_SPREAD),
        Measure("R², paper's four", "r2_paper", TWO_SPREAD),
        Measure("R², all six", "r2", TWO_SPREAD),
        Measure("R², four, one head", "r2_paper_one", TWO_SPREAD),
        Measure("R², six, one head", "r2_one", TWO_SPREAD),
    ),
    runs=gate_runs,
    printed=paper.GATE,
    note="LTGA-Edge, self-loops aside, mean ± sample s.d. over seeds; s.d. of q: over edges. R² of a linear probe on "
    "neighbourhoods it was not fitted on, so it can be negative: with the paper's four covariates (degrees, "
    "cosines of features and of embeddings), and with logit magnitude and score gap besides. q and covariates are "
    "averaged over heads, except under “one head”: every head by itself, then the mean. n/a: q does not vary over "
    "edges.",
)

COVARIATES = Pivot(
    rows=(DATASET, _LAYER, text_key("covariate", names.COVARIATES.__getitem__)),
    measures=(
        Measure("ρ", "spearman", TWO_SPREAD),
        Measure("importance", "importance", TWO_SPREAD),
        Measure("ρ, one head", "spearman_one", TWO_SPREAD),
        Measure("importance, one head", "importance_one", TWO_SPREAD),
    ),
    runs=covariate_runs,
    printed=paper.COVARIATES,
    suffix="-covariates",
    title="q of an edge against what it could depend on",
    note="Spearman's ρ of q with the covariate over edges, and how much of the probe's R² (all six) is lost when the "
    "covariate is shuffled; covariates that move together share what they explain, so importances can exceed R². "
    "The paper's importances are of a probe without the last two covariates. Averaged over heads, except under "
    "“one head”: every head by itself, then the mean.",
)

COUNTERFACTUALS = Pivot(
    rows=(DATASET, METHOD),
    measures=(
        Measure("exact zeros (%)", "learned_zeros", PERCENT),
        *(
            Measure(f"{name} (%)", key, PERCENT, note=f"test accuracy: {meaning}")
            for key, (name, meaning) in names.COUNTERFACTUALS.items()
        ),
        *(
            Measure(
                f"same label: {side} (%)", f"agreement_{side}", PERCENT,
                note="edges that every head prunes, against the others",
            )
            for side in SIDES
        ),
    ),
    runs=counterfactual_runs,
    printed=paper.PRUNING,
    note="From “learned” to “q ≥ 1”: test accuracy of the trained model, weights untouched, changed at inference; mean "
    "± sample s.d. over seeds. Zeros: of all weights, self-loops included. Random pruning (5 draws) takes as many "
    "edges per neighbourhood and head as the model does and is to be compared with softmax on the kept edges: the "
    "two differ only in which edges are gone. Same label: edges that every head prunes against all others, "
    "training labels only, mean over layers; n/a where no such edge has two labels.",
)  # fmt: skip

PRUNED_EDGES = Pivot(
    rows=_PLACE,
    measures=(
        Measure("share pruned (%)", "share", PERCENT),
        Measure("same label: pruned (%)", "agreement_pruned", PERCENT),
        Measure("same label: kept (%)", "agreement_kept", PERCENT),
        Measure("labelled pruned edges", "labelled", COUNT),
        Measure("cosine: pruned", "cosine_pruned", TWO_SPREAD),
        Measure("cosine: kept", "cosine_kept", TWO_SPREAD),
        Measure("degree: pruned", "degree_pruned", TWO_SPREAD),
        Measure("degree: kept", "degree_kept", TWO_SPREAD),
    ),
    runs=pruned_edge_runs,
    printed=paper.PRUNED_EDGES,
    suffix="-edges",
    title="Pruned against kept edges",
    note="Self-loops aside; mean ± sample s.d. over seeds. “A head”: all pairs of edge and head pooled, numbers of "
    "edges per head. Same label: share of edges within one class among those whose ends are both training nodes; "
    "the number of such pruned edges stands beside. Cosine: of the ends' input features; degree: of the attending "
    "node. A seed that prunes nothing has no mean and is left out.",
)

PLANTED_EDGES = Pivot(
    rows=_PLACE,
    measures=(
        Measure("share pruned (%)", "planted_share", PERCENT),
        Measure("precision (%)", "precision", FINE_PERCENT),
        Measure("base rate (%)", "base_rate", PERCENT),
        Measure("recall (%)", "recall", PERCENT),
    ),
    runs=planted_edge_runs,
    suffix="-planted",
    title="Planted edges among the pruned",
    note="Where the noise is known. Precision: share of planted edges among the pruned ones; base rate: among all "
    "edges, what blind pruning would score. Recall: share of the planted edges that are pruned. Self-loops aside, "
    "heads pooled for “a head”; mean ± sample s.d. over seeds.",
)
