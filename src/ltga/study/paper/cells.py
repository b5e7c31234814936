"""Accuracies as the paper prints them: mean ± sample s.d. over ten seeds, in percent."""

from __future__ import annotations

from collections.abc import Mapping

# Tables 1 (main), composition, fixed q, entmax, edge controls and heterophily of the paper.
DATASETS = ("amazon-ratings", "citeseer", "cora", "cornell", "pubmed", "roman-empire", "texas", "wisconsin")
_ROWS = """
gcn               41.6±0.4   68.3±1.1   80.5±1.0   40.0±9.3   78.8±1.0   42.9±0.6   45.9±15.0  47.5±4.6
gat               42.0±0.4   69.3±1.0   80.4±0.8   42.2±7.3   77.7±0.5   56.1±0.7   59.2±6.2   50.6±7.3
gatv2             41.7±0.7   69.2±0.7   80.7±0.7   36.8±8.8   77.6±0.7   71.0±0.8   59.2±5.5   48.0±6.6
ltga-global       42.4±0.7   69.0±0.6   81.0±0.7   35.1±12.9  77.7±0.6   72.3±0.6   58.1±5.9   47.6±7.5
ltga-layer        42.6±0.6   69.0±0.6   81.0±0.7   35.1±12.9  77.7±0.6   72.4±0.5   58.1±5.9   47.6±7.5
ltga-head         42.5±0.7   69.0±0.6   81.0±0.7   35.1±12.9  77.7±0.6   72.5±0.6   58.1±5.9   47.6±7.5
ltga-edge         42.8±0.8   69.1±0.9   81.2±1.0   39.2±11.1  77.5±0.6   72.4±0.9   58.6±6.5   52.7±6.5
frozen-q0.5       41.1±0.3   69.0±0.7   81.0±0.6   34.6±12.2  77.6±0.6   68.0±0.5   58.4±6.0   48.0±7.0
frozen-q0.8       41.4±0.3   69.0±0.7   81.0±0.6   35.9±13.2  77.7±0.6   69.8±0.5   58.1±5.9   47.6±8.0
frozen-q1.0       41.9±0.6   69.0±0.6   81.0±0.7   35.1±12.9  77.7±0.6   70.7±0.6   58.1±5.9   47.6±7.5
frozen-q1.2       42.2±0.5   69.0±0.7   80.9±0.6   35.7±12.9  77.6±0.7   71.5±0.7   58.1±5.9   47.6±7.3
frozen-q1.5       42.5±0.5   68.9±0.7   80.7±0.7   36.2±12.5  77.5±0.6   72.0±0.5   57.6±6.0   50.0±10.1
frozen-q2.0       42.8±0.7   68.9±0.7   80.2±0.7   39.5±9.6   77.4±0.6   71.9±0.5   56.2±8.8   51.6±6.3
entmax-1.2        42.7±0.6   68.9±0.8   80.8±0.7   35.9±13.4  77.5±0.8   71.4±0.8   58.1±5.9   48.6±6.2
entmax-1.5        43.9±0.5   68.6±0.9   80.1±0.6   39.5±11.6  77.3±0.7   72.3±0.6   56.2±9.3   48.4±9.1
sparsemax         44.7±0.5   68.2±0.9   78.9±0.5   45.4±5.9   77.0±0.7   73.1±0.5   57.3±5.8   49.6±7.7
gatv2-edge-bias   41.6±0.7   69.1±0.9   81.2±1.0   39.2±11.1  77.5±0.6   70.8±0.8   58.6±6.5   52.7±6.5
gatv2-edge-scale  44.0±0.6   69.1±0.9   81.2±1.0   39.2±11.1  77.5±0.6   73.8±0.8   58.6±6.5   52.7±6.5
gatv2-temperature 42.7±0.6   69.0±0.6   81.0±0.7   35.1±12.9  77.7±0.6   73.3±0.6   58.1±5.9   47.6±7.5
dot-softmax       40.8±0.3   68.7±0.5   81.4±0.6   42.7±6.7   77.7±0.6   62.8±0.7   56.8±5.4   51.2±8.0
dot-ltga-head     40.8±0.4   68.7±0.5   81.4±0.6   42.7±6.7   77.7±0.6   65.3±0.8   56.8±5.4   51.2±8.0
h2gcn             45.3±0.7   66.8±1.9   80.4±0.9   65.1±5.3   73.8±1.0   78.3±0.7   77.0±7.5   76.5±6.5
gprgnn            44.0±0.7   70.1±0.4   81.8±0.7   42.7±4.4   77.9±0.8   72.6±0.5   55.9±6.2   60.4±12.6
fagcn             42.2±0.5   66.2±1.8   80.1±0.9   43.2±8.1   77.6±0.6   64.8±1.5   60.3±5.8   55.1±5.0
linkx             44.7±2.1   40.2±7.0   44.3±7.2   51.1±24.8  39.4±13.6  54.3±2.5   56.2±27.8  79.8±4.1
"""


def by_method_and_dataset(rows: str) -> dict[tuple[str, str], str]:
    """The cells of lines that open with the name of a method, in the order of ``DATASETS``."""
    cells = {}
    for row in rows.strip().splitlines():
        method, *values = row.split()
        cells.update({(method, dataset): value for dataset, value in zip(DATASETS, values, strict=True)})
    return cells


PAPER_CELLS: Mapping[tuple[str, str], str] = by_method_and_dataset(_ROWS)
"""(method, dataset) -> printed cell, for example ``PAPER_CELLS["gatv2", "texas"] == "59.2±5.5"``."""
