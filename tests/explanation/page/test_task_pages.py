"""Pages of every task in a real browser: they open without complaint, fit, say what the run says, and can be used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ltga
from fixtures.task_runs import DATA, task_runs  # noqa: F401
from ltga.explanation.page import render_page, write_page

pytest.importorskip("selenium")
from selenium.webdriver.common.keys import Keys

NAMES = [*DATA, "molecules"]


@pytest.fixture(scope="module")
def pages(task_runs: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:  # noqa: F811
    folder = tmp_path_factory.mktemp("pages")

    def page(name: str) -> tuple[Path, Any]:
        if name == "molecules":
            pytest.importorskip("rdkit")
        data, run = task_runs(name)
        inside = ltga.explain(run, data)
        path = folder / f"{name}.html"
        return (path if path.exists() else write_page(inside, path)), inside

    return page


@pytest.mark.parametrize("name", NAMES)
def test_opens_and_fits_at_three_widths(screen: Any, pages: Any, name: str) -> None:
    path, inside = pages(name)
    outside = """const box = (e) => e.getBoundingClientRect();
        return [...document.querySelectorAll('svg text, h1, h2, h3, p, button, label, dd')]
            .filter((e) => !e.closest('.scroll') && box(e).width && (box(e).left < -1 || box(e).right > innerWidth + 1))
            .map((e) => e.textContent)"""
    for width in (400, 1280, 1600):
        screen.open(path, width=width)
        assert screen.js("return document.documentElement.scrollWidth") <= width
        assert screen.js(outside) == []
        assert screen.all("#graph .edge") and screen.js("return window.hacked === undefined")
    assert (inside.typed.config.task or "").capitalize() in screen.one(".top").text
    shown = float(screen.js("return run.zero_share"))
    assert shown == pytest.approx(inside.zero_share)
    table = screen.one("#neighbours")
    assert screen.js("return arguments[0].scrollWidth <= arguments[0].parentElement.clientWidth", table)  # not clipped


@pytest.mark.parametrize("name", NAMES)
def test_the_page_computes_the_models_weights(screen: Any, pages: Any, name: str) -> None:
    path, inside = pages(name)
    screen.open(path, width=1280)
    code = """return Array.from({length: run.nodes}, (_, i) => [data.number(i),
        Array.from({length: run.layers}, (_, l) => data.attend(i, l, null, null).heads.map((one) => one.weights))])"""
    for number, layers in screen.js(code):
        mine = np.flatnonzero(inside.edge_index[1] == number)
        for layer, heads in enumerate(layers):
            np.testing.assert_allclose(np.array(heads).T, inside.weights[layer, mine], atol=2e-6)


def test_numbers_truth_against_prediction(screen: Any, pages: Any) -> None:
    path, inside = pages("numbers")
    screen.open(path)
    frame = inside.nodes()
    test = frame["part"] == "test"
    points = screen.all("#scatter .point")
    assert len(points) == test.sum()
    points[0].click()
    screen.settle()
    node = int(screen.js("return data.number(view.node)"))
    assert test[node] and f"{frame['value'][node]:.4g}"[:4] in screen.one("#focus").text
    assert "Residual" in screen.one("#focus").text
    screen.open(path, fragment="#node=3")
    assert "not known" in screen.one("#focus").text


def test_labels_one_by_one(screen: Any, pages: Any) -> None:
    path, inside = pages("labels")
    screen.open(path)
    rows = screen.all("#labels-table tbody tr")
    for row, expected in zip(rows, inside.labels().to_dict("records"), strict=True):
        assert row.text.startswith(expected["label"]) and f"{expected['f1']:.3f}" in row.text


def test_a_pair_and_its_two_neighbourhoods(screen: Any, pages: Any) -> None:
    path, inside = pages("links")
    screen.open(path)
    rows = screen.all("#links-table tbody tr[data-pair]")
    assert len(rows) == len(screen.js("return run.links.rows"))
    row = rows[-1]
    screen.js("arguments[0].scrollIntoView({block: 'center'})", row)
    row.find_element("css selector", "button").click()
    screen.settle()
    first, second = screen.js("return view.pair.ends.map(data.number)")
    assert [inside.node_ids[first], inside.node_ids[second]] == screen.js("return view.pair.names")
    common = set(screen.js("return [...view.pair.common].map(data.number)"))
    assert common == set(inside.common(first, second).tolist())
    assert f"{len(common)} common neighbours" in screen.one("#focus").text
    drawn = {int(one.get_attribute("data-node")) for one in screen.all("#graph .node")}
    assert {first, second} <= drawn and common <= drawn
    chance = f"{100 * float(inside.probability(np.array([first, second]))):.1f} %"
    assert chance in screen.one("#graph .question").text and chance in screen.one("#focus").text
    screen.all("#graph .centre .shape")[1].click()
    screen.settle()
    assert screen.js("return view.pair && data.number(view.node)") == second
    screen.all("#graph .near .shape")[0].click()
    screen.settle()
    assert screen.js("return view.pair") is None
    screen.browser.back()
    screen.settle()
    assert screen.js("return view.pair && view.pair.ends.map(data.number)") == [first, second]


def test_a_node_is_found_by_its_id(screen: Any, pages: Any) -> None:
    screen.open(pages("links")[0])
    screen.one("#search").send_keys("user-17", Keys.ENTER)
    screen.settle()
    assert screen.one("#focus-title").text == "user-17 (node 17)" and screen.js("return location.hash") == "#node=17"


def test_questions_with_relations(screen: Any, pages: Any) -> None:
    path, inside = pages("triples")
    screen.open(path)
    worst = inside.candidates().sort_values("rank", ascending=False).iloc[0]
    assert f"{worst['rank']:g} of {worst['among']}" in screen.one("#links-table tbody tr[data-pair]").text
    assert "likes" in screen.one("#links-table").text and "thing" in screen.one("#focus-title").text


@pytest.mark.parametrize("name", ["graph-classes", "graph-number", "graph-labels", "molecules"])
def test_a_graph_drawn_whole(screen: Any, pages: Any, name: str) -> None:
    path, inside = pages(name)
    screen.open(path)
    assert len(screen.all("#graphs-table tbody tr")) == 40
    screen.one("#search").send_keys(inside.graph_names[12], Keys.ENTER)
    screen.settle()
    frame = inside.edges_of(12)
    assert len(screen.all("#graph .node")) == inside.graphs()["nodes"][12]
    halves = screen.all("#graph .edge")
    apart = frame[~frame["self_loop"]]
    assert len(halves) == len(apart)
    layer = inside.num_layers
    next(one for one in screen.all("#layer label") if one.text == str(layer)).click()
    screen.settle()
    zeros = (apart[f"ignored_by_layer{layer}"] == inside.num_heads).sum()
    assert len(screen.all("#graph .edge.zero")) == zeros
    screen.all("#graph .node .shape")[2].click()
    screen.settle()
    assert screen.js("return view.node - graphOf[view.node].start") == 2
    assert inside.graph_names[12] in screen.one("#focus-title").text


def test_a_molecule_has_its_elements_and_bonds(screen: Any, pages: Any) -> None:
    screen.open(pages("molecules")[0])
    screen.one("#search").send_keys("CCC(=O)O", Keys.ENTER)
    screen.settle()
    assert sorted(mark.text for mark in screen.all("#graph .node text")) == list("CCCOO")
    assert len(screen.all("#graph .bond")) == 5  # four bonds, one of them double
    assert "Drawn as a molecule" in screen.one("#shown").text


def test_an_underflow_is_not_called_ignored(screen: Any, pages: Any) -> None:
    screen.open(pages("numbers")[0])
    code = """run.arrays.gap.fill(200); for (let i = 0; i < run.nodes; i++)
        for (let l = 0; l < run.layers; l++) for (let h = 0; h < run.heads; h++)
            run.arrays.gap[(l * data.edgeCount + data.start(i)) * run.heads + h] = 0;
        return arguments[0].map((q) => data.attend(0, 0, null, q).zeros.reduce((a, b) => a + b, 0))"""
    softmax, sparse = screen.js(code, [1.0, 1.5])
    assert softmax == 0 < sparse


def test_the_frame_in_a_notebook_is_small_and_works(screen: Any, pages: Any, tmp_path: Path) -> None:
    _, inside = pages("links")
    shown = inside._repr_html_()
    assert len(shown) < 500_000 and "&lt;/script&gt;" in shown
    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><link rel=icon href=data:,><body>{shown}</body>", "utf-8")
    screen.open(path)
    screen.browser.switch_to.frame(screen.one("iframe"))
    try:
        screen.one("#search").send_keys("user-5", Keys.ENTER)
        screen.settle()
        assert screen.one("#focus-title").text == "user-5 (node 5)"
        assert screen.js("return window.hacked === undefined")
    finally:
        screen.browser.switch_to.default_content()


def test_a_sample_says_what_is_not_in_it(screen: Any, pages: Any, tmp_path: Path) -> None:
    _, inside = pages("numbers")
    path = tmp_path / "sample.html"
    path.write_text(render_page(inside, 3_500), "utf-8")
    screen.open(path)
    assert "this is a sample" in screen.one("#sample").text
    there = set(screen.js("return nodesThere.map(data.number)"))
    assert 0 < len(there) < 40
    gone = min(set(range(40)) - there)
    screen.one("#search").send_keys(str(gone))
    assert all(f"Node {gone}," not in hit.text for hit in screen.all("#hits li"))
    screen.open(path, fragment=f"#node={gone}")
    assert screen.js("return data.number(view.node)") in there
    for _ in range(3):
        screen.one("#pick-random").click()
        screen.settle()
        assert screen.js("return data.hasRow(view.node)")
