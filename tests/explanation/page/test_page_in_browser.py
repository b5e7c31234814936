"""The page in a real browser, by real clicks and keys, at two widths, light and dark."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ltga.explanation.page import write_page
from ltga.functional import segment_q_softmax
from oracles import attention as oracle

pytest.importorskip("selenium")
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait


@pytest.fixture(scope="module")
def pages(explained: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("pages")

    def page(method: str) -> Path:
        path = folder / f"{method}.html"
        return path if path.exists() else write_page(explained(method), path)

    return page


def follow(screen: Any) -> None:
    """Wait until the page shows the node in its address: it hears of a new address a little later."""
    arrived = "return nodeInAddress() === null || nodeInAddress() === view.node"
    WebDriverWait(screen.browser, 20, 0.02).until(lambda _: screen.js(arrived))
    screen.settle()


def title(screen: Any) -> str:
    follow(screen)
    return str(screen.one("#focus-title").text)


def node_of(screen: Any) -> int:
    follow(screen)
    return int(screen.js("return view.node"))


def pick(screen: Any, group: str, label: str) -> None:
    """Press one of a row of choices."""
    next(one for one in screen.all(f"#{group} label") if one.text == label).click()
    screen.settle()


def rows(inside: Any, node: int) -> np.ndarray:
    return np.flatnonzero(inside.edge_index[1] == node)


@pytest.mark.parametrize("method", ["ltga-head", "ltga-edge", "frozen-q2.0", "sparsemax", "entmax-1.5", "gatv2"])
def test_the_page_computes_the_models_weights(screen: Any, pages: Any, explained: Any, method: str) -> None:
    inside = explained(method)
    screen.open(pages(method))
    code = """return Array.from({length: run.nodes}, (_, i) =>
        Array.from({length: run.layers}, (_, l) => data.attend(i, l, null, null).heads.map((one) => one.weights)))"""
    for node, layers in enumerate(screen.js(code)):
        mine = rows(inside, node)
        for layer, heads in enumerate(layers):
            found, expected = np.array(heads).T, inside.weights[layer, mine]
            np.testing.assert_allclose(found, expected, atol=2e-6)
            clear = (expected == 0) | (expected > 1e-5)
            np.testing.assert_array_equal((found == 0)[clear], (expected == 0)[clear])
    assert inside.ignored.any() == (method != "gatv2")


@pytest.mark.parametrize("method", ["ltga-head", "sparsemax"])
def test_the_slider_follows_the_formula(screen: Any, pages: Any, explained: Any, method: str) -> None:
    inside = explained(method)
    softmax = oracle.entmax if method == "sparsemax" else oracle.q_softmax
    screen.open(pages(method))
    for q in (0.2 if method == "sparsemax" else 0.0, 0.5, 0.999, 1.0, 1.0000001, 1.3, 2.0):
        for node in (5, 6, NO_NEIGHBOURS):
            mine = rows(inside, node)
            found = screen.js("return data.attend(arguments[0], 1, 2, arguments[1]).weights", node, q)
            expected = softmax(inside.logits[1, mine, 2].tolist(), [q] * len(mine))
            np.testing.assert_allclose(found, expected, atol=1e-6)
            clear = [weight == 0 or weight > 1e-6 for weight in expected]
            assert [f == 0 for f, c in zip(found, clear) if c] == [e == 0 for e, c in zip(expected, clear) if c]


NO_NEIGHBOURS = 39


def test_exp_q_keeps_its_digits_near_one(screen: Any, pages: Any) -> None:
    from mpmath import mp

    mp.dps = 40
    screen.open(pages("ltga-head"))
    for x in (-0.001, -0.7, -3.0, -20.0):
        for q in (0.3, 1 - 1e-9, 1 + 1e-12, 1.0, 1.02, 1.9):
            base = 1 + (mp.mpf(q) - 1) * mp.mpf(x)
            exact = mp.e ** mp.mpf(x) if q == 1 else (base ** (1 / (mp.mpf(q) - 1)) if base > 0 else mp.mpf(0))
            assert screen.js("return expQ(arguments[0], arguments[1])", x, q) == pytest.approx(float(exact), rel=1e-13)


def test_half_precision_is_decoded(screen: Any, explained: Any, tmp_path: Path) -> None:
    inside = explained("ltga-edge")
    room = 4 / 3 * inside.edge_index.shape[1] * (2 * 2 * 3 * 2 + 8) + 8_000  # enough for halves
    screen.open(write_page(inside, tmp_path / "half.html", int(room)))
    assert screen.js("return !run.exact && !run.sample")
    mine = rows(inside, 5)
    gap = inside.logits[1, mine].max(axis=0) - inside.logits[1, mine]
    found = screen.js("return data.attend(5, 1, null, null).heads.map((one) => one.gaps)")
    np.testing.assert_array_equal(np.array(found).T, gap.astype(np.float16).astype(np.float64))


def test_find_a_node_with_the_keyboard(screen: Any, pages: Any) -> None:
    screen.open(pages("ltga-head"))
    box = screen.one("#search")
    box.send_keys("12")
    assert box.get_attribute("aria-expanded") == "true"
    assert screen.one("#hits li[aria-selected=true]").text.startswith("w12 (12)")
    box.send_keys(Keys.ENTER)
    assert title(screen) == "w12 (node 12)" and screen.js("return location.hash") == "#node=12"
    assert not screen.one("#hits").is_displayed()
    box.send_keys("w3")  # by name: w3, then w30, ...
    box.send_keys(Keys.ARROW_DOWN, Keys.ENTER)
    assert title(screen) == "w30 (node 30)"
    box.send_keys("nobody")
    assert "numbered 0 to 39" in screen.one("#hits").text
    box.send_keys(Keys.ESCAPE)
    assert not screen.one("#hits").is_displayed()
    screen.browser.back()
    screen.settle()
    assert title(screen) == "w12 (node 12)"


def test_find_a_node_with_the_mouse(screen: Any, pages: Any) -> None:
    screen.open(pages("ltga-head"))
    screen.one("#search").send_keys("w2")
    screen.all("#hits li")[1].click()
    assert node_of(screen) == 20


def test_click_a_neighbour(screen: Any, pages: Any, explained: Any) -> None:
    screen.open(pages("ltga-head"), fragment="#node=6")
    near = screen.all("#graph .near")
    sources = set(explained("ltga-head").edge_index[0, rows(explained("ltga-head"), 6)]) - {6}
    assert {int(one.get_attribute("data-node")) for one in near} == sources
    wanted = int(near[1].get_attribute("data-node"))
    near[1].find_element("css selector", ".shape").click()
    screen.settle()
    assert node_of(screen) == wanted
    screen.one("#neighbours tbody tr:nth-child(2) button").click()
    screen.settle()
    assert node_of(screen) in explained("ltga-head").edge_index[0, rows(explained("ltga-head"), wanted)]


def test_walk_through_the_picture_with_keys(screen: Any, pages: Any) -> None:
    screen.open(pages("ltga-head"), fragment="#node=6")
    stops = screen.all("#graph [tabindex='0']")
    assert len(stops) == 1  # one tab stop
    stops[0].send_keys(Keys.ARROW_RIGHT)
    active = screen.browser.switch_to.active_element
    assert "near" in active.get_attribute("class")
    assert "Weight 0." in active.get_attribute("aria-label")
    assert screen.one("#tip").is_displayed()
    wanted = int(active.get_attribute("data-node"))
    active.send_keys(Keys.ENTER)
    screen.settle()
    assert node_of(screen) == wanted
    assert int(screen.browser.switch_to.active_element.get_attribute("data-node")) == wanted  # focus stays inside


def test_everything_can_be_reached_with_tab(screen: Any, pages: Any) -> None:
    screen.open(pages("ltga-head"), fragment="#node=6")
    screen.js("""window.reached = [];
        addEventListener('focusin', ({ target }) => reached.push(target.id || target.name || target.classList[0]))""")
    ActionChains(screen.browser).send_keys(*[Keys.TAB] * 60).perform()
    reached = set(screen.js("return reached"))
    assert {"theme", "search", "pick-ignored", "layer", "head", "hops", "q", "pairs-layer", "node"} <= reached


def test_slide_q_and_back(screen: Any, pages: Any, explained: Any) -> None:
    inside = explained("ltga-head")
    screen.open(pages("ltga-head"), fragment="#node=6")
    pick(screen, "head", "2")
    slider, back = screen.one("#q"), screen.one("#learned")
    assert not back.is_enabled()
    learned = float(inside.q[0, 0, 1])
    assert screen.one("#q-value").text == f"= {learned:.2f}"
    mine = rows(inside, 6)
    at_learned = widths(screen)

    slider.send_keys(Keys.END)
    screen.settle()
    assert screen.one("#q-value").text == "= 2.00"
    assert "1.00 or more below the best" in screen.one("#q-words").text
    expected = oracle.q_softmax(inside.logits[0, mine, 1].tolist(), [2.0] * len(mine))
    zeros = sum(weight == 0 for weight, k in zip(expected, mine) if not inside.self_loop[k])
    assert 0 < zeros == len(screen.all("#graph .edge.zero:not(.far):not(.loop)"))
    table = sorted(float(cell.text) for cell in screen.all("#neighbours tbody td:nth-child(5)"))
    np.testing.assert_allclose(table, sorted(expected), atol=6e-4)
    effective = 1 / sum(weight**2 for weight in expected)
    assert f"{effective:.2f} neighbours" in screen.one("#focus").text

    slider.send_keys(Keys.HOME, Keys.ARROW_RIGHT)
    screen.settle()
    assert screen.one("#q-value").text == "= 0.01" and "heavy tails" in screen.one("#q-words").text
    assert not screen.all("#graph .edge.zero")
    assert widths(screen) != at_learned

    assert back.is_enabled()
    back.click()
    screen.settle()
    assert widths(screen) == at_learned and not back.is_enabled()


def widths(screen: Any) -> list[str]:
    code = """return [...document.querySelectorAll('#graph .edge')]
        .map((edge) => edge.getAttribute('stroke-width') + edge.getAttribute('class'))"""
    return list(screen.js(code))


def test_ignored_edges_are_dashed_and_weight_is_width(screen: Any, pages: Any, explained: Any) -> None:
    inside = explained("ltga-head")
    node = int(np.bincount(inside.edge_index[1], inside.ignored[0, :, 0]).argmax())
    screen.open(pages("ltga-head"), fragment=f"#node={node}")
    pick(screen, "head", "1")
    pick(screen, "hops", "1")
    weights = {int(inside.edge_index[0, k]): float(inside.weights[0, k, 0]) for k in rows(inside, node)}
    code = """return drawn.edges.map((e) => [data.source(data.start(e.node) + e.k),
        Number(e.element.getAttribute('stroke-width')), getComputedStyle(e.element).strokeDasharray !== 'none'])"""
    drawn = [edge for edge in screen.js(code) if list(inside.edge_index[0, rows(inside, node)]).count(edge[0]) == 1]
    assert any(dashed for _, _, dashed in drawn) and not all(dashed for _, _, dashed in drawn)
    for source, width, dashed in drawn:
        assert dashed == (weights[source] == 0)
        if not dashed:
            assert width == pytest.approx(min(1 + 26 * weights[source], 14), abs=0.01)


def test_layers_heads_and_hops(screen: Any, pages: Any) -> None:
    screen.open(pages("ltga-edge"), fragment="#node=6")
    mean = widths(screen)
    pick(screen, "layer", "2")
    second = widths(screen)
    assert second != mean
    screen.one("#head input:checked").send_keys(Keys.ARROW_RIGHT)  # from the mean to head 1
    screen.settle()
    assert screen.js("return view.head") == 0 and widths(screen) != second
    assert screen.all("#graph .node.far")
    pick(screen, "hops", "1")
    assert not screen.all("#graph .node.far")
    assert "own learned q" in screen.one("#q-words").text


def test_shortcuts(screen: Any, pages: Any, explained: Any) -> None:
    inside = explained("ltga-head")
    screen.open(pages("ltga-head"))
    screen.one("#pick-wrong").click()
    screen.settle()
    node = node_of(screen)
    assert inside.log_probs[node].argmax() != int(inside.dataset.data.y[node]) and inside.parts()[node] == "test"
    assert "(wrong)" in screen.one("#focus .wrong").text
    screen.one("#pick-ignored").click()
    screen.settle()
    assert inside.ignored_by[:, rows(inside, node_of(screen))].sum() > 0
    screen.one("#pick-random").click()
    assert 0 <= node_of(screen) < 40


def test_a_class_pair_leads_to_an_example(screen: Any, pages: Any, explained: Any) -> None:
    inside = explained("ltga-head")
    screen.open(pages("ltga-head"))
    cells = screen.all("#pairs-table tbody tr:nth-child(1) td")
    frame = inside.class_pairs().set_index(["target_class", "source_class"])
    shown = float(cells[1].text)
    names = inside.dataset.class_names
    assert shown == pytest.approx(100 * frame.loc[(names[0], names[1]), "ignored"], abs=0.51)
    cells[1].find_element("css selector", "button").click()
    screen.settle()
    node = node_of(screen)
    assert int(inside.dataset.data.y[node]) == 0
    mine = rows(inside, node)
    assert (inside.dataset.data.y.numpy()[inside.edge_index[0, mine]] == 1).any()
    assert screen.js("return document.getElementById('neighbourhood').getBoundingClientRect().top") < 200
    pick(screen, "pairs-layer", "2")
    value = 100 * frame.loc[(names[0], names[1]), "ignored_layer2"]
    assert float(screen.all("#pairs-table tbody tr:nth-child(1) td")[1].text) == pytest.approx(value, abs=0.51)


def test_overview_shows_the_records_numbers(screen: Any, pages: Any, explained: Any) -> None:
    inside = explained("ltga-head")
    screen.open(pages("ltga-head"))
    tiles = screen.one("#tiles").text
    assert f"{100 * inside.record['metrics']['test']['accuracy']:.1f} %" in tiles
    assert f"{inside.record['metrics']['test']['ece']:.3f}" in tiles
    assert f"{100 * inside.ignored[:, ~inside.self_loop].mean():.1f} %" in tiles
    assert len(screen.all("#index-charts svg")) == 2 and len(screen.all("#index-charts .line")) == 6
    assert screen.all("#calibration .bar")
    zeros = [cell.text for cell in screen.all("#sparsity tbody:nth-of-type(1) tr:nth-child(2) td")][:3]
    assert zeros == [f"{100 * value:.1f} %" for value in inside.ignored[0].mean(axis=0)]


def test_names_are_text_and_nothing_else(screen: Any, pages: Any) -> None:
    screen.open(pages("ltga-head"), fragment="#node=7")
    assert title(screen).startswith("w7 </script><script>")
    assert "<img src=x" in screen.one("#focus").text
    assert screen.js("return window.hacked === undefined && document.images.length === 0")


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize(("method", "dark"), [("ltga-head", False), ("gatv2", True)])
def test_fits_the_screen(screen: Any, pages: Any, width: int, dark: bool, method: str) -> None:
    screen.open(pages(method), width=width, dark=dark, fragment="#node=5")
    assert screen.js("return document.documentElement.scrollWidth") <= width
    outside = """const box = (e) => e.getBoundingClientRect();
        return [...document.querySelectorAll('svg text, h1, h2, h3, p, button, label, dd')]
            .filter((e) => !e.closest('.scroll') && (box(e).left < -1 || box(e).right > innerWidth + 1))
            .map((e) => e.textContent)"""
    assert screen.js(outside) == []
    ground = screen.js("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground[4:-1].split(","))) < 200) == dark


@pytest.mark.parametrize("width", [390, 1400])
def test_nodes_and_labels_do_not_overlap(screen: Any, pages: Any, width: int) -> None:
    """Labels are level or follow the radius; there the distance along the ring counts."""
    boxes = """return [...document.querySelectorAll(arguments[0])].map((e) => e.getBoundingClientRect())
        .map((box) => [box.left, box.top + arguments[1], box.right, box.bottom - arguments[1]])"""
    level = 0
    for node in (5, 6, 10, 14):
        screen.open(pages("ltga-head"), width=width, fragment=f"#node={node}")
        for hops in ("1", "2"):
            pick(screen, "hops", hops)
            shapes = screen.js(boxes, "#graph .near .shape, #graph .centre .shape", 0)
            assert len(shapes) > 2 and not overlapping(shapes)
            if screen.all("#graph .near text[transform]"):
                assert screen.js("return 2 * Math.PI * drawn.plan.near / drawn.plan.first.length") > 12
            else:
                level += 1
                assert not overlapping(screen.js(boxes, "#graph .near text", 2))
    assert level  # both kinds were seen


def overlapping(boxes: list[list[float]]) -> bool:
    return any(
        a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3] for k, a in enumerate(boxes) for b in boxes[:k]
    )


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(screen: Any, pages: Any, dark: bool) -> None:
    screen.open(pages("ltga-head"), dark=dark, fragment="#node=7")
    code = """const behind = (e) => { const c = getComputedStyle(e).backgroundColor;
            return c === 'rgba(0, 0, 0, 0)' ? behind(e.parentElement) : c; };
        return [...document.querySelectorAll(arguments[0])].map((e) => [getComputedStyle(e).color, behind(e)])"""
    for selector, least in (("h1, .quiet, dt, dd, th, .words, nav a, .choice span", 4.5), (".heat button", 3.5)):
        pairs = screen.js(code, selector)
        assert pairs
        assert min(contrast(*pair) for pair in pairs) >= least, selector


def contrast(*colours: str) -> float:
    """WCAG's contrast ratio of two colours as Chromium writes them: rgb(...) or color(srgb ...)."""
    bright = []
    for colour in colours:
        numbers = [float(part) for part in re.findall(r"[\d.]+", colour)[:3]]
        share = numbers if colour.startswith("color(") else [number / 255 for number in numbers]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in share]
        bright.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(bright) + 0.05) / (min(bright) + 0.05)


def test_the_theme_can_be_chosen_and_is_remembered(screen: Any, pages: Any) -> None:
    def dark() -> bool:
        ground = screen.js("return getComputedStyle(document.body).backgroundColor")
        return sum(map(int, ground[4:-1].split(","))) < 200

    screen.open(pages("ltga-head"))
    button = screen.one("#theme")
    try:
        assert not dark()
        button.click()  # light
        assert not dark()
        button.click()  # dark
        assert dark() and button.get_attribute("aria-label") == "Colour theme: dark"
        for _ in range(20):  # the browser stores what it is to remember when it finds the time
            screen.open(pages("ltga-head"))
            if dark():
                break
        assert dark()
    finally:
        screen.js("localStorage.clear()")


def test_a_node_that_knows_only_itself(screen: Any, pages: Any) -> None:
    screen.open(pages("ltga-head"), fragment=f"#node={NO_NEIGHBOURS}")
    assert "no neighbours but itself" in screen.one("#shown").text
    screen.one("#q").send_keys(Keys.END)
    screen.settle()
    assert "1.00 neighbours" in screen.one("#focus").text


def test_an_address_that_leads_nowhere_is_ignored(screen: Any, pages: Any) -> None:
    screen.open(pages("ltga-head"), fragment="#node=4000")
    assert 0 <= node_of(screen) < 40


def test_only_what_is_shown_is_drawn(screen: Any, explained: Any, tmp_path: Path) -> None:
    """A hub with 30,000 neighbours costs no more elements than any other node."""
    inside = explained("ltga-head")
    rng = np.random.default_rng(0)
    hub = np.stack([rng.integers(6, 40, 30_000), np.full(30_000, 5)])
    edges = np.concatenate([hub, inside.edge_index], axis=1)
    logits = rng.normal(size=(2, edges.shape[1], 3)).astype(np.float32)
    target = torch.from_numpy(edges[1])
    weights = torch.stack([segment_q_softmax(torch.from_numpy(layer), 1.4, target) for layer in logits]).numpy()
    large = replace(
        inside, edge_index=edges, position=np.full(edges.shape[1], -1), logits=logits, q=np.full_like(logits, 1.4),
        weights=weights,
    )  # fmt: skip
    screen.open(write_page(large, tmp_path / "hub.html"), fragment="#node=5")
    assert screen.js("return document.querySelectorAll('#graph *').length") < 1500
    assert "strongest and the" in screen.one("#shown").text
    assert screen.js("return document.querySelectorAll('#neighbours tbody tr').length") == 150
    assert 100 < screen.js("return document.querySelectorAll('#curve circle').length") <= 1003
    screen.one("#q").send_keys(Keys.END)
    screen.settle()
    assert screen.one("#q-value").text == "= 2.00"
