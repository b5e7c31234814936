"""A small run whose names are hostile, its page, and a real browser to look at it with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

import ltga
from fixtures.browser import chromium  # noqa: F401
from ltga.data import Dataset
from ltga.explanation.node_classes import NodeClasses
from ltga.train import Protocol, fit

HOSTILE = "</script><script>window.hacked = 1</script>"
CLASSES = ("calm", '<img src=x onerror="window.hacked = 1">', HOSTILE)
NODES = 40


def make_graph() -> Dataset:
    """40 nodes, 3 classes, a hub, a node that knows only itself, and names that would like to be HTML."""
    generator = torch.Generator().manual_seed(2)
    edge_index = torch.randint(0, NODES - 1, (2, 220), generator=generator)
    edge_index[1, :30] = 5  # a hub
    edge_index = edge_index[:, edge_index[0] != edge_index[1]]
    data = Data(x=2 * torch.randn(NODES, 5, generator=generator), y=torch.arange(NODES) % 3, edge_index=edge_index)
    data.planted_edge = torch.rand(edge_index.size(1), generator=generator) < 0.3
    part = torch.arange(NODES) % 4
    names = [f"w{node} {HOSTILE}" if node % 7 == 0 else f"w{node}{'-lengthy' * (node % 2)}" for node in range(NODES)]
    masks = (part < 2, part == 2, part == 3)
    return Dataset(f"mine {HOSTILE}", data, *masks, class_names=CLASSES, node_names=names)


@pytest.fixture(scope="session")
def graph() -> Dataset:
    return make_graph()


@pytest.fixture(scope="session")
def explained(graph: Dataset) -> Any:
    """Explanations by method, with an index that has moved; made when first asked for."""
    made: dict[str, NodeClasses] = {}

    def explanation(method: str) -> NodeClasses:
        if method not in made:
            run = fit(graph, method, protocol=Protocol.paper(epochs=3, hidden_channels=3, heads=3, init="paired"))
            with torch.no_grad():
                for name, parameter in run.model.named_parameters():
                    if name.endswith(".att"):
                        parameter.mul_(3)
                    if ".index." in name:
                        noise = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1))
                        parameter.add_(0.1 * noise + (0.4 if name.endswith(("raw", "out.bias")) else 0.0))
            made[method] = ltga.explain(run, graph)
        return made[method]

    return explanation


class Screen:
    """A page in the browser, as a person would handle it."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser

    def open(self, path: Path, *, width: int = 1400, dark: bool = False, fragment: str = "") -> None:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme, still]})
        self.browser.get("about:blank")
        self.browser.get(path.as_uri() + fragment)

    def one(self, selector: str) -> Any:
        return self.browser.find_element("css selector", selector)

    def all(self, selector: str) -> list[Any]:
        return self.browser.find_elements("css selector", selector)  # type: ignore[no-any-return]

    def js(self, code: str, *arguments: Any) -> Any:
        return self.browser.execute_script(code, *arguments)

    def settle(self) -> None:
        """Wait until the page has drawn what it was asked for."""
        self.browser.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => setTimeout(done, 0))")


@pytest.fixture
def screen(chromium: Any) -> Iterator[Screen]:  # noqa: F811
    chromium.get_log("browser")
    shown = Screen(chromium)
    yield shown
    assert [entry["message"] for entry in chromium.get_log("browser")] == []  # nothing complained, nothing blocked
