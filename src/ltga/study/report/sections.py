"""Which tables and figures belong to which experiment, and how many of its runs there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ltga.study import Experiment
from ltga.study.experiment import PAIRED
from ltga.study.report import pivots, significance
from ltga.study.report.accuracy import accuracy_table, headline_table
from ltga.study.report.analysis_table import lacking
from ltga.study.report.figures import (
    curves,
    gate_panels,
    lorenz_curves,
    pruning_bars,
    q_at_a_glance,
    rank_diagram,
    reliability_diagrams,
    trajectories,
)
from ltga.study.report.figures.style import Drawing, style
from ltga.study.report.runs import Study, original
from ltga.study.report.tables import Table, imports, imports_among

MakeTable = Callable[[Study, Experiment], Table]
MakeFigures = Callable[[Study, Experiment], list[Drawing]]


@dataclass(frozen=True)
class Parts:
    """What shows an experiment, and the analysis of its runs that this needs."""

    tables: Sequence[MakeTable] = ()
    figures: MakeFigures | None = None
    analysis: str | None = None


@dataclass(frozen=True, eq=False)
class Section:
    """One experiment as a report shows it.

    Attributes:
        done: how many of its runs are finished.
        remarks: what cannot be shown, and why.
        imported: which of its runs, and of those it is compared with, came from an archive, in a sentence.
    """

    experiment: Experiment
    tables: tuple[Table, ...]
    drawings: tuple[Drawing, ...]
    done: int
    remarks: tuple[str, ...]
    imported: str = ""

    @property
    def wanted(self) -> int:
        return len(self.experiment.runs)


_SWEEP = Parts([pivots.SWEEP])
_ACCURACY = Parts([accuracy_table])
_PRUNING = Parts(
    [pivots.COUNTERFACTUALS, pivots.PRUNED_EDGES, pivots.PLANTED_EDGES],
    pruning_bars.draw_pruning,
    "pruning",
)

PARTS: Mapping[str, Parts] = {
    "headline": Parts([headline_table, significance.primary_table]),
    "headline-paired": Parts([headline_table]),
    "critical-difference": Parts([significance.ranks_table], rank_diagram.draw_ranks),
    "pairwise-seeds": Parts([significance.seeds_table]),
    "pairwise": Parts([significance.datasets_table]),
    "composition": _ACCURACY,
    "frozen-q": _ACCURACY,
    "frozen-q-curves": Parts(figures=curves.draw_frozen),
    "entmax": _ACCURACY,
    "edge-controls": _ACCURACY,
    "heterophily": _ACCURACY,
    "granularity": _ACCURACY,
    "granularity-q": Parts([pivots.GRANULARITY_Q]),
    "q-analysis": Parts([pivots.Q_ANALYSIS]),
    "q-overview": Parts(figures=q_at_a_glance.draw_overview),
    "q-trajectories": Parts(figures=trajectories.draw_trajectories),
    "gradient": Parts(figures=trajectories.draw_gradients),
    "pruning": _PRUNING,
    "gate": Parts([pivots.GATE, pivots.COVARIATES], gate_panels.draw_gate, "gate"),
    "edge-q": Parts(figures=gate_panels.draw_edge_q, analysis="edge-q"),
    "attention-concentration": Parts([pivots.CONCENTRATION], lorenz_curves.draw_lorenz, "concentration"),
    "calibration": Parts([pivots.calibration_table], reliability_diagrams.draw_calibration, "calibration"),
    "sweep-lambda": _SWEEP,
    "sweep-warmup": _SWEEP,
    "sweep-kappa": _SWEEP,
    "sweep-delta": _SWEEP,
    "sweep-granularity": Parts([pivots.GRANULARITY]),
    "sweeps": Parts(figures=curves.draw_sweeps),
    "sweep-cross": _SWEEP,
    "depth": Parts([pivots.DEPTH], curves.draw_depth, "smoothing"),
    "synthetic": Parts([pivots.SYNTHETIC], curves.draw_synthetic),
}
"""Experiment -> what shows it; a paired twin is shown as its original, any other experiment by its accuracies."""


def make_section(study: Study, experiment: Experiment) -> Section:
    """The tables and figures of an experiment, from the runs there are."""
    done = len(study.runs(experiment))
    parts = PARTS.get(experiment.name) or PARTS.get(experiment.name.removesuffix(PAIRED)) or _ACCURACY
    imported = imports_among(study.archives(experiment, original(experiment)))
    tables = [make(study, experiment) for make in parts.tables]
    # Of its own runs, or of the experiment's where the cells of a table do not name them.
    tables = [
        replace(table, imported=imports(table.cells) if any(cell.runs for cell in table.cells) else imported)
        for table in tables
    ]
    with style():
        drawings = parts.figures(study, experiment) if parts.figures else []
    remarks = [said] if parts.analysis and (said := lacking(study, experiment, parts.analysis)) else []
    if not done:
        remarks.append("None of its runs is in the store.")
    elif parts.figures and not drawings and not remarks:
        remarks.append("Its figure is not drawn: runs, arrays or the graph it needs are not all here.")
    return Section(experiment, tuple(tables), tuple(drawings), done, tuple(remarks), imported)
