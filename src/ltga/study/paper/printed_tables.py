"""The paper's tables as a report lays them beside runs: a row per place, columns for what is printed there, as text."""

from __future__ import annotations

import io
from itertools import product

import pandas as pd

from ltga.study.paper.check import CELLS

_NUMBERS = ("value", "layer", "num_layers")  # keys that are numbers


def _read(text: str) -> pd.DataFrame:
    """A table whose first line names the columns; ``--`` is nothing."""
    frame = pd.read_csv(io.StringIO(text), sep=r"\s+", dtype=str, na_values=["--"], keep_default_na=False)
    return frame.astype({name: float for name in _NUMBERS if name in frame})


ACCURACY = pd.DataFrame(
    [{"method": method, "dataset": dataset, "accuracy": cell} for (method, dataset), cell in CELLS.items()]
)
"""The accuracy tables."""

# Table tab:ltga_q_stats: mean q and share of exact zeros; the paper gives no mean q for LTGA-Edge.
_PINNED = product(
    ("citeseer", "cora", "cornell", "pubmed", "texas", "wisconsin"),
    (("ltga-global", "1.00"), ("ltga-layer", "1.00"), ("ltga-head", "1.00"), ("ltga-edge", None)),
)
GRANULARITY_Q = pd.concat(
    [
        _read("""
dataset        method      q    zeros
amazon-ratings ltga-global 1.78 1.4
amazon-ratings ltga-layer  1.64 1.2
amazon-ratings ltga-head   1.44 1.2
amazon-ratings ltga-edge   --   2.7
roman-empire   ltga-global 1.88 43.6
roman-empire   ltga-layer  1.85 43.2
roman-empire   ltga-head   1.80 42.4
roman-empire   ltga-edge   --   41.5
"""),
        pd.DataFrame([{"dataset": d, "method": m, "q": q, "zeros": "0.0"} for d, (m, q) in _PINNED]),
    ]
)

# Table tab:q_analysis, LTGA-Head.
Q_ANALYSIS = _read("""
dataset         homophily  q  q_spread  zeros  neighbours
amazon-ratings  0.38  1.436  0.055  0.012  8.32
citeseer        0.74  1.000  0.000  0.000  3.69
cora            0.81  1.000  0.000  0.000  4.72
cornell         0.30  1.000  0.000  0.000  2.41
pubmed          0.80  1.000  0.000  0.000  5.43
roman-empire    0.05  1.804  0.009  0.424  1.89
texas           0.11  1.000  0.000  0.000  2.57
wisconsin       0.21  1.000  0.000  0.000  2.56
""")

# Tables tab:abl_*, Roman-Empire, and tab:abl_cross, whose Roman-Empire part repeats them.
_MOVED = _read("""
dataset        setting value accuracy  q      ece
roman-empire   prior   0.0   72.8±0.4  1.807  0.094
roman-empire   prior   0.01  72.8±0.3  1.754  0.096
roman-empire   prior   0.1   72.4±0.3  1.393  0.093
roman-empire   prior   0.5   71.4±0.3  1.128  0.092
roman-empire   prior   1.0   71.0±0.7  1.070  0.090
roman-empire   warmup  0     72.7±0.5  1.828  0.090
roman-empire   warmup  50    72.5±0.5  1.716  0.095
roman-empire   warmup  100   72.2±0.4  1.574  0.094
roman-empire   warmup  200   70.6±0.5  1.000  0.090
roman-empire   kappa   1.0   72.7±0.5  1.809  0.093
roman-empire   kappa   5.0   71.9±0.5  1.348  0.093
roman-empire   kappa   10.0  71.4±0.6  1.193  0.091
roman-empire   kappa   50.0  70.8±0.4  1.041  0.093
roman-empire   delta   0.25  71.6±0.4  1.223  0.093
roman-empire   delta   0.5   72.0±0.2  1.434  0.093
roman-empire   delta   1.0   72.5±0.6  1.808  0.090
roman-empire   delta   1.5   72.7±0.5  2.118  0.090
roman-empire   delta   2.0   72.2±0.6  2.354  0.085
amazon-ratings prior   0.0   42.9±0.3 1.452  --
amazon-ratings prior   0.01  42.2±0.7 1.040  --
amazon-ratings prior   0.1   42.4±0.8 1.022  --
amazon-ratings prior   0.5   42.3±0.8 1.009  --
amazon-ratings prior   1.0   42.1±0.6 1.005  --
amazon-ratings warmup  0     43.4±0.3 1.457  --
amazon-ratings warmup  50    42.6±0.9 1.304  --
amazon-ratings warmup  100   42.4±0.8 1.273  --
amazon-ratings warmup  200   41.9±0.6 1.000  --
amazon-ratings kappa   1.0   43.2±0.6 1.461  --
amazon-ratings kappa   5.0   42.4±0.8 1.098  --
amazon-ratings kappa   10.0  42.2±0.8 1.045  --
amazon-ratings kappa   50.0  42.0±0.6 1.006  --
""")
_GRID = {"prior": (0.0, 0.01, 0.1, 0.5, 1.0), "warmup": (0, 50, 100, 200), "kappa": (1.0, 5.0, 10.0, 50.0)}
_UNMOVED = {"cora": ("81.1±0.8", "1.014"), "wisconsin": ("47.1±5.5", "1.001")}  # one accuracy; q at T_w = 0, else 1
SWEEPS = pd.concat(
    [
        _MOVED,
        pd.DataFrame(
            [
                {"dataset": dataset, "setting": setting, "value": float(value), "accuracy": accuracy,
                 "q": q if (setting, value) == ("warmup", 0) else "1.000"}
                for dataset, (accuracy, q) in _UNMOVED.items()
                for setting, values in _GRID.items()
                for value in values
            ]
        ),
    ]
)  # fmt: skip

# Table tab:abl_granularity, Roman-Empire; LTGA-Edge's entry under mean q is something else there and is left out.
GRANULARITY = _read("""
dataset      method      accuracy q     ece
roman-empire ltga-global 72.6±0.5 1.880 0.093
roman-empire ltga-layer  72.7±0.6 1.853 0.092
roman-empire ltga-head   72.5±0.2 1.809 0.088
roman-empire ltga-edge   72.9±0.3 --    0.087
""")

# Table tab:depth: accuracy, Dirichlet energy, mean average distance for 2, 4 and 8 layers.
_DEPTH = """
cora         gat       80.6±0.5  0.127 0.717  70.8±6.7  0.039 0.636  28.5±9.6  0.006 0.188
cora         gatv2     81.0±0.5  0.108 0.668  65.3±6.1  0.023 0.422  17.1±7.9  0.003 0.092
cora         gcn       80.9±0.5  0.155 0.790  59.4±11.1 0.034 0.487  44.5±18.2 0.030 0.342
cora         ltga-head 81.0±0.4  0.099 0.667  64.0±8.3  0.031 0.525  22.8±12.4 0.007 0.204
roman-empire gat       55.6±0.5  0.336 0.679  46.9±3.5  0.253 0.758  14.0±0.2  0.000 0.005
roman-empire gatv2     71.0±0.8  0.602 0.721  67.4±0.7  0.568 0.847  12.0±1.7  0.000 0.003
roman-empire gcn       42.9±0.4  0.162 0.434  29.9±0.3  0.086 0.646  12.7±5.1  0.003 0.024
roman-empire ltga-head 72.4±0.6  0.634 0.752  68.5±2.1  0.580 0.837  11.2±4.0  0.000 0.010
"""
DEPTH = pd.DataFrame(
    [
        (dataset, method, depth, *cells[3 * k : 3 * k + 3])
        for dataset, method, *cells in map(str.split, _DEPTH.strip().splitlines())
        for k, depth in enumerate((2, 4, 8))
    ],
    columns=["dataset", "method", "num_layers", "accuracy", "dirichlet_energy", "mean_average_distance"],
)

# Table tab:pruning.
PRUNING = _read("""
dataset method learned_zeros learned restore random agreement_pruned agreement_kept
amazon-ratings ltga-edge 2.6  42.7±0.8 41.7±0.6 42.7±0.8 n/a     51.0±0.3
amazon-ratings ltga-head 1.0  42.5±0.6 41.8±0.5 42.5±0.6 n/a     51.0±0.3
roman-empire   ltga-edge 41.7 72.3±0.8 64.4±0.5 59.8±0.6 2.4±2.7 43.7±0.2
roman-empire   ltga-head 42.4 72.4±0.8 65.4±0.7 59.4±0.8 5.2±9.0 43.6±0.1
""")

# Section sec:pruning_results, edges that every head prunes; the text gives ranges over the layers where it does not
# say which layer has which number.
PRUNED_EDGES = _read("""
dataset      method    layer head agreement_pruned labelled
roman-empire ltga-head 1     all  9.3              27
roman-empire ltga-head 2     all  1.0              78
""").assign(
    agreement_kept="43.5–43.6", cosine_pruned="0.17–0.23", cosine_kept="0.41", degree_pruned="5.6–5.7",
    degree_kept="4.2", share="0.1–0.3",
)  # fmt: skip

# Section sec:gate_results: R2 of the probe on the paper's four covariates, then what it says of single ones.
GATE = _read("""
dataset        layer r2_paper
amazon-ratings 2     0.41
roman-empire   1     0.16
roman-empire   2     0.06
""")
COVARIATES = _read("""
dataset        layer covariate        spearman importance
amazon-ratings 2     embedding_cosine −0.62    0.81
roman-empire   2     source_degree    −0.16    --
""")

# Appendix app:attn_concentration, from the text: Gini of the first layer's attention.
CONCENTRATION = _read("""
dataset   method      gini
cora      gat         0.34–0.40
cora      gatv2       0.34–0.40
cora      ltga-global 0.34–0.40
cora      ltga-layer  0.34–0.40
cora      ltga-head   0.34–0.40
cora      ltga-edge   0.34–0.40
cornell   gat         0.44
cornell   gatv2       0.50
cornell   ltga-global ≈0.40
cornell   ltga-layer  ≈0.40
cornell   ltga-head   ≈0.40
cornell   ltga-edge   0.34
wisconsin gat         ≈0.52–0.54
wisconsin gatv2       ≈0.52–0.54
wisconsin ltga-global 0.47
wisconsin ltga-layer  0.47
wisconsin ltga-head   0.47
wisconsin ltga-edge   0.47
""")
