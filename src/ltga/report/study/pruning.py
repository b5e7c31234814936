"""Are the pruned edges noise: what pruning is worth to the model, which edges it takes, and known noise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ltga.analysis.results import Frames
from ltga.report.study.analysed import Analysed, Read, Where, pick
from ltga.report.study.draw import Drawing, dataset_title, drawing_name
from ltga.report.study.figures.pruning import Between, pruning_figure
from ltga.report.study.figures.style import style
from ltga.report.study.measures import DATASET, dataset_cell
from ltga.report.study.printed import PRUNED_BY_ALL, PRUNING
from ltga.report.study.runs import Study, label
from ltga.report.study.tables import PERCENT, Cell, Column, Table, Unit, number_cell, text_cell
from ltga.suite import Experiment

NAME = "pruning"
COUNTERFACTUALS: Mapping[str, tuple[str, str]] = {
    "learned": ("learned", "the model as it was trained"),
    "restore": ("all edges, q = 1", "softmax over all edges"),
    "random": (
        "random",
        "softmax after pruning as many edges of each neighbourhood and head at random, self-loops too",
    ),
    "random-neighbours": ("random, loops as learned", "the same, but self-loops are pruned only where learned"),
    "selected": ("softmax on kept", "softmax over the edges that the model keeps"),
    "clamp": ("q ≥ 1", "no heavy tails"),
}
"""Counterfactual -> what it is called and what it means."""

_HEADS = {"one": "a head", "all": "every head"}
_SIDES = ("pruned", "kept")
_PRECISION, _RECALL, _BASE_RATE = ("both", "pruned"), ("both", "planted"), ("planted", "edges")
_TWO, _COUNT, _FINE = Unit(1, 2, spread=True), Unit(1, 0), Unit(100, 2, spread=True)
_METHOD = Column("method", numeric=False)
_PLACE = (DATASET, _METHOD, Column("layer"), Column("pruned by", numeric=False), Column("share pruned (%)"))


@dataclass(frozen=True)
class Place:
    """Where edges are pruned: by ``one`` head or by ``all`` heads of a layer of a method on a dataset."""

    dataset: str
    method: str
    layer: int
    head: str

    @property
    def runs(self) -> Where:
        return {"dataset": self.dataset, "method": self.method}

    @property
    def rows(self) -> Where:
        return {"layer": self.layer, "head": self.head}

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells that name it."""
        layer = number_cell(str(self.layer), self.layer)
        return dataset_cell(self.dataset), text_cell(label(self.method)), layer, text_cell(_HEADS[self.head])


def _places(experiment: Experiment) -> Iterator[Place]:
    layers = range(1, experiment.runs[0].protocol.num_layers + 1)
    for dataset in experiment.datasets:
        for method in experiment.methods:
            yield from (Place(dataset, method, layer, head) for layer in layers for head in _HEADS)


def under(counterfactual: str, column: str = "accuracy") -> Read:
    """Test accuracy, or another column, under a counterfactual."""
    return lambda frames: pick(frames, "counterfactuals", column, {"counterfactual": counterfactual})


def edge_mean(where: Where, side: str, quantity: str) -> Read:
    """Mean of a quantity over ``pruned`` or ``kept`` edges; over layers too, unless one is named."""
    return lambda frames: pick(frames, "edges", side, {**where, "quantity": quantity})


def pruned_share(where: Where) -> Read:
    """Share of the edges, self-loops aside, that are pruned."""

    def read(frames: Frames) -> float:
        # The degree of the target is known for every edge, so its counts are those of all edges.
        pruned, kept = (edge_mean(where, f"{side}_edges", "target_degree")(frames) for side in _SIDES)
        return pruned / (pruned + kept) if pruned + kept > 0 else math.nan

    return read


def planted_ratio(where: Where, part: str, whole: str) -> Read:
    """A ratio of counts: ``both`` over ``pruned`` is precision, over ``planted`` recall."""

    def read(frames: Frames) -> float:
        top, bottom = (pick(frames, "planted", name, where) for name in (part, whole))
        return top / bottom if bottom > 0 else math.nan

    return read


def counterfactual_table(study: Study, experiment: Experiment) -> Table:
    """Accuracy as pruning is undone, randomised or limited at inference, and label agreement, as in the paper."""
    runs = Analysed(study, experiment, NAME)
    rows = []
    for dataset in experiment.datasets:
        for method in experiment.methods:
            at = {"dataset": dataset, "method": method}
            printed: tuple[str | None, ...] = PRUNING.get((dataset, method), (None,) * 6)
            beside = {"learned": printed[1], "restore": printed[2], "random": printed[3]}
            cells = [runs.cell(at, under("learned", "zero_fraction"), PERCENT, printed[0])]
            cells += [runs.cell(at, under(name), PERCENT, beside.get(name)) for name in COUNTERFACTUALS]
            cells += [
                runs.cell(at, edge_mean({"head": "all"}, side, "label_agreement"), PERCENT, reference)
                for side, reference in zip(_SIDES, printed[4:])
            ]
            rows.append((dataset_cell(dataset), text_cell(label(method)), *cells))
    columns = (
        DATASET,
        _METHOD,
        Column("exact zeros (%)"),
        *(Column(f"{name} (%)", note=f"test accuracy: {meaning}") for name, meaning in COUNTERFACTUALS.values()),
        *(
            Column(f"same label: {side} (%)", note="edges that every head prunes, against the others")
            for side in _SIDES
        ),
    )
    note = (
        "From “learned” to “q ≥ 1”: test accuracy of the trained model, weights untouched, changed at inference; mean "
        "± sample s.d. over seeds. Zeros: of all weights, self-loops included. Random pruning (5 draws) takes as many "
        "edges per neighbourhood and head as the model does and is to be compared with softmax on the kept edges: the "
        "two differ only in which edges are gone. Same label: edges that every head prunes against all others, "
        "training labels only, mean over layers; n/a where no such edge has two labels."
    )
    return Table(experiment.name, experiment.title, columns, tuple(rows), note, reference=runs.reference)


def edges_table(study: Study, experiment: Experiment) -> Table:
    """Labels, features and degrees of pruned against kept edges, by layer, per head and unanimously."""
    runs = Analysed(study, experiment, NAME)
    kinds = {
        "agreement pruned": ("same label: pruned (%)", "pruned", "label_agreement", PERCENT),
        "agreement kept": ("same label: kept (%)", "kept", "label_agreement", PERCENT),
        "labelled": ("labelled pruned edges", "pruned_edges", "label_agreement", _COUNT),
        "cosine pruned": ("cosine: pruned", "pruned", "feature_cosine", _TWO),
        "cosine kept": ("cosine: kept", "kept", "feature_cosine", _TWO),
        "degree pruned": ("degree: pruned", "pruned", "target_degree", _TWO),
        "degree kept": ("degree: kept", "kept", "target_degree", _TWO),
    }
    rows = []
    for place in _places(experiment):
        key = place.dataset, place.method, place.layer
        printed = PRUNED_BY_ALL.get(key, {}) if place.head == "all" else {}
        cells = [runs.cell(place.runs, pruned_share(place.rows), PERCENT, printed.get("share"))]
        cells += [
            runs.cell(place.runs, edge_mean(place.rows, side, quantity), unit, printed.get(name))
            for name, (_, side, quantity, unit) in kinds.items()
        ]
        rows.append((*place.cells, *cells))
    note = (
        "Self-loops aside; mean ± sample s.d. over seeds. “A head”: all pairs of edge and head pooled, numbers of "
        "edges per head. Same label: share of edges within one class among those whose ends are both training nodes; "
        "the number of such pruned edges stands beside. Cosine: of the ends' input features; degree: of the attending "
        "node. A seed that prunes nothing has no mean and is left out."
    )
    columns = (*_PLACE, *(Column(head) for head, *_ in kinds.values()))
    name, title = f"{experiment.name}-edges", "Pruned against kept edges"
    return Table(name, title, columns, tuple(rows), note, reference=runs.reference)


def planted_table(study: Study, experiment: Experiment) -> Table:
    """Pruning as a detector of planted edges."""
    runs = Analysed(study, experiment, NAME)
    parts = {("pruned", "edges"): PERCENT, _PRECISION: _FINE, _BASE_RATE: PERCENT, _RECALL: PERCENT}
    rows = [
        (*place.cells, *(runs.cell(place.runs, planted_ratio(place.rows, *p), unit) for p, unit in parts.items()))
        for place in _places(experiment)
        if place.dataset.partition(":")[0] == "digits-noise"
    ]
    columns = (*_PLACE, Column("precision (%)"), Column("base rate (%)"), Column("recall (%)"))
    note = (
        "Where the noise is known. Precision: share of planted edges among the pruned ones; base rate: among all "
        "edges, what blind pruning would score. Recall: share of the planted edges that are pruned. Self-loops aside, "
        "heads pooled for “a head”; mean ± sample s.d. over seeds."
    )
    name, title = f"{experiment.name}-planted", "Planted edges among the pruned"
    return Table(name, title, columns, tuple(rows), note, reference=runs.reference)


def draw_pruning(study: Study, experiment: Experiment) -> list[Drawing]:
    """What pruning is worth and which edges it takes, a figure per dataset."""
    runs = Analysed(study, experiment, NAME)
    drawings = []
    for dataset in experiment.datasets:
        places = [place for place in _places(experiment) if place.dataset == dataset and any(runs.frames(place.runs))]
        if not places:
            continue
        accuracy = {
            place.method: {name: _percent(runs, place, under(key)) for key, (name, _) in COUNTERFACTUALS.items()}
            for place in places
        }
        agreement: dict[str, dict[str, Between]] = {}
        planted: dict[str, dict[str, Between]] = {}
        for place in places:
            name = f"layer {place.layer}, {_HEADS[place.head]}"
            sides = (edge_mean(place.rows, side, "label_agreement") for side in _SIDES)
            agreement.setdefault(place.method, {})[name] = Between(*(_percent(runs, place, read) for read in sides))
            found = (planted_ratio(place.rows, *part) for part in (_PRECISION, _RECALL))
            planted.setdefault(place.method, {})[name] = Between(*(_percent(runs, place, read) for read in found))
        base = _percent(runs, places[0], planted_ratio(places[0].rows, *_BASE_RATE))
        with style():
            figure = pruning_figure(accuracy, agreement, planted if base else {}, base[0] if base else None)
        drawings.append(Drawing(drawing_name(experiment, dataset), _caption(dataset, bool(base)), figure))
    return drawings


def _percent(runs: Analysed, place: Place, read: Read) -> tuple[float, ...]:
    return tuple(100 * value for value in runs.values(place.runs, read))


def _caption(dataset: str, planted: bool) -> str:
    said = f"{dataset_title(dataset)}, mean and s.d. over seeds: accuracy with index or support changed at inference"
    said += "; label agreement (training labels) of pruned and kept edges"
    return said + ("; planted edges found by pruning." if planted else ".")
