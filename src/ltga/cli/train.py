"""``ltga train``: several methods, a few seeds, live progress, and a table that says what q did."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from ltga.cli.allocator import keep_freed_memory
from ltga.data import Dataset, load_dataset
from ltga.nn import LTGA
from ltga.nn.methods import find_method
from ltga.train import EpochInfo, Protocol, Run, fit
from ltga.train.progress import describe


def train_and_compare(
    console: Console, dataset: str, methods: list[str], seeds: int, init: str, out: Path, data: Path | None
) -> None:
    """Train every method with every seed, store the runs and print a comparison."""
    keep_freed_memory()
    names = [find_method(name).name for name in methods]
    graph = load_dataset(dataset, data)
    # The embedded graph is small: 4 heads of 16 channels show the same in a fraction of the time.
    small = {"hidden_channels": 16, "heads": 4} if graph.name == "digits-noise" else {}
    protocol = Protocol(init=init, **small)
    console.print(
        f"[bold]{graph.name}[/bold]: {graph.data.num_nodes:,} nodes, {graph.data.num_edges:,} edges, "
        f"{graph.num_classes} classes; {len(names)} methods x {seeds} seeds",
        highlight=False,
    )
    runs: dict[str, list[Run]] = {name: [] for name in names}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("compiling kernels (first time only)", total=len(names) * seeds)
        for name in names:
            for seed in range(1, seeds + 1):

                def show(info: EpochInfo, name: str = name, seed: int = seed) -> None:
                    progress.update(bar, description=f"{name}, seed {seed}: {describe(info)}")

                run = fit(graph, name, seed, protocol=protocol, callbacks=(show,))
                run.save(out)
                runs[name].append(run)
                progress.advance(bar)
    console.print(_table(graph, runs))
    for sentence in _sentences(graph, runs):
        console.print(sentence, highlight=False)
    console.print(f"Runs are in {out}/.", highlight=False)


def _table(graph: Dataset, runs: dict[str, list[Run]]) -> Table:
    table = Table(box=None, header_style="bold")
    table.add_column("method")
    for heading in (f"test {graph.metric}", "ECE", "mean q", "exact zeros", "seconds a run"):
        table.add_column(heading, justify="right")
    for name, group in runs.items():
        records = [run.record for run in group]
        scores = [100 * run.metrics[graph.metric] for run in group]
        spread = f" ± {statistics.stdev(scores):.1f}" if len(scores) > 1 else ""
        table.add_row(
            find_method(name).label,
            f"{statistics.fmean(scores):.1f}{spread}",
            f"{statistics.fmean(run.metrics['ece'] for run in group):.3f}",
            _mean_q(group),
            f"{100 * statistics.fmean(map(_zero_fraction, records)):.1f} %" if "attention" in records[0] else "",
            f"{statistics.fmean(record['timing']['train_seconds'] for record in records):.1f}",
        )
    return table


def _mean_q(group: list[Run]) -> str:
    if "attention" not in group[0].record:
        return ""
    learned = [run for run in group if isinstance(run.model, LTGA) and run.model.convs[0].normalizer != "softmax"]
    values = [q for run in learned for q in _final_q(run)]
    return f"{statistics.fmean(values):.2f}" if values else "1 (softmax)"


def _final_q(run: Run) -> list[float]:
    """Every layer's and head's q at the best epoch (means over edges for a gate)."""
    epoch = run.record["best_epoch"] - 1
    return [value for layer in run.record["trajectory"]["q"] for value in layer["mean"][epoch]]


def _zero_fraction(record: dict[str, Any]) -> float:
    return statistics.fmean(value for layer in record["attention"] for value in layer["zero_fraction"])


def _sentences(graph: Dataset, runs: dict[str, list[Run]]) -> list[str]:
    """What the index did and, where planted edges are known, whether the ignored ones were noise."""
    sentences = []
    planted = graph.data.get("planted_edge")
    for name, group in runs.items():
        if find_method(name).family != "learned q":
            continue
        values = [q for run in group for q in _final_q(run)]
        mean = statistics.fmean(values)
        moved = "stayed at 1: softmax is what this graph wants" if abs(mean - 1) < 0.01 else f"moved to {mean:.2f}"
        sentence = f"{find_method(name).label}: q {moved}."
        if planted is not None:
            zero = noise = 0
            for run in group:
                for layer in run.model.attend(graph.data.x, graph.data.edge_index):  # type: ignore[operator]
                    ignored = layer.weights[: len(planted)] == 0  # self-loops come last
                    zero += int(ignored.sum())
                    noise += int(ignored[planted].sum())
            share = 100 * float(planted.float().mean())
            if zero:
                sentence += (
                    f" Of the weights it set to exactly zero, {100 * noise / zero:.1f} % lie on planted noise edges "
                    f"({share:.0f} % of all edges are planted)."
                )
        sentences.append(sentence)
    return sentences
