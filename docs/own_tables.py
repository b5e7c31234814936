"""The tables of our own experiments, from results/own.jsonl.gz and what lies beside it."""

from __future__ import annotations

import json
from pathlib import Path

from markdown_table import markdown
from when_figure import compared, settings

from ltga.study import recipe
from ltga.study.archive import stored_records
from ltga.study.experiments import EXPERIMENTS
from ltga.study.lookup import find_records
from ltga.study.when import COMPARED
from ltga.train.record import Record

ROOT = Path(__file__).parents[1]


def development() -> str:
    """Every candidate for the recommended protocol, from results/recipe-development.json."""
    measured = json.loads((ROOT / "results" / "recipe-development.json").read_text())
    return markdown(*recipe.development_rows(measured))


def sizes() -> str:
    """Validation accuracy and seconds of networks of several sizes, from results/recipe-sizes.json."""
    return markdown(*recipe.size_rows(json.loads((ROOT / "results" / "recipe-sizes.json").read_text())))


def noise() -> str:
    """The recommended protocol under planted noise."""
    return markdown(*recipe.noise_rows(_own("recipe-noise"), EXPERIMENTS["recipe-noise"].datasets))


def bars() -> str:
    """How far the recommended method is from the best rival under noise, at every budget of epochs."""
    return markdown(*recipe.bar_rows(_own("recipe-noise"), EXPERIMENTS["recipe-noise"].datasets))


def recommended() -> str:
    """The recommended protocol on the benchmarks."""
    return markdown(*recipe.against_rows(_own("recipe"), EXPERIMENTS["recipe"].datasets))


def roman() -> str:
    """The paper's protocol on Roman-Empire's graph."""
    return markdown(*recipe.against_rows(_own("roman-words"), ["roman-words"]))


def roman_grid() -> str:
    """Frozen q, entmax, controls and dot products on Roman-Empire's graph, the paper's protocol."""
    asked = ("frozen-q-paired", "entmax-paired", "edge-controls-paired", "composition-paired")
    records = {record["id"]: record for name in asked for record in _own(name)}
    chosen = [record for record in records.values() if record["config"]["dataset"]["name"] == "roman-words"]
    chosen.sort(key=lambda record: record["config"]["method"])
    return markdown(*recipe.against_rows(chosen, ["roman-words"]))


def deep() -> str:
    """What was run of the deep backbones with fewer blocks and epochs than published."""
    return _backbones("backbones-short")


def tuned() -> str:
    """What was run of the deep backbones with their authors' settings."""
    return _backbones("backbones")


def _backbones(experiment: str) -> str:
    """Each slot beside softmax in the same backbone."""
    records = _own(experiment)
    rows = []
    for backbone in dict.fromkeys(record["config"]["method"].partition("-")[0] for record in records):
        of = [record for record in records if record["config"]["method"].startswith(backbone)]
        header, found = recipe.against_rows(of, EXPERIMENTS[experiment].datasets, f"{backbone}-softmax")
        rows += found
    if not rows:
        return f"Not run yet: `ltga suite run {experiment}`."
    return markdown([cell.replace("GATv2", "softmax") for cell in header], rows)


def when() -> str:
    """What sparse attention gains over softmax on every graph of the experiment, in accuracy and in epochs."""
    known = settings()
    header = ["graph", "neighbours", "of one class", "to learn from", "seeds", *(
        f"{label}: {what}" for label in COMPARED.values() for what in ("points", "speed")
    )]  # fmt: skip
    rows = []
    for name, found in compared().items():
        told = known[name]
        cells = [
            f"{gain.points:+.1f} | ×{gain.speed:.1f}" if (gain := found.get(method)) else " | " for method in COMPARED
        ]
        seeds = max(gain.seeds for gain in found.values())
        rows.append([
            name, f"{told.neighbours:g}", f"{100 * told.agreement:.0f} %", f"{100 * told.labels:.1f} %", str(seeds),
            *(half for cell in cells for half in cell.split(" | ")),
        ])  # fmt: skip
    return markdown(header, rows)


def _own(experiment: str | None = None) -> list[Record]:
    """Records of our own experiments; of one of them if it is named."""
    records = stored_records(ROOT / "results" / "own.jsonl.gz")
    if experiment is None:
        return records
    return list(find_records(EXPERIMENTS[experiment].runs, records).values())


OWN_TABLES = (development, sizes, noise, bars, recommended, roman, roman_grid, deep, tuned, when)
