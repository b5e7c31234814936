"""A record survives the disk, and a run comes back from it without training."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from ltga.data import Dataset
from ltga.errors import RecordError
from ltga.study.reproduce import reproduction_table, to_csv, to_markdown
from ltga.train import Protocol, fit, load_run
from ltga.train.record import run_id


@pytest.mark.parametrize("method", ["ltga-edge", "ltga-global", "gatv2", "linkx", "gcn"])
@pytest.mark.parametrize("init", ["paper", "paired"])
def test_round_trip(small: Dataset, quick: dict, tmp_path: Path, method: str, init: str) -> None:
    run = fit(small, method, 4, protocol=Protocol(epochs=3, warmup=0, init=init, **quick))
    path = run.save(tmp_path)
    again = load_run(path)
    assert again.record == run.record
    assert again.metrics == run.metrics
    data = small.data
    logits = again.model(data.x, data.edge_index)
    np.testing.assert_allclose(logits.log_softmax(-1).detach().numpy(), again.arrays["log_probs"], atol=1e-6)
    assert {file.suffix for file in tmp_path.iterdir()} == {".json", ".npz", ".safetensors"}
    before = {file.suffix: file.read_bytes() for file in tmp_path.iterdir()}
    run.save(tmp_path)
    assert before == {file.suffix: file.read_bytes() for file in tmp_path.iterdir()}


def test_the_record_is_strict_json_and_complete(small: Dataset, quick: dict, tmp_path: Path) -> None:
    path = fit(small, "ltga-edge", protocol=Protocol(epochs=3, **quick)).save(tmp_path)

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    record = json.loads(path.read_text(), parse_constant=refuse)
    assert record["id"] == path.stem == run_id(record["config"])
    assert set(record["metrics"]) == {"train", "val", "test"}
    assert {"accuracy", "macro_f1", "nll", "brier", "ece"} <= set(record["metrics"]["test"])
    assert sum(record["predicted_share"]["test"]) == pytest.approx(1)
    assert len(record["attention"]) == 2 and len(record["attention"][0]["zero_fraction"]) == 2
    assert record["environment"]["versions"]["torch"] and record["timing"]["train_seconds"] > 0
    assert len(record["trajectory"]["q"][0]["mean"]) == 3


def test_edge_covariates(small: Dataset, quick: dict) -> None:
    run = fit(small, "ltga-edge", protocol=Protocol(epochs=3, warmup=0, **quick))
    arrays = {name: torch.from_numpy(values) for name, values in run.arrays.items()}
    source, target = arrays["edge_index"]
    x, loops = small.data.x, source == target
    torch.testing.assert_close(
        arrays["feature_cosine"], torch.cosine_similarity(x[source], x[target]), atol=1e-5, rtol=0
    )
    assert arrays["embedding_cosine"][loops].allclose(torch.ones(()), atol=1e-4)
    incoming = target[~loops].bincount(minlength=len(x))
    assert arrays["target_degree"].long().equal(incoming[target])
    assert arrays["source_degree"].long().equal(incoming[source])
    for layer in ("layer1", "layer2"):
        gap = arrays[f"{layer}_score_gap"]
        assert gap.shape == arrays[f"{layer}_q"].shape == arrays[f"{layer}_weight"].shape == (len(source), 2)
        assert float(gap.min()) == 0.0 and (arrays[f"{layer}_logit_magnitude"] >= 0).all()
        nearest = torch.zeros(len(x), 2).index_add(0, target, (gap == 0).float())
        assert (nearest >= 1).all()  # every neighbourhood has a highest score


def test_the_id_depends_on_everything_that_matters(small: Dataset, quick: dict) -> None:
    base = {"method": "gcn", "seed": 1, "split": 0, "protocol": Protocol(epochs=1, **quick)}
    changes: list[dict] = [
        {}, {"method": "gat"}, {"seed": 2}, {"split": 1}, {"protocol": Protocol(epochs=1, lr=0.1, **quick)},
    ]  # fmt: skip
    ids = {fit(small, **{**base, **change}).record["id"] for change in changes}
    assert len(ids) == len(changes)


def test_damage_is_reported(small: Dataset, quick: dict, tmp_path: Path) -> None:
    path = fit(small, "gatv2", protocol=Protocol(epochs=1, **quick)).save(tmp_path)
    whole = {suffix: path.with_suffix(suffix).read_bytes() for suffix in (".json", ".npz", ".safetensors")}
    for suffix, content in whole.items():
        file = path.with_suffix(suffix)
        for broken in (content[: len(content) // 2], b"", None):
            file.unlink() if broken is None else file.write_bytes(broken)
            with pytest.raises(RecordError):
                load_run(path)
            file.write_bytes(content)
    path.write_text(json.dumps({**json.loads(whole[".json"]), "schema": 99}))
    with pytest.raises(RecordError, match="schema 99"):
        load_run(path)


def test_the_table_resumes(small: Dataset, quick: dict, tmp_path: Path) -> None:
    arguments = (["gcn", "ltga-head"], [small], (1, 2))
    options = {"store": tmp_path, "protocol": {"epochs": 2, **quick}}
    cells = reproduction_table(*arguments, **options)  # type: ignore[arg-type]
    stored = sorted(tmp_path.glob("*.json"))
    assert len(stored) == 4
    times = [file.stat().st_mtime_ns for file in stored]
    stored[0].write_text("{")  # a damaged record is run again
    seen: list[dict] = []
    assert reproduction_table(*arguments, **options, on_run=seen.append) == cells  # type: ignore[arg-type]
    assert len(seen) == 4
    assert [file.stat().st_mtime_ns for file in stored][1:] == times[1:]
    paper = {("gcn", small.name): cells[0].printed, ("ltga-head", small.name): "1.0±0.1"}
    text = to_markdown(cells, paper)
    assert f"{cells[0].printed} ✓" in text and "(paper 1.0±0.1)" in text and "1 of 2 cells match" in text
    assert to_csv(cells, paper).count("\n") == 3
