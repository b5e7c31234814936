"""Status: what is counted as what, and the time the rest needs."""

import json

import pytest

import ltga.study.engines.engine
from ltga.errors import RecordError
from ltga.study import Experiment, RunSpec, Store, find_records, run_suite
from ltga.study.durations import Durations
from ltga.study.status import status
from ltga.train.record import run_id
from ltga.train.storage import encode_record
from oracles.records import make_record


@pytest.fixture
def no_data(tmp_path, monkeypatch):
    monkeypatch.delenv("LTGA_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def record(dataset, method, seconds, run="x", **protocol):
    made = make_record(dataset, method)
    config = {**made["config"], "protocol": {**made["config"]["protocol"], **protocol}}
    return {**made, "id": run, "config": config, "timing": {"train_seconds": seconds, "observe_seconds": 0.0}}


def test_runs_are_counted_by_state_and_shared_ones_once(tmp_path, tiny, monkeypatch, no_data) -> None:
    real = ltga.study.engines.engine.fit

    def fails(dataset, method, seed, **settings):
        if seed == 2:
            raise ValueError("no")
        return real(dataset, method, seed, **settings)

    monkeypatch.setattr(ltga.study.engines.engine, "fit", fails)
    run_suite([tiny(1), tiny(2)], tmp_path)
    first = Experiment("a", "A", "tab:a", "it", (tiny(1), tiny(2), tiny(3), tiny(1, dataset="roman-empire")))
    second = Experiment("b", "B", "tab:b", "it", (tiny(1), tiny(4)))
    found = status([first, second], Store(tmp_path))
    a, b, total = found.experiments["a"], found.experiments["b"], found.total
    assert (a.done, a.missing, a.failed, a.impossible, a.unknown) == (1, 1, 1, 1, 0)
    assert (b.done, b.missing, b.failed, b.impossible) == (1, 1, 0, 0)
    assert (total.done, total.missing, total.failed, total.impossible) == (1, 2, 1, 1)
    (done,) = Store(tmp_path).records()
    expected = done["timing"]["train_seconds"] + done["timing"]["observe_seconds"]
    assert a.seconds == pytest.approx(expected) and total.seconds == pytest.approx(2 * expected)
    assert found.absent == {"roman-empire": "roman-empire: not on this machine"}
    plain = json.loads(json.dumps(found.as_json([first, second])))
    assert plain["experiments"][0]["label"] == "tab:a" and plain["total"]["missing"] == 2


def test_a_record_counts_where_its_data_is_not(tmp_path, tiny, no_data) -> None:
    spec = tiny(1, dataset="roman-empire")
    run_suite([tiny(1)], tmp_path)
    (made,) = Store(tmp_path).records()

    def store_of_graph(fingerprint: str) -> str:
        config = {**made["config"], "dataset": {"name": "roman-empire", "fingerprint": fingerprint}}
        record = {**made, "config": config, "id": run_id(config)}
        (tmp_path / f"{record['id']}.json").write_bytes(encode_record(record))
        return record["id"]

    run = store_of_graph("elsewhere")
    found = status([Experiment("a", "A", "tab:a", "it", (spec,))], Store(tmp_path))
    assert found.total.done == 1 and found.total.impossible == 0
    assert find_records([spec], Store(tmp_path).records())[spec]["id"] == run
    store_of_graph("another")
    with pytest.raises(RecordError, match="different graphs"):
        find_records([spec], Store(tmp_path).records())


def test_a_run_on_sampled_neighbourhoods_is_not_one_of_the_study() -> None:
    spec = RunSpec("wisconsin", "gat", 1)
    record = make_record("wisconsin", "gat", 1)
    assert spec in find_records([spec], [record])
    record["config"]["minibatch"] = {"batch_size": 512}
    assert find_records([spec], [record]) == {}


def test_the_closest_likeness_tells_the_time(tiny) -> None:
    spec = tiny(1)
    alike = spec.protocol.model_dump()
    durations = Durations()
    assert durations.of(spec) is None and durations.total([spec, spec]) == (0, 2)
    durations.learn(record("csbm:degree=7", "gcn", 1.0))
    assert durations.of(spec) == 1.0  # another graph of its kind
    durations.learn(record(spec.dataset, "gcn", 2.0))
    assert durations.of(spec) == 2.0  # the same graph
    durations.learn(record(spec.dataset, spec.method, 3.0, warmup=7))
    assert durations.of(spec) == 3.0  # the same graph and method
    for seconds in (4.0, 6.0, 500.0):
        durations.learn(record(spec.dataset, spec.method, seconds, **alike))
    assert durations.of(spec) == 6.0  # the median of the same protocol
    assert durations.total([spec, tiny(1, dataset="texas")]) == (6.0, 1)


def test_a_run_on_another_split_is_another_run() -> None:
    usual = RunSpec("wisconsin", "gat", 3)
    first = RunSpec("wisconsin", "gat", 3, split=0)
    same = RunSpec("wisconsin", "gat", 3, split=2)  # seed 3 has split 2 anyway
    records = []
    for split in (2, 0):
        made = make_record("wisconsin", "gat", 3)
        records.append({**made, "id": str(split), "config": {**made["config"], "split": split}})
    found = find_records([usual, first, same], records)
    assert {spec: record["id"] for spec, record in found.items()} == {usual: "2", first: "0", same: "2"}
    assert str(first) == "wisconsin, gat, seed 3, split 0"
    for record in records:  # of a graph of one's own it is not known which split belongs to a seed
        record["config"]["dataset"]["name"] = "mine"
    mine = [RunSpec("mine", "gat", 3, split=split) for split in (0, 2, 5)]
    assert {spec.split: record["id"] for spec, record in find_records(mine, records).items()} == {0: "0", 2: "2"}
    with pytest.raises(RecordError, match="splits"):
        find_records([RunSpec("mine", "gat", 3)], records)
