"""Figures from hand-made values: drawn when their runs exist, told apart without colour, nothing over anything."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from ltga.explanation.reliability import reliability_bins
from ltga.nn.methods import METHODS
from ltga.study import EXPERIMENTS
from ltga.study.analyses.gate import q_histogram
from ltga.study.report.figures.gate_panels import edge_distribution
from ltga.study.report.figures.q_at_a_glance import overview
from ltga.study.report.figures.rank_diagram import critical_difference_figure
from ltga.study.report.figures.style import GREY, LOOKS, PALETTE, look, save, style, svg_text
from ltga.study.report.sections import make_section
from ltga.study.stats import critical_difference_diagram
from oracles.figures import covering, texts
from oracles.records import make_record

HOSTILE = "<b>&$x$"
BINS = pd.DataFrame({"low": [0.0, 1.0], "high": [1.0, 2.0], "count": [1, 3]})


def test_the_check_sees_an_overlap() -> None:
    figure = Figure()
    figure.text(0.5, 0.5, "one")
    figure.text(0.5, 0.5, "two")
    assert covering(figure) == [("one", "two")]


def test_every_method_has_its_own_look_in_safe_colours() -> None:
    assert set(LOOKS) == set(METHODS)
    assert len({(one.colour, one.marker, one.dashes) for one in LOOKS.values()}) == len(LOOKS)
    assert {one.colour for one in LOOKS.values()} <= set(PALETTE)
    headline = EXPERIMENTS["headline"].methods
    assert len({look(method).colour for method in headline}) == len(headline)
    assert look("somebody's").colour == GREY


@pytest.mark.parametrize("moved", [1.0, 1.8])
def test_labels_of_datasets_pinned_at_one_stay_legible(moved: float) -> None:
    homophily = {"texas": 0.11, "cornell": 0.13, "wisconsin": 0.21, "amazon-ratings": 0.38, "citeseer": 0.74,
                 "pubmed": 0.80, "cora": 0.81, "gum-syntax (stand-in)": 0.04, "roman-empire": 0.05}  # fmt: skip
    points = {name: (value, moved if value < 0.06 else 1.0, 0.4 * (moved > 1)) for name, value in homophily.items()}
    sweeps = {name: [(0.1 * k, 70.0 + k) for k in range(5)] for name in ("λ", "T_w", "κ", "δ")}
    with style():
        for figure in (overview(points, sweeps), overview(points, {})):
            assert not [pair for pair in covering(figure) if set(pair) & set(points)]


def test_critical_difference_labels_and_bars() -> None:
    rng = np.random.default_rng(0)
    methods = list(EXPERIMENTS["headline"].methods)
    table = pd.DataFrame(rng.normal(size=(8, 7)) + np.arange(7) / 2, columns=methods)
    diagram = critical_difference_diagram(table)
    with style():
        figure = critical_difference_figure(diagram, 8)
    assert not covering(figure)
    shown = " ".join(text for text, _ in texts(figure))
    assert all(f"{rank:.2f}" in shown for rank in diagram.ranks)
    thick = [line for line in figure.axes[0].lines if line.get_linewidth() > 3]
    assert len(thick) == len(diagram.cliques)


def test_svg_is_escaped_unique_and_repeatable(tmp_path: Any) -> None:
    with style():
        first, second, third = (edge_distribution({HOSTILE: (BINS, 1.2)}) for _ in range(3))
    assert first.axes[0].title.get_text() == HOSTILE and not first.axes[0].title.get_parse_math()
    one, two = svg_text(first, "one"), svg_text(second, "two")
    assert svg_text(third, "one") == one and "<b>" not in one and "<metadata>" not in one
    ids = {name: set(re.findall(r'\bid="([^"]+)"', text)) for name, text in (("one", one), ("two", two))}
    assert not ids["one"] & ids["two"]
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', one))
    assert used and used <= ids["one"]
    saved = save(first, tmp_path, "one")
    assert (tmp_path / "one.svg").read_text().endswith(saved) and (tmp_path / "one.png").read_bytes()[:4] == b"\x89PNG"


def test_reliability_bins_against_a_loop() -> None:
    rng = np.random.default_rng(0)
    confidence, correct = rng.random(200), rng.random(200) < 0.5
    expected = []
    for k in range(10):
        inside = [i for i in range(200) if k / 10 < confidence[i] <= (k + 1) / 10]
        if inside:
            expected.append((np.mean(confidence[inside]), np.mean(correct[inside]), len(inside)))
    found = reliability_bins(confidence, correct, 10).dropna()[["confidence", "accuracy", "count"]]
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize(
    ("name", "records", "drawn"),
    [
        ("q-trajectories", [("texas", "ltga-head", {"q": 1.5})], ["q-trajectories", "q-trajectories-heads"]),
        ("q-trajectories", [("texas", "ltga-head", {"q": 1.0})], ["q-trajectories"]),
        ("gradient", [("texas", "ltga-head", {"q": 1.5})], ["gradient"]),
        ("q-overview", [("texas", "ltga-head", {"q": 1.5})], ["q-overview"]),
        ("frozen-q-curves", [("texas", "frozen-q1.0", {}), ("texas", "frozen-q2.0", {})], ["frozen-q-curves"]),
        ("frozen-q-curves", [("texas", "frozen-q1.0", {})], []),
        ("sweeps", [("gum-syntax", "ltga-head", {"q": 1.5}), ("gum-syntax", "ltga-head", {"q": 1.1, "prior": 1.0})],
         ["sweeps-gum-syntax"]),
        ("depth", [("cora", "gat", {}), ("cora", "gat", {"num_layers": 4})], ["depth"]),
        ("depth", [("cora", "gat", {})], []),
        ("synthetic", [(graph, method, {}) for graph in ("csbm:seed=1", "csbm:seed=1,snr=2")
                       for method in ("ltga-head", "frozen-q1.0")], ["synthetic"]),
        ("synthetic", [("csbm:seed=1", "ltga-head", {}), ("csbm:seed=1,snr=2", "ltga-head", {})], []),
        ("critical-difference", [(d, m, {}) for d in ("texas", "cora") for m in EXPERIMENTS["headline"].methods],
         ["critical-difference"]),
        ("critical-difference", [("texas", m, {}) for m in EXPERIMENTS["headline"].methods], []),
        ("calibration", [("texas", "gat", {}), ("texas", "ltga-head", {})], ["calibration-scores"]),
        ("edge-q", [("gum-syntax", "ltga-edge", {"q": 1.5})], []),
    ],
)  # fmt: skip
def test_a_figure_is_drawn_when_its_runs_are_there(
    study: Callable[..., Any], name: str, records: Any, drawn: list[str]
) -> None:
    made = [make_record(dataset, method, 1, **settings) for dataset, method, settings in records]
    section = make_section(study(made), EXPERIMENTS[name])
    assert [drawing.name for drawing in section.drawings] == drawn
    assert bool(section.remarks) == (not drawn or name in ("depth", "calibration"))  # the rest needs models
    assert not [pair for drawing in section.drawings for pair in covering(drawing.figure)]


def test_no_edge_lies_beyond_where_q_can_be() -> None:
    """q piles up at 1 + delta; a bin across that end would show edges in the region q > 2 that has none."""
    arrays = {
        "edge_index": np.array([[0, 1, 2], [1, 0, 2]]),  # the last one is a self-loop
        "layer1_q": np.array([[2.0000001], [1.25], [0.5]], dtype=np.float32),
    }
    with style():
        (axis,) = edge_distribution({"graph": (q_histogram(arrays, 1.0), 1.625)}).axes
    bars = {round(bar.get_x(), 6): bar for bar in axis.patches if bar.get_height() == pytest.approx(50)}
    assert len(bars) == 2
    assert max(bar.get_x() + bar.get_width() for bar in bars.values()) == pytest.approx(2.0)
    assert 1.625 in {float(line.get_xdata()[0]) for line in axis.lines}


def test_the_sweeps_by_distance_pair_every_run_with_softmax_on_its_seed(study: Callable[..., Any]) -> None:
    """Seed 2 has no run with another prior, so the default counts with seed 1 only; softmax is 0.6 there, 0.9 on 2."""
    made = [
        make_record("gum-syntax", "ltga-head", 1, q=1.5, test=0.7),
        make_record("gum-syntax", "ltga-head", 2, q=1.9, test=0.8),
        make_record("gum-syntax", "ltga-head", 1, q=1.1, test=0.5, prior=1.0),
        make_record("gum-syntax", "gatv2", 1, test=0.6),
        make_record("gum-syntax", "gatv2", 2, test=0.9),
    ]
    (drawing,) = make_section(study(made), EXPERIMENTS["q-overview"]).drawings
    (line,) = (line for line in drawing.figure.axes[2].lines if line.get_label() == "λ")
    np.testing.assert_allclose(line.get_xydata(), [(0.1, -10.0), (0.5, 10.0)])
    assert "GATv2" in drawing.caption
