"""How figures look and how they are kept: one look per method everywhere, told apart without colour too."""

from __future__ import annotations

import io
import re
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from ltga.data.atomic import write_atomic
from ltga.study import Experiment

# Okabe and Ito's palette without its yellow, which white paper swallows.
BLACK, ORANGE, SKY, GREEN, BLUE, RED, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7"
)  # fmt: skip
GREY = "#7F7F7F"
PALETTE = (BLUE, RED, GREEN, ORANGE, PURPLE, SKY, BLACK)


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure with the stem of its files and a caption."""

    name: str
    caption: str
    figure: Figure


def drawing_name(experiment: Experiment, dataset: str) -> str:
    """The stem of the files of an experiment's figure of one dataset, whatever characters its name has."""
    return f"{experiment.name}-{re.sub(r'[^A-Za-z0-9.-]+', '-', dataset)}"


@dataclass(frozen=True)
class Look:
    """Colour, marker and dashes of a line."""

    colour: str
    marker: str = "o"
    dashes: str = "-"

    def line(self, **changes: Any) -> dict[str, Any]:
        """Arguments for ``Axes.plot``."""
        return {"color": self.colour, "marker": self.marker, "linestyle": self.dashes, **changes}


_SLOTS = {"softmax": RED, "q": BLUE, "alpha": GREEN, "sparsemax": PURPLE, "temperature": ORANGE}
LOOKS: dict[str, Look] = {
    "gcn": Look(BLACK, "s"),
    "gat": Look(ORANGE, "D"),
    "gatv2": Look(RED, "^"),
    "ltga-global": Look(SKY, "v"),
    "ltga-layer": Look(GREEN, "P"),
    "ltga-head": Look(BLUE, "o"),
    "ltga-edge": Look(PURPLE, "X"),
    "frozen-q0.5": Look(SKY, "v", "--"),
    "frozen-q0.8": Look(GREEN, "<", "--"),
    "frozen-q1.0": Look(BLACK, "s", "--"),
    "frozen-q1.2": Look(ORANGE, "D", "--"),
    "frozen-q1.5": Look(RED, "^", "--"),
    "frozen-q2.0": Look(PURPLE, ">", "--"),
    "entmax-1.2": Look(ORANGE, ">", ":"),
    "entmax-1.5": Look(RED, ">", ":"),
    "sparsemax": Look(PURPLE, ">", ":"),
    "gatv2-edge-bias": Look(RED, "p", "-."),
    "gatv2-edge-scale": Look(GREEN, "p", "-."),
    "gatv2-temperature": Look(ORANGE, "p", "-."),
    "dot-softmax": Look(RED, "*", "--"),
    "dot-ltga-head": Look(BLUE, "*", "--"),
    "h2gcn": Look(GREEN, "h"),
    "gprgnn": Look(SKY, "h"),
    "fagcn": Look(ORANGE, "h"),
    "linkx": Look(PURPLE, "h"),
    "gin": Look(GREEN, "8"),
    "features": Look(BLACK, "h"),
    "entmax-head": Look(BLUE, ">", ":"),
    "entmax-edge": Look(SKY, ">", ":"),
    **{
        f"{backbone}-{slot}": Look(colour, marker)
        for backbone, marker in (("classic", "d"), ("separated", "H"))
        for slot, colour in _SLOTS.items()
    },
}
"""Method -> its look in every figure."""


def look(method: str) -> Look:
    """The look of a method; grey for one nobody knows."""
    return LOOKS.get(method, Look(GREY, "."))


def style() -> AbstractContextManager[None]:
    """Inside, figures are drawn in our style, whatever the user's matplotlib settings."""
    return mpl.rc_context(fname=Path(__file__).with_name("ltga.mplstyle"))


def svg_text(figure: Figure, name: str) -> str:
    """The figure as an ``<svg>`` element whose ids cannot collide with those of another on one page."""
    stream = io.StringIO()
    with style():
        figure.savefig(stream, format="svg", metadata={"Date": None})
    text = stream.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    prefix = re.sub(r"[^a-z0-9-]", "-", name.lower())
    numbers: dict[str, int] = {}  # matplotlib's own ids contain addresses in memory; these are the same every time

    def renamed(found: re.Match[str]) -> str:
        return f"{found[1]}{prefix}-{numbers.setdefault(found[2], len(numbers))}"

    return re.sub(r"""(\bid="|href="#|url\(#)([^")]+)""", renamed, text)


def save(figure: Figure, folder: Path, name: str) -> str:
    """Write ``name``.svg and ``name``.png; returns the SVG element."""
    text = svg_text(figure, name)
    header = '<?xml version="1.0" encoding="utf-8"?>\n'
    write_atomic(folder / f"{name}.svg", lambda stream: stream.write((header + text).encode()))
    with style():
        write_atomic(
            folder / f"{name}.png",
            lambda stream: figure.savefig(stream, format="png", dpi=150, metadata={"Software": None}),
        )
    return text
