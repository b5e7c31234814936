"""The tables that are pivots, declared: sweeps, q, depth, synthetic graphs, calibration, concentration."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

from ltga.study import Experiment
from ltga.study.paper import printed_tables as paper
from ltga.study.report.analysis_table import concentration_runs, smoothing_runs
from ltga.study.report.names import SWEPT, label
from ltga.study.report.pivot import DATASET, METHOD, Measure, Pivot, number_key, text_key
from ltga.study.report.run_table import sweep_runs, synthetic_runs
from ltga.study.report.runs import Study
from ltga.study.report.tables import (
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
