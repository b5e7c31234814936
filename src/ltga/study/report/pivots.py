"""The tables that are pivots, declared: sweeps, q, depth, synthetic graphs, calibration, attention, gate, pruning."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

from ltga.study import Experiment
from ltga.study.paper import printed_tables as paper
from ltga.study.report import names
from ltga.study.report.analysis_table import (
    SIDES,
    concentration_runs,
    counterfactual_runs,
    covariate_runs,
    gate_runs,
    planted_edge_runs,
    pruned_edge_runs,
    smoothing_runs,
)
from ltga.study.report.names import SWEPT, label
from ltga.study.report.pivot import DATASET, METHOD, Measure, Pivot, number_key, text_key
from ltga.study.report.run_table import sweep_runs, synthetic_runs
from ltga.study.report.runs import Study
from ltga.study.report.tables import (
    COUNT,
    FINE_PERCENT,
    PERCENT,
    PLAIN_PERCENT,
    THREE,
    THREE_SPREAD,
    TWO,
    TWO_SPREAD,
    Cell,
    Table,
    mark_best,
)  # fmt: skip

_ACCURACY = Measure("accuracy (%)", "accuracy", PERCENT)
_OF_A_RUN = (_ACCURACY, Measure("mean q", "q", THREE), Measure("ECE", "ece", THREE))

SWEEP = Pivot(
    rows=(DATASET, text_key("setting", SWEPT.__getitem__), number_key("value")),
    measures=_OF_A_RUN,
    runs=sweep_runs,
    printed=paper.SWEEPS,
    note="LTGA-Head, one setting changed at a time; mean q is that of the model that was kept.",
)

GRANULARITY = Pivot(
    rows=(DATASET, METHOD),
    measures=_OF_A_RUN,
    printed=paper.GRANULARITY,
    note="Mean q of LTGA-Edge is over edges, heads and layers; the paper prints another quantity in its place.",
)

GRANULARITY_Q = Pivot(
    rows=(DATASET,),
    across="method",
    across_head=lambda method, head: f"{label(method)} {head}",
    measures=(Measure("q", "q", TWO), Measure("zeros (%)", "zeros", PLAIN_PERCENT)),
    printed=paper.GRANULARITY_Q,
    note="Mean over seeds, heads and layers (for LTGA-Edge over edges too, where the paper gives none) of the model "
    "that was kept; zeros: share of attention weights that are exactly 0.",
)

Q_ANALYSIS = Pivot(
    rows=(DATASET,),
    measures=(
        Measure("homophily", "homophily", TWO, shows="fact"),
        Measure("mean q", "q", THREE),
        Measure("s.d. of q", "q", THREE, shows="spread", printed="q_spread"),
        Measure("exact zeros", "zeros", THREE),
        Measure("effective neighbours", "neighbours", TWO),
    ),
    printed=paper.Q_ANALYSIS,
    note="LTGA-Head; means over seeds, layers and heads; s.d. of the mean q over seeds. The paper's homophily of "
    "Cornell is that of the mislabelled copy of the dataset; its accuracies are on the corrected one.",
)

DEPTH = Pivot(
    rows=(DATASET, METHOD),
    across="num_layers",
    across_head=lambda depth, head: f"{depth} layers: {head}",
    measures=(
        _ACCURACY,
        Measure("energy", "dirichlet_energy", THREE_SPREAD),
        Measure("MAD", "mean_average_distance", THREE_SPREAD),
    ),
    runs=smoothing_runs,
    printed=paper.DEPTH,
    note="Mean ± sample s.d. over seeds. Energy: mean of 1 − cosine over edges; MAD: over all pairs of nodes; both of "
    "the last hidden layer, higher means less collapse. The paper gives no formula for its normalised energy: this "
    "one was chosen because it came nearest to its two-layer cells on Cora, so agreement there confirms nothing.",
)

SYNTHETIC = Pivot(
    rows=(number_key("degree"), METHOD),
    across="snr",
    across_head=lambda snr, _: f"signal {snr:g}",
    measures=(_ACCURACY,),
    runs=synthetic_runs,
    note="Test accuracy in percent; homophily 0.5, a fresh graph per seed. The paper gives no table of this.",
)

CONCENTRATION = Pivot(
    rows=(DATASET, METHOD),
    measures=(
        Measure("Gini", "gini", TWO_SPREAD),
        Measure("Gini if spread evenly", "gini_even", TWO_SPREAD),
        Measure("Gini within neighbourhoods", "gini_within", TWO_SPREAD),
        Measure("top weight", "first_top", THREE),
        Measure("entropy", "first_entropy", THREE),
        Measure("effective neighbours", "first_neighbours", TWO),
        Measure("exact zeros (%)", "first_zeros", PLAIN_PERCENT),
    ),
    runs=concentration_runs,
    printed=paper.CONCENTRATION,
    note="First layer, self-loops included. Gini: over all weights of the graph, heads pooled, mean ± sample s.d. over "
    "seeds; beside it what the paper's text says, which does not say of how many seeds. Neighbourhoods differ in "
    "size, so that even attention has a Gini too; within neighbourhoods this is taken out. The rest: means over "
    "nodes, heads and seeds.",
)

_CALIBRATION = Pivot(
    rows=(DATASET, METHOD),
    measures=tuple(Measure(name, name.lower(), THREE_SPREAD) for name in ("ECE", "NLL", "Brier")),
    note="Test nodes, mean ± sample s.d. over seeds, lower is better; bold: the better one on that dataset.",
)


def calibration_table(study: Study, experiment: Experiment) -> Table:
    """ECE, NLL and Brier score on the test nodes, the lowest of each dataset marked."""
    table = _CALIBRATION(study, experiment)
    rows: list[tuple[Cell, ...]] = []
    for _, same in groupby(table.rows, key=lambda row: row[0].text):
        rows += mark_best(list(same), first=len(_CALIBRATION.rows), lowest=True)
    return replace(table, rows=tuple(rows))


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
