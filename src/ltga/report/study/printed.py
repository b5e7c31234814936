"""What the paper prints outside its accuracy tables, transcribed: learned q, sweeps, depth, pruning, gate, Gini."""

from __future__ import annotations

from collections.abc import Mapping

# Table tab:ltga_q_stats: mean q and share of exact zeros; the paper gives no mean q for LTGA-Edge.
GRANULARITY_Q: Mapping[tuple[str, str], tuple[str | None, str]] = {
    ("ltga-global", "amazon-ratings"): ("1.78", "1.4"),
    ("ltga-layer", "amazon-ratings"): ("1.64", "1.2"),
    ("ltga-head", "amazon-ratings"): ("1.44", "1.2"),
    ("ltga-edge", "amazon-ratings"): (None, "2.7"),
    ("ltga-global", "roman-empire"): ("1.88", "43.6"),
    ("ltga-layer", "roman-empire"): ("1.85", "43.2"),
    ("ltga-head", "roman-empire"): ("1.80", "42.4"),
    ("ltga-edge", "roman-empire"): (None, "41.5"),
    **{
        (method, dataset): (q, "0.0")
        for dataset in ("citeseer", "cora", "cornell", "pubmed", "texas", "wisconsin")
        for method, q in (("ltga-global", "1.00"), ("ltga-layer", "1.00"), ("ltga-head", "1.00"), ("ltga-edge", None))
    },
}

# Table tab:q_analysis, LTGA-Head: homophily, mean q, its s.d., share of exact zeros, effective neighbours.
_Q_ANALYSIS = """
amazon-ratings  0.38  1.436  0.055  0.012  8.32
citeseer        0.74  1.000  0.000  0.000  3.69
cora            0.81  1.000  0.000  0.000  4.72
cornell         0.30  1.000  0.000  0.000  2.41
pubmed          0.80  1.000  0.000  0.000  5.43
roman-empire    0.05  1.804  0.009  0.424  1.89
texas           0.11  1.000  0.000  0.000  2.57
wisconsin       0.21  1.000  0.000  0.000  2.56
"""
Q_ANALYSIS: Mapping[str, tuple[str, ...]] = {
    row.split()[0]: tuple(row.split()[1:]) for row in _Q_ANALYSIS.strip().splitlines()
}

# Tables tab:abl_*, Roman-Empire: setting, value, accuracy, mean q, ECE.
_SWEEPS = """
prior   0.0   72.8±0.4  1.807  0.094
prior   0.01  72.8±0.3  1.754  0.096
prior   0.1   72.4±0.3  1.393  0.093
prior   0.5   71.4±0.3  1.128  0.092
prior   1.0   71.0±0.7  1.070  0.090
warmup  0     72.7±0.5  1.828  0.090
warmup  50    72.5±0.5  1.716  0.095
warmup  100   72.2±0.4  1.574  0.094
warmup  200   70.6±0.5  1.000  0.090
kappa   1.0   72.7±0.5  1.809  0.093
kappa   5.0   71.9±0.5  1.348  0.093
kappa   10.0  71.4±0.6  1.193  0.091
kappa   50.0  70.8±0.4  1.041  0.093
delta   0.25  71.6±0.4  1.223  0.093
delta   0.5   72.0±0.2  1.434  0.093
delta   1.0   72.5±0.6  1.808  0.090
delta   1.5   72.7±0.5  2.118  0.090
delta   2.0   72.2±0.6  2.354  0.085
"""

# Table tab:abl_cross: dataset, setting, value, accuracy, mean q (its Roman-Empire part repeats the tables above).
_CROSS = """
amazon-ratings prior   0.0   42.9±0.3 1.452
amazon-ratings prior   0.01  42.2±0.7 1.040
amazon-ratings prior   0.1   42.4±0.8 1.022
amazon-ratings prior   0.5   42.3±0.8 1.009
amazon-ratings prior   1.0   42.1±0.6 1.005
amazon-ratings warmup  0     43.4±0.3 1.457
amazon-ratings warmup  50    42.6±0.9 1.304
amazon-ratings warmup  100   42.4±0.8 1.273
amazon-ratings warmup  200   41.9±0.6 1.000
amazon-ratings kappa   1.0   43.2±0.6 1.461
amazon-ratings kappa   5.0   42.4±0.8 1.098
amazon-ratings kappa   10.0  42.2±0.8 1.045
amazon-ratings kappa   50.0  42.0±0.6 1.006
"""
_GRID = {"prior": (0.0, 0.01, 0.1, 0.5, 1.0), "warmup": (0, 50, 100, 200), "kappa": (1.0, 5.0, 10.0, 50.0)}
_UNMOVED = {"cora": ("81.1±0.8", "1.014"), "wisconsin": ("47.1±5.5", "1.001")}  # one accuracy; q at T_w = 0, else 1


def _sweeps() -> dict[tuple[str, str, float], tuple[str, ...]]:
    cells: dict[tuple[str, str, float], tuple[str, ...]] = {}
    for row in _SWEEPS.strip().splitlines():
        setting, value, *rest = row.split()
        cells["roman-empire", setting, float(value)] = tuple(rest)
    for row in _CROSS.strip().splitlines():
        dataset, setting, value, *rest = row.split()
        cells[dataset, setting, float(value)] = tuple(rest)
    for dataset, (accuracy, q) in _UNMOVED.items():
        for setting, values in _GRID.items():
            for number in values:
                moved = (setting, number) == ("warmup", 0)
                cells[dataset, setting, float(number)] = (accuracy, q if moved else "1.000")
    return cells


SWEEPS: Mapping[tuple[str, str, float], tuple[str, ...]] = _sweeps()
"""(dataset, setting, value) -> accuracy, mean q and, on Roman-Empire, ECE."""

# Table tab:abl_granularity, Roman-Empire; LTGA-Edge's entry under mean q is something else there and is left out.
GRANULARITY: Mapping[str, tuple[str, str | None, str]] = {
    "ltga-global": ("72.6±0.5", "1.880", "0.093"),
    "ltga-layer": ("72.7±0.6", "1.853", "0.092"),
    "ltga-head": ("72.5±0.2", "1.809", "0.088"),
    "ltga-edge": ("72.9±0.3", None, "0.087"),
}

# Table tab:depth: accuracy, Dirichlet energy, mean average distance for 2, 4 and 8 layers.
_DEPTH = """
cora         gat       80.6±0.5 0.127 0.717  70.8±6.7  0.039 0.636  28.5±9.6  0.006 0.188
cora         gatv2     81.0±0.5 0.108 0.668  65.3±6.1  0.023 0.422  17.1±7.9  0.003 0.092
cora         gcn       80.9±0.5 0.155 0.790  59.4±11.1 0.034 0.487  44.5±18.2 0.030 0.342
cora         ltga-head 81.0±0.4 0.099 0.667  64.0±8.3  0.031 0.525  22.8±12.4 0.007 0.204
roman-empire gat       55.6±0.5 0.336 0.679  46.9±3.5  0.253 0.758  14.0±0.2  0.000 0.005
roman-empire gatv2     71.0±0.8 0.602 0.721  67.4±0.7  0.568 0.847  12.0±1.7  0.000 0.003
roman-empire gcn       42.9±0.4 0.162 0.434  29.9±0.3  0.086 0.646  12.7±5.1  0.003 0.024
roman-empire ltga-head 72.4±0.6 0.634 0.752  68.5±2.1  0.580 0.837  11.2±4.0  0.000 0.010
"""
DEPTH: Mapping[tuple[str, str, int], tuple[str, ...]] = {
    (dataset, method, depth): tuple(cells[3 * k : 3 * k + 3])
    for dataset, method, *cells in map(str.split, _DEPTH.strip().splitlines())
    for k, depth in enumerate((2, 4, 8))
}

# Table tab:pruning: sparsity; accuracy learned, with all edges, after random pruning; label agreement pruned and kept.
_PRUNING = """
amazon-ratings ltga-edge 2.6  42.7±0.8 41.7±0.6 42.7±0.8 n/a     51.0±0.3
amazon-ratings ltga-head 1.0  42.5±0.6 41.8±0.5 42.5±0.6 n/a     51.0±0.3
roman-empire   ltga-edge 41.7 72.3±0.8 64.4±0.5 59.8±0.6 2.4±2.7 43.7±0.2
roman-empire   ltga-head 42.4 72.4±0.8 65.4±0.7 59.4±0.8 5.2±9.0 43.6±0.1
"""
PRUNING: Mapping[tuple[str, str], tuple[str, ...]] = {
    (dataset, method): tuple(cells) for dataset, method, *cells in map(str.split, _PRUNING.strip().splitlines())
}

# Section sec:pruning_results, Roman-Empire, LTGA-Head, edges that every head prunes, by layer; the text gives ranges
# over the layers where it does not say which layer has which number.
PRUNED_BY_ALL: Mapping[tuple[str, str, int], Mapping[str, str]] = {
    ("roman-empire", "ltga-head", layer): {
        "agreement pruned": agreement,
        "agreement kept": "43.5–43.6",
        "labelled": labelled,
        "cosine pruned": "0.17–0.23",
        "cosine kept": "0.41",
        "degree pruned": "5.6–5.7",
        "degree kept": "4.2",
        "share": "0.1–0.3",
    }
    for layer, agreement, labelled in ((1, "9.3", "27"), (2, "1.0", "78"))
}

# Section sec:gate_results: R2 of the probe on the paper's four covariates by layer, then what it says of single ones.
GATE_R2: Mapping[tuple[str, int], str] = {
    ("amazon-ratings", 2): "0.41",
    ("roman-empire", 1): "0.16",
    ("roman-empire", 2): "0.06",
}
GATE_SPEARMAN: Mapping[tuple[str, int, str], str] = {
    ("amazon-ratings", 2, "embedding_cosine"): "−0.62",
    ("roman-empire", 2, "source_degree"): "−0.16",
}
GATE_IMPORTANCE: Mapping[tuple[str, int, str], str] = {("amazon-ratings", 2, "embedding_cosine"): "0.81"}

# Appendix app:attn_concentration, from the text: Gini of the first layer's attention.
_LTGA = ("ltga-global", "ltga-layer", "ltga-head", "ltga-edge")
GINI: Mapping[tuple[str, str], str] = {
    **{("cora", method): "0.34–0.40" for method in ("gat", "gatv2", *_LTGA)},
    **{("cornell", method): "≈0.40" for method in _LTGA[:3]},
    ("cornell", "gat"): "0.44",
    ("cornell", "gatv2"): "0.50",
    ("cornell", "ltga-edge"): "0.34",
    **{("wisconsin", method): "0.47" for method in _LTGA},
    **{("wisconsin", method): "≈0.52–0.54" for method in ("gat", "gatv2")},
}
