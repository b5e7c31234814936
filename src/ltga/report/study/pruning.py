"""Are the pruned edges noise: what pruning is worth to the model, which edges it takes, and known noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ltga.analysis.results import Frames
from ltga.report.study.analysed import Analysed, Read, Where, pick
from ltga.report.study.draw import Drawing, dataset_title, drawing_name
from ltga.report.study.figures.pruning import Between, pruning_figure
from ltga.report.study.figures.style import style
from ltga.report.study.names import COUNTERFACTUALS
from ltga.report.study.runs import Study
from ltga.suite import Experiment

NAME = "pruning"
_HEADS = {"one": "a head", "all": "every head"}
_SIDES = ("pruned", "kept")
_PRECISION, _RECALL, _BASE_RATE = ("both", "pruned"), ("both", "planted"), ("planted", "edges")


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
