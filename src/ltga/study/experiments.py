"""The study: one entry per table and figure of the paper.

The paper's Figure 1 is a drawing and needs no runs. Seeds: ten, but five for the sweeps over settings,
depth and the synthetic graphs, as in the paper. Where the paper sweeps a setting through its default, the
run is the headline's own. roman-words and gum-syntax accompany roman-empire wherever that appears.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ltga.data import csbm
from ltga.data.knobs import knob_name
from ltga.errors import InputError, did_you_mean
from ltga.study.experiment import Experiment, grid, paired, sweep, union
from ltga.study.own_experiments import OWN
from ltga.study.spec import RunSpec
from ltga.study.tuned import ENTMAX, FROZEN_Q

TEN, FIVE = range(1, 11), range(1, 6)
HERE = ("texas", "wisconsin", "cornell", "cora", "citeseer", "pubmed")
ROMAN = ("roman-words", "gum-syntax", "roman-empire")  # its graph with other word vectors, a replication, the paper's
ALL = (*HERE, *ROMAN, "amazon-ratings")
WHERE_Q_MOVES = (*ROMAN, "amazon-ratings")

LTGA = ("ltga-global", "ltga-layer", "ltga-head", "ltga-edge")
SOFTMAX = ("gat", "gatv2")
HEADLINE = ("gcn", *SOFTMAX, *LTGA)
CONTROLS = ("gatv2-edge-bias", "gatv2-edge-scale", "gatv2-temperature")
HETEROPHILY = ("h2gcn", "gprgnn", "fagcn", "linkx")
HEAD = ("ltga-head",)
LEARNED = ("ltga-head", "ltga-edge")

PRIOR = (0.0, 0.01, 0.1, 0.5, 1.0)
WARMUP = (0, 50, 100, 200)
KAPPA = (1.0, 5.0, 10.0, 50.0)
DELTA = (0.25, 0.5, 1.0, 1.5, 2.0)
DEPTH = (2, 4, 8)

# The paper gives the ends of the range (0.1 and 2), the two degrees and h = 0.5; the rest is our choice,
# as is a fresh graph per seed, so that the spread covers the draw of the graph.
SYNTHETIC_DEGREE = (5, 20)
SYNTHETIC_SNR = (0.1, 0.25, 0.5, 1.0, 2.0)
SYNTHETIC_METHODS = ("frozen-q0.5", "frozen-q0.8", "frozen-q1.0", "frozen-q1.5", "frozen-q2.0", "ltga-head")


def _synthetic() -> tuple[RunSpec, ...]:
    def name(degree: float, snr: float, seed: int) -> str:
        return knob_name("csbm", csbm, {"degree": degree, "snr": snr, "homophily": 0.5, "seed": seed})

    return tuple(
        RunSpec(name(degree, snr, seed), method, seed)
        for degree in SYNTHETIC_DEGREE
        for snr in SYNTHETIC_SNR
        for seed in FIVE
        for method in SYNTHETIC_METHODS
    )


_PRIOR = sweep(ROMAN, HEAD, FIVE, "prior", PRIOR)
_WARMUP = sweep(ROMAN, HEAD, FIVE, "warmup", WARMUP)
_KAPPA = sweep(ROMAN, HEAD, FIVE, "kappa", KAPPA)
_DELTA = sweep(ROMAN, HEAD, FIVE, "delta", DELTA)


def _cross() -> tuple[RunSpec, ...]:
    """The paper's numbers on Wisconsin come out with all seeds on its first split (see docs/protocol.md)."""
    swept = (("prior", PRIOR), ("warmup", WARMUP), ("kappa", KAPPA))
    places = ((("cora",), None), (("wisconsin",), 0), (WHERE_Q_MOVES, None))
    return union(
        *(sweep(datasets, HEAD, FIVE, name, values, split) for datasets, split in places for name, values in swept)
    )


_PAPER = (
    Experiment(
        "headline", "Accuracy across the homophily spectrum", "tab:main",
        "how softmax attention, convolution and the four granularities of a learned q compare",
        grid(ALL, HEADLINE, TEN),
    ),
    Experiment(
        "critical-difference", "Critical-difference diagram", "fig:cd_diagram",
        "average ranks over datasets and which of them the Nemenyi test can tell apart",
        grid(ALL, HEADLINE, TEN),
    ),
    Experiment(
        "pairwise-seeds", "LTGA-Edge against GAT and GATv2, per dataset", "tab:pairwise_seeds",
        "paired tests over seeds within each dataset",
        grid(ALL, (*SOFTMAX, "ltga-edge"), TEN),
    ),
    Experiment(
        "pairwise", "LTGA-Edge against every other method", "tab:pairwise",
        "paired tests with a dataset as one observation, effect sizes, wins, losses and ties",
        grid(ALL, (*HEADLINE, *CONTROLS, *FROZEN_Q, *ENTMAX, *HETEROPHILY), TEN),
    ),
    Experiment(
        "composition", "Composition with dot-product scoring", "tab:composition",
        "whether a learned q carries over to another scoring function",
        grid(ALL, ("dot-softmax", "dot-ltga-head", "gatv2", "ltga-head"), TEN),
    ),
    Experiment(
        "frozen-q", "Frozen against learned q", "tab:fixed_q",
        "whether learning q does better than holding it, at one value or at the one validation prefers",
        grid(ALL, (*FROZEN_Q, *LEARNED), TEN),
    ),
    Experiment(
        "frozen-q-curves", "Accuracy against a frozen q", "fig:fixed_q",
        "per dataset, test and validation accuracy as q is held at each value, beside the learned q",
        grid(ALL, (*FROZEN_Q, *HEAD), TEN),
    ),
    Experiment(
        "entmax", "Against alpha-entmax and sparsemax", "tab:entmax",
        "the entmax family, fixed and tuned, beside frozen and learned q",
        grid(ALL, (*ENTMAX, "frozen-q1.5", "frozen-q2.0", *LEARNED), TEN),
    ),
    Experiment(
        "edge-controls", "Capacity-matched controls", "tab:edge_controls",
        "whether the edge gate helps through q or merely through its parameters",
        grid(ALL, (*CONTROLS, "gatv2", *LEARNED), TEN),
    ),
    Experiment(
        "heterophily", "Heterophily-specific models", "tab:hetero",
        "how far attention is from models made for heterophily",
        grid(ALL, (*HETEROPHILY, *SOFTMAX, *LEARNED), TEN),
    ),
    Experiment(
        "granularity", "The four granularities", "tab:ltga_acc",
        "accuracy of one q for all, per layer, per head and per edge",
        grid(ALL, LTGA, TEN),
    ),
    Experiment(
        "granularity-q", "Learned q and exact zeros by granularity", "tab:ltga_q_stats",
        "where q leaves 1 and how much attention is exactly zero there",
        grid(ALL, LTGA, TEN),
    ),
    Experiment(
        "q-analysis", "Learned q, sparsity and effective neighbours", "tab:q_analysis",
        "per dataset what LTGA-Head learns",
        grid(ALL, HEAD, TEN),
    ),
    Experiment(
        "q-overview", "The learned index at a glance", "fig:q_overview",
        "q against homophily, exact zeros, and what all sweeps gain over GATv2 by distance from softmax",
        union(grid(ALL, HEAD, TEN), _PRIOR, _WARMUP, _KAPPA, _DELTA, grid(ROMAN, ("gatv2",), FIVE)),
    ),
    Experiment(
        "q-trajectories", "q over the epochs", "fig:q_traj",
        "how q moves during training, per dataset and seed",
        grid(ALL, HEAD, TEN),
    ),
    Experiment(
        "gradient", "Gradient at the index", "fig:alpha_grad",
        "whether q stays at 1 because nothing pulls at it or because the schedule holds it",
        grid(ALL, HEAD, TEN),
    ),
    Experiment(
        "pruning", "Are the pruned edges noise?", "tab:pruning",
        "labels, features and degrees of pruned and kept edges, and what restoring or random pruning costs; "
        "on digits-noise, which is not in the paper, the noise is known",
        grid(("digits-noise", *WHERE_Q_MOVES), LEARNED, TEN),
    ),
    Experiment(
        "gate", "What the edge gate looks at", "fig:gate_analysis",
        "q per edge against degrees, similarities, logit magnitude and score gap",
        grid(("digits-noise", *WHERE_Q_MOVES), ("ltga-edge",), TEN),
    ),
    Experiment(
        "edge-q", "Distribution of q over edges", "fig:edge_q_dist",
        "whether the gate gives different edges different regimes",
        grid(WHERE_Q_MOVES, ("ltga-edge",), TEN),
    ),
    Experiment(
        "attention-concentration", "Concentration of attention", "fig:attn_dist",
        "Lorenz curves and Gini coefficients of the first layer's attention",
        grid(("cora", "cornell", "wisconsin"), (*SOFTMAX, *LTGA), TEN),
    ),
    Experiment(
        "calibration", "Calibration", "fig:calibration",
        "reliability diagrams, ECE, NLL and Brier score of GAT and LTGA-Head",
        grid(ALL, ("gat", *HEAD), TEN),
    ),
    Experiment(
        "sweep-lambda", "Shannon prior", "tab:abl_lambda",
        "accuracy, q and calibration as the prior's weight grows",
        _PRIOR,
    ),
    Experiment(
        "sweep-warmup", "Warm-up", "tab:abl_warmup",
        "accuracy, q and calibration as q is released later",
        _WARMUP,
    ),
    Experiment(
        "sweep-kappa", "Learning-rate ratio", "tab:abl_kappa",
        "accuracy, q and calibration as the index learns more slowly",
        _KAPPA,
    ),
    Experiment(
        "sweep-delta", "Half-width of q's interval", "tab:abl_delta",
        "accuracy, q and calibration as q may go further",
        _DELTA,
    ),
    Experiment(
        "sweep-granularity", "Granularity", "tab:abl_granularity",
        "accuracy, q and calibration of the four granularities where q moves",
        grid(ROMAN, LTGA, FIVE),
    ),
    Experiment(
        "sweeps", "The four sweeps", "fig:ablations",
        "accuracy and q against each setting",
        union(_PRIOR, _WARMUP, _KAPPA, _DELTA),
    ),
    Experiment(
        "sweep-cross", "The sweeps on four datasets", "tab:abl_cross",
        "whether the settings matter where q does not move",
        _cross(),
    ),
    Experiment(
        "depth", "Depth and over-smoothing", "tab:depth",
        "accuracy, Dirichlet energy and mean average distance with 2, 4 and 8 layers",
        sweep(("cora", *ROMAN), ("gcn", *SOFTMAX, *HEAD), FIVE, "num_layers", DEPTH),
    ),
    Experiment(
        "synthetic", "Contextual stochastic block model", "sec:discussion",
        "whether q below 1 ever helps on graphs made to favour pooling over pruning",
        _synthetic(),
    ),
)  # fmt: skip

_TWINS = (
    "headline", "frozen-q", "frozen-q-curves", "entmax", "edge-controls", "composition", "granularity-q", "q-analysis",
    "q-overview", "q-trajectories", "gradient", "pruning", "gate", "edge-q", "calibration", "sweep-lambda",
    "sweep-warmup", "sweep-kappa", "sweep-delta", "sweep-granularity", "sweeps",
)  # fmt: skip


def _with_twins() -> dict[str, Experiment]:
    found: dict[str, Experiment] = {}
    for experiment in _PAPER:
        found[experiment.name] = experiment
        if experiment.name in _TWINS:
            found[f"{experiment.name}-paired"] = paired(experiment)
    return found | {experiment.name: experiment for experiment in OWN}


EXPERIMENTS: Mapping[str, Experiment] = _with_twins()
"""All experiments by name, in the order of their value."""


def find_experiments(names: Sequence[str] = ()) -> list[Experiment]:
    """The experiments of these names; all of them if none is named.

    >>> find_experiments(["headlin"])
    Traceback (most recent call last):
    ...
    ltga.errors.InputError: experiment: none is called 'headlin'; did you mean 'headline'?
    """
    found = []
    for name in names or EXPERIMENTS:
        plain = name.strip().lower().replace("_", "-")
        if plain not in EXPERIMENTS:
            hint = did_you_mean(plain, EXPERIMENTS, f"there are {', '.join(EXPERIMENTS)}")
            raise InputError(f"experiment: none is called {name!r}; {hint}")
        found.append(EXPERIMENTS[plain])
    return found


def runs_of(experiments: Iterable[Experiment]) -> tuple[RunSpec, ...]:
    """The runs of several experiments, shared ones once."""
    return union(*(experiment.runs for experiment in experiments))
