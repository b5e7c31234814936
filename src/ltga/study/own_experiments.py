"""What we ask besides the paper: the recommended protocol, planted noise, Roman-Empire's graph, strong backbones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ltga.study.experiment import Experiment, grid, union
from ltga.study.spec import RunSpec
from ltga.train.protocol import RECOMMENDED, Protocol
from ltga.train.published import published

TEN = range(1, 11)
NOISE = ("digits-noise:planted_per_edge=0", "digits-noise", "digits-noise:planted_per_edge=10",
         "digits-noise:planted_per_edge=20")  # fmt: skip
PLANTED = ("cora:planted_per_edge=5", "pubmed:planted_per_edge=5")
BENCHMARKS = ("texas", "wisconsin", "cornell", "cora", "citeseer", "pubmed", "roman-words")
LEARNED = ("ltga-head", "entmax-head")
RIVALS = ("gatv2", *LEARNED, "gatv2-temperature", "entmax-1.5", "sparsemax", "frozen-q2.0")
# A small network and every epoch, so that accuracy can be read off at any budget of epochs.
SMALL = {**RECOMMENDED, "hidden_channels": 16, "heads": 4, "epochs": 200, "patience": 200, "metric": "accuracy"}
# When does sparse attention pay? One thing at a time: planted noise, size of the neighbourhood, labels to learn from.
WHEN: Mapping[str, float] = {
    **dict.fromkeys(NOISE, 0.2),
    "digits-noise:planted_per_edge=1": 0.2,
    **{f"digits-noise:k={k}": 0.2 for k in (2, 20)},
    **{f"digits-noise:label_share={share},planted_per_edge=10": 0.2 for share in (0.02, 0.05, 0.1)},
    **{f"csbm:{degree}homophily={same},num_classes=5,num_nodes=2000,snr=2": 0.2
       for degree in ("", "degree=20,", "degree=80,") for same in (0.3, 0.7)},  # 5 neighbours if nothing is said
    **{f"csbm:degree=20,homophily={same},label_share=0.05,num_classes=5,num_nodes=2000,snr=2": 0.2
       for same in (0.3, 0.7)},
    **{f"cora:label_share={share}{planted}": 0.4
       for share in (0.05, 0.5) for planted in ("", ",planted_per_edge=1", ",planted_per_edge=5")},
    **{f"pubmed:label_share={share}{planted}": 0.4 for share in (0.01, 0.3) for planted in ("", ",planted_per_edge=5")},
    "roman-words": 0.4, "roman-words:planted_per_edge=5": 0.4, "roman-words:label_share=0.05": 0.4,
}  # fmt: skip
"""Graph -> dropout."""
DEEP = ("minesweeper", "tolokers", "squirrel-filtered", "chameleon-filtered", "actor", "roman-words")
SLOTS = ("softmax", "q", "alpha", "sparsemax", "temperature")
# What a slot learns (q, alpha, temperature) keeps the rate that the recipe was chosen with, whatever the weights' rate
# is: at the .001 or .00003 of some of these networks an index would hardly leave 1.
INDEX_RATE, LEARNING = 0.01, ("q", "alpha", "temperature")
ROMAN = ("gatv2", "ltga-head", "ltga-edge", "gcn", "gat", "ltga-global", "ltga-layer", "gatv2-temperature", "sparsemax",
         "entmax-1.5", "frozen-q2.0", "frozen-q1.5")  # fmt: skip


# What fits into minutes here, on every graph: for the classic stack the settings of minesweeper with half the blocks
# and a seventh of the epochs; for the separated one an eighth of the width and, to make up for it, a higher rate.
_SHORT: dict[str, Any] = {
    "metric": "auto", "init": "paired", "warmup": 0, "index_form": "log", "hidden_channels": 64, "weight_decay": 0.0,
    "dropout": 0.2, "epochs": 300, "patience": 10_000,
}  # fmt: skip
SHORT: Mapping[str, dict[str, Any]] = {
    "classic": {**_SHORT, "heads": 1, "num_layers": 8, "lr": 0.01},
    "separated": {**_SHORT, "heads": 8, "num_layers": 5, "lr": 1e-3, "norm": "layer"},
}


def _slots(graphs: Iterable[str], backbone: str, seeds: Iterable[int], protocol: Protocol) -> tuple[RunSpec, ...]:
    """All slots of a backbone, paired; those with something to learn at the rate of the index."""
    learning = protocol.with_overrides(kappa=protocol.lr / INDEX_RATE)
    return tuple(
        RunSpec(graph, f"{backbone}-{slot}", seed, learning if slot in LEARNING else protocol)
        for graph in graphs
        for seed in seeds
        for slot in SLOTS
    )


OWN = (
    Experiment(
        "roman-words", "Roman-Empire's graph with other word vectors", "own",
        "the paper's central experiment on its own graph, labels and splits; only the word vectors are ours",
        grid(["roman-words"], ROMAN, TEN, init="paired"),
    ),
    Experiment(
        "recipe", "The recommended protocol on the benchmarks", "own",
        "whether a learned index under our protocol is anywhere worse than softmax",
        grid(BENCHMARKS, ("gatv2", *LEARNED, "gatv2-temperature"), TEN, **RECOMMENDED),
    ),
    Experiment(
        "recipe-noise", "The recommended protocol under planted noise", "own",
        "whether a learned index keeps up with the best fixed one at every budget of epochs",
        union(grid(NOISE, RIVALS, TEN, **SMALL, dropout=0.2), grid(PLANTED, RIVALS, TEN, **SMALL)),
    ),
    Experiment(
        "when", "When sparse attention pays", "own",
        "what sparse attention gains over softmax, in accuracy and in epochs, by noise, neighbourhood and labels",
        union(*(grid([name], (*RIVALS, "ltga-edge"), range(1, 4), **SMALL, dropout=rate)
                for name, rate in WHEN.items())),
    ),
    Experiment(
        "backbones-short", "Deep backbones, shortened", "own",
        "what the normaliser adds to two deep networks within minutes of training",
        union(*(_slots(DEEP, backbone, range(1, 4), Protocol(**settings)) for backbone, settings in SHORT.items())),
    ),
    Experiment(
        "backbones", "Strong backbones", "own", "what the normaliser adds to networks that are strong without it",
        union(*(_slots([graph], backbone, TEN, published(backbone, graph))
                for graph in DEEP for backbone in ("classic", "separated"))),
    ),
)  # fmt: skip
"""Our own experiments, with the label "own" where the others name a place in the paper."""
