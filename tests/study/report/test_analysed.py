"""Sections that need trained models, from small real runs: numbers against loops, kept results, archives, figures."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from typer.testing import CliRunner

from ltga.cli.app import app
from ltga.data import Dataset, load_dataset
from ltga.study import EXPERIMENTS, Experiment, Store, run_suite
from ltga.study.analyses.every_analysis import ANALYSES
from ltga.study.analyses.inputs import attention_of, task_of
from ltga.study.analyses.kept_results import Kept, folder_of, with_results
from ltga.study.analyses.smoothing import layer_embeddings
from ltga.study.archive import rounded, write_archive
from ltga.study.experiment import grid, sweep, union
from ltga.study.report import Section, Study, Table, make_section, pivots, write_report
from ltga.study.report.analysis_table import lacking
from ltga.study.report.figures.style import look
from ltga.study.report.names import label
from ltga.study.report.sections import PARTS
from ltga.study.report.tables import Cell
from ltga.train import Protocol
from ltga.train.finished import Run, load_run
from oracles.figures import covering

NOISE, SMALL = "digits-noise:k=1,planted_per_edge=1", "csbm:num_nodes=60"
TINY: dict[str, Any] = {"epochs": 3, "hidden_channels": 3, "heads": 2, "warmup": 0, "lr": 0.05}
SEEDS = (1, 2)


def like(name: str, runs: Any) -> Experiment:
    """An experiment of the study on other runs."""
    return replace(EXPERIMENTS[name], runs=runs)


PRUNING = like("pruning", grid([NOISE], ["ltga-head", "frozen-q2.0"], SEEDS, **TINY))
GATE = like("gate", grid([NOISE], ["ltga-edge"], SEEDS, **TINY))
LORENZ = like("attention-concentration", grid([SMALL], ["gat", "ltga-edge"], SEEDS, **TINY))
DEPTH = like("depth", tuple(
    replace(spec, protocol=Protocol(**TINY).with_overrides(num_layers=spec.protocol.num_layers))
    for spec in sweep([SMALL], ["gcn", "ltga-head"], SEEDS, "num_layers", [2, 3])
))  # fmt: skip
EDGE_Q = like("edge-q", GATE.runs)
CALIBRATION = like("calibration", grid([SMALL], ["gat", "ltga-edge"], SEEDS, **TINY))
ALL = (PRUNING, GATE, LORENZ, DEPTH, EDGE_Q, CALIBRATION)


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("analysed")
    tally = run_suite(union(*(experiment.runs for experiment in ALL)), folder)
    assert not tally.failed
    for run, _ in the_runs(folder, PRUNING, method="frozen-q2.0"):
        with torch.no_grad():
            for name, parameter in run.model.named_parameters():
                if name.endswith(".att"):
                    parameter.mul_(40)  # three epochs are too few for logits that prune
        run.save(folder)
    study = Study(folder)
    for experiment in ALL:
        assert not lacking(study, experiment, PARTS[experiment.name].analysis or "")  # fills folder / "analyses"
    return folder


@pytest.fixture
def told() -> list[str]:
    return []


def at(table: Table, column: str, **row: str) -> Cell:
    heads = [column.label for column in table.columns]
    wanted = {heads.index(name.replace("_", " ")): value for name, value in row.items()}
    (found,) = (cells for cells in table.rows if all(cells[k].text == value for k, value in wanted.items()))
    return found[heads.index(column)]


def the_runs(store: Path, experiment: Experiment, **where: object) -> Iterator[tuple[Run, Dataset]]:
    for spec, record in Study(store).runs(experiment).items():
        if all(getattr(spec, key, getattr(spec.protocol, key, None)) == value for key, value in where.items()):
            yield load_run(store / f"{record['id']}.json"), load_dataset(spec.dataset)


def edges_by_hand(run: Run, data: Dataset, layer: int, head: str) -> dict[str, list[Any]]:
    """Pairs of edge and head (or edges, for all heads), self-loops aside: pruned, same class, degree, planted."""
    edges, weights = attention_of(run, task_of(run, data))[layer - 1]
    train = data.split(run.record["config"]["split"])[0]
    degree = np.bincount(data.data.edge_index[1].numpy(), minlength=len(data.data.y))
    planted = dict(zip(map(tuple, data.data.edge_index.T.tolist()), data.data.planted_edge.tolist()))
    found: dict[str, list[Any]] = {"pruned": [], "same": [], "degree": [], "planted": []}
    for (i, j), row in zip(edges.T.tolist(), weights.tolist()):
        if i == j:
            continue
        for zero in [w == 0 for w in row] if head == "one" else [all(w == 0 for w in row)]:
            found["pruned"].append(zero)
            found["same"].append(float(data.data.y[i] == data.data.y[j]) if train[i] and train[j] else np.nan)
            found["degree"].append(degree[j])
            found["planted"].append(planted[i, j])
    return {name: np.array(values) for name, values in found.items()}


@pytest.mark.parametrize(("head", "words"), [("one", "a head"), ("all", "every head")])
@pytest.mark.parametrize("layer", [1, 2])
def test_pruned_edges_against_a_loop(store: Path, layer: int, head: str, words: str) -> None:
    edges, planted = (make(Study(store), PRUNING) for make in (pivots.PRUNED_EDGES, pivots.PLANTED_EDGES))
    row = {"dataset": NOISE, "method": label("frozen-q2.0"), "layer": str(layer), "pruned_by": words}
    runs = [edges_by_hand(*pair, layer, head) for pair in the_runs(store, PRUNING, method="frozen-q2.0")]
    assert all(run["pruned"].any() and not run["pruned"].all() for run in runs)

    def mean(values: Any) -> Any:
        return pytest.approx(np.mean(list(values)))

    share = mean(100 * run["pruned"].mean() for run in runs)
    assert at(edges, "share pruned (%)", **row).number == share == at(planted, "share pruned (%)", **row).number
    for side, chosen in (("pruned", lambda run: run["pruned"]), ("kept", lambda run: ~run["pruned"])):
        wanted = mean(100 * np.nanmean(run["same"][chosen(run)]) for run in runs)
        assert at(edges, f"same label: {side} (%)", **row).number == wanted
        assert at(edges, f"degree: {side}", **row).number == mean(run["degree"][chosen(run)].mean() for run in runs)
    heads = TINY["heads"] if head == "one" else 1
    labelled = mean((~np.isnan(run["same"][run["pruned"]])).sum() / heads for run in runs)
    assert at(edges, "labelled pruned edges", **row).number == labelled
    assert at(planted, "precision (%)", **row).number == mean(
        100 * run["planted"][run["pruned"]].mean() for run in runs
    )
    assert at(planted, "recall (%)", **row).number == mean(100 * run["pruned"][run["planted"]].mean() for run in runs)
    assert at(planted, "base rate (%)", **row).number == pytest.approx(50)


def test_counterfactuals_start_from_the_records(store: Path) -> None:
    study = Study(store)
    table = pivots.COUNTERFACTUALS(study, PRUNING)
    accuracies = [r["metrics"]["test"]["accuracy"] for s, r in study.runs(PRUNING).items() if s.method == "ltga-head"]
    learned = at(table, "learned (%)", dataset=NOISE, method="LTGA-Head")
    assert learned.number == pytest.approx(100 * np.mean(accuracies)) and len(learned.runs) == len(SEEDS)
    assert at(table, "same label: pruned (%)", dataset=NOISE, method="LTGA-Head").text in ("n/a", "0.0±0.0")


def test_gate_against_scipy(store: Path) -> None:
    table = pivots.COVARIATES(Study(store), GATE)
    averaged, single = [], []
    for run, _ in the_runs(store, GATE):
        arrays = run.arrays
        proper = arrays["edge_index"][0] != arrays["edge_index"][1]
        q, gap = (arrays[f"layer2_{name}"][proper].astype(float) for name in ("q", "score_gap"))
        averaged.append(stats.spearmanr(q.mean(1), gap.mean(1)).statistic)
        single.append(np.mean([stats.spearmanr(q[:, k], gap[:, k]).statistic for k in range(q.shape[1])]))
    row = {"dataset": NOISE, "layer": "2", "covariate": "score gap"}
    assert at(table, "ρ", **row).number == pytest.approx(np.mean(averaged))
    assert at(table, "ρ, one head", **row).number == pytest.approx(np.mean(single))


def test_gini_and_its_curve_against_all_pairs(store: Path) -> None:
    study = Study(store)
    table = pivots.CONCENTRATION(study, LORENZ)
    found = []
    for run, data in the_runs(store, LORENZ, method="gat"):
        _, weights = attention_of(run, task_of(run, data))[0]
        w = weights.double().numpy().ravel()
        found.append(np.abs(w[:, None] - w[None, :]).mean() / (2 * w.mean()))
        frames = study.analysis(run.record, "concentration")
        assert frames is not None
        lightest = np.sort(w)[: len(w) // 2].sum() / w.sum()
        assert frames["curves"].set_index("population")["attention"][0.5] == pytest.approx(lightest, abs=0.01)
    assert at(table, "Gini", dataset=SMALL, method="GAT").number == pytest.approx(np.mean(found))


def test_smoothing_against_a_loop(store: Path) -> None:
    table = pivots.DEPTH(Study(store), DEPTH)
    energies, distances = [], []
    for run, data in the_runs(store, DEPTH, method="gcn", num_layers=3):
        x = layer_embeddings(run.model, task_of(run, data))[-2].double().numpy()
        length = np.linalg.norm(x, axis=1)
        cosine = np.divide(
            x @ x.T, np.outer(length, length), out=np.full((60, 60), np.nan), where=np.outer(length, length) > 0
        )
        source, target = data.data.edge_index.numpy()
        energies.append(np.nanmean([1 - cosine[i, j] for i, j in zip(source, target) if i != j]))
        distances.append(np.nanmean([1 - cosine[i, j] for i in range(60) for j in range(60) if i != j]))
    assert at(table, "3 layers: energy", dataset=SMALL, method="GCN").number == pytest.approx(np.mean(energies))
    assert at(table, "3 layers: MAD", dataset=SMALL, method="GCN").number == pytest.approx(np.mean(distances))


@pytest.mark.parametrize("experiment", ALL, ids=lambda experiment: experiment.name)
def test_figures_are_drawn_and_legible(store: Path, experiment: Experiment) -> None:
    section = make_section(Study(store), experiment)
    assert section.drawings and not section.remarks
    assert not [pair for drawing in section.drawings for pair in covering(drawing.figure)]


def texts_of(section: Section) -> list[list[str]]:
    return [[cell.text for cell in row] for table in section.tables for row in table.rows]


@pytest.mark.parametrize("experiment", ALL, ids=lambda experiment: experiment.name)
def test_an_archive_says_the_same_without_models(store: Path, tmp_path: Path, experiment: Experiment) -> None:
    archive = tmp_path / "records.jsonl.gz"
    write_archive(archive, with_results(Store(store).records(), Kept(folder_of(store))))
    packed, stored = (make_section(Study(place, tmp_path / "no data"), experiment) for place in (archive, store))
    assert texts_of(packed) == texts_of(stored) and not packed.remarks
    assert [drawing.name for drawing in packed.drawings] == [drawing.name for drawing in stored.drawings]


@pytest.mark.parametrize("experiment", ALL, ids=lambda experiment: experiment.name)
def test_without_models_and_results_a_section_says_so(store: Path, tmp_path: Path, experiment: Experiment) -> None:
    archive = tmp_path / "records.jsonl.gz"
    write_archive(archive, Store(store).records())
    section = make_section(Study(archive), experiment)
    assert (
        "could be analysed" in section.remarks[0] and "an archive has neither arrays nor models" in section.remarks[0]
    )
    if experiment not in (EDGE_Q, CALIBRATION):  # which have a figure only, or a table that needs no analysis
        assert "not analysed" in {text for row in texts_of(section) for text in row}
    assert str(tmp_path) not in section.remarks[0]


DAMAGE = {
    "empty": lambda text: "",
    "truncated": lambda text: text[:-40],
    "not-an-object": lambda text: "[1]",
    "a-digit-changed": lambda text: text.replace("0.", "1.", 1) if "0." in text else text[:-3],
    "another-version": lambda text: text.replace('"version": 1', '"version": 0'),
    "another-outcome": lambda text: text.replace('"outcome": "', '"outcome": "0'),
    "a-column-lost": lambda text: text.replace('"dirichlet_energy"', '"something"'),
    "not-a-number": lambda text: json.dumps({**json.loads(text), "tables": float("nan")}),
    "deep": lambda text: "[" * 100_000,
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_result_is_made_again(store: Path, tmp_path: Path, told: list[str], kind: str) -> None:
    kept = shutil.copytree(folder_of(store), tmp_path / "kept")
    before = pivots.DEPTH(Study(store), DEPTH)
    victim = sorted(kept.glob("*.smoothing.json"))[0]
    whole = victim.read_text()
    victim.write_text(DAMAGE[kind](whole))
    assert victim.read_text() != whole
    assert pivots.DEPTH(Study(store, analyses=kept, watch=told.append), DEPTH) == before
    assert len(told) == 1 and victim.read_text() == whole
    assert pivots.DEPTH(Study(store, analyses=kept, watch=told.append), DEPTH) == before
    assert len(told) == 1


def test_a_result_with_another_shape_does_not_count(store: Path) -> None:
    (record,) = list(with_results(Store(store).records(), Kept(folder_of(store))))[:1]
    (name, body), *_ = record["analyses"].items()
    table, columns = next(iter(body["tables"].items()))
    study = Study(store / f"{record['id']}.json")
    for column, values in (("layer", ["1"]), ("layer", [[1]]), ("layer", None), ("layer", [])):
        broken = {
            **record,
            "analyses": {name: {**body, "tables": {**body["tables"], table: {**columns, column: values}}}},
        }
        if column in ANALYSES[name].tables[table]:
            assert study.analysis({**broken, "id": f"{values}"}, name) is None
    for junk in (None, 3, {name: 3}, {name: {"version": 1}}, {name: {"version": 1, "tables": []}}):
        assert study.analysis({**record, "analyses": junk, "id": repr(junk)}, name) is None


def test_q_over_edges_against_a_loop(store: Path) -> None:
    (drawing,) = make_section(Study(store), EDGE_Q).drawings
    (axis,) = drawing.figure.axes
    q, first = [], []
    for run, _ in the_runs(store, EDGE_Q):
        proper = run.arrays["edge_index"][0] != run.arrays["edge_index"][1]
        q += run.arrays["layer2_q"][proper].ravel().tolist()
        first.append(float(run.arrays["layer1_q"][proper].mean()))
    for bar in axis.patches[1:]:  # the first is the shaded region
        low, high = bar.get_x(), bar.get_x() + bar.get_width()
        inside = sum(low <= value < high for value in q)
        assert bar.get_height() == pytest.approx(100 * inside / len(q), abs=200 / len(q))  # a value on a bin's edge
    assert sum(bar.get_height() for bar in axis.patches[1:]) == pytest.approx(100)
    assert any(line.get_xdata()[0] == pytest.approx(np.mean(first), rel=1e-5) for line in axis.lines)


def test_reliability_against_a_loop(store: Path) -> None:
    reliability, _ = make_section(Study(store), CALIBRATION).drawings
    (axis,) = reliability.figure.axes
    drawn = {line.get_color(): line.get_xydata() for line in axis.lines[1:]}  # the first is the diagonal
    for method in CALIBRATION.methods:
        bins: dict[int, list[tuple[float, bool]]] = {}
        for run, data in the_runs(store, CALIBRATION, method=method):
            test = data.split(run.record["config"]["split"])[2].nonzero().ravel().tolist()
            for node in test:
                probs = np.exp(run.arrays["log_probs"][node].astype(float))
                bins.setdefault(math.ceil(15 * probs.max()), []).append(
                    (probs.max(), probs.argmax() == data.data.y[node])
                )
        expected = [np.mean(values, axis=0) for _, values in sorted(bins.items())]
        np.testing.assert_allclose(drawn[look(method).colour], expected, rtol=1e-5)


def test_an_earlier_reports_figure_does_not_stay(store: Path, tmp_path: Path) -> None:
    folder = tmp_path / "figures"
    folder.mkdir()
    for name in ("depth-old.png", "calibration.svg", "headline-tests.png", "mine.png", "depth.txt"):
        (folder / name).write_text("")
    write_report([DEPTH], store, tmp_path)
    assert {path.name for path in folder.iterdir()} == {
        "calibration.svg", "headline-tests.png", "mine.png", "depth.txt",
        "depth.svg", "depth.png", "depth-smoothing.svg", "depth-smoothing.png"
    }  # fmt: skip


def test_a_result_outlives_rounding_of_its_record_but_not_another_outcome(store: Path) -> None:
    record = next(Store(store).records())
    kept, name = Kept(folder_of(store)), next(folder_of(store).glob(f"{record['id']}.*")).name.split(".")[1]
    assert kept.read(rounded(record), name) is not None
    record["metrics"]["test"]["accuracy"] += 0.01
    assert kept.read(record, name) is None


def test_results_that_cannot_be_kept_are_shown_all_the_same(store: Path, tmp_path: Path) -> None:
    (tmp_path / "a file").write_text("")
    section = make_section(Study(store, analyses=tmp_path / "a file"), DEPTH)
    assert not section.remarks and "not analysed" not in {text for row in texts_of(section) for text in row}


def test_under_paired_initialisation_our_own_number_stands_beside(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ltga.study.report.runs.EXPERIMENTS", {"gate": GATE})
    twin = replace(GATE, name="gate-paired")  # the same runs under another name
    table = make_section(Study(store), twin).tables[0]
    assert table.reference == "paper's init"
    cell = at(table, "mean q", dataset=NOISE, layer="1")
    assert cell.reference == cell.text and cell.same


def test_the_commands(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ltga.study.find_experiments", lambda names: [DEPTH])
    archive, out = tmp_path / "records.jsonl.gz", tmp_path / "out"
    result = CliRunner().invoke(app, ["suite", "export", str(archive), "--store", str(store)])
    assert result.exit_code == 0, result.output
    result = CliRunner().invoke(app, ["suite", "report", "depth", "--store", str(archive), "--out", str(out)])
    assert result.exit_code == 0 and "1 tables and 2 figures from 8 runs" in result.stdout, result.output
    assert (out / "figures" / "depth-smoothing.png").exists()
