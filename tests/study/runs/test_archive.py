"""Archives of records: what goes in comes out, damage is named, nothing unpacks without end, imports are marked."""

import gzip
import hashlib
import json
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ltga.errors import RecordError
from ltga.study import Store, archive
from ltga.study.archive import read_archive, stored_records, unpack_archive, write_archive
from ltga.study.stats import paired_test
from ltga.train.record import run_id
from oracles.records import make_record

COMMITTED = Path(__file__).resolve().parents[3] / "results" / "records.jsonl.gz"


def record(seed, accuracy=0.5, **changes):
    return make_record(seed=seed, test=accuracy) | changes


def raw(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def pack(path: Path, *lines: bytes) -> Path:
    path.write_bytes(gzip.compress(b"".join(line + b"\n" for line in lines), mtime=0))
    return path


def edited(one: dict[str, Any], *place: str, to: Any) -> bytes:
    """The record with another value somewhere and the id that follows, as a forger would write it."""
    copy = json.loads(json.dumps(one))
    inside = copy
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = to
    return json.dumps(copy | {"id": run_id(copy["config"]) if isinstance(copy["config"], dict) else "0" * 64}).encode()


def test_round_trip_in_order_of_id(tmp_path):
    path = tmp_path / "deep" / "records.jsonl.gz"
    records = [record(2), record(1, 1 / 3)]
    assert write_archive(path, [*records, records[0]]) == 2
    found = list(read_archive(path))
    assert [one["id"] for one in found] == sorted(one["id"] for one in records)
    assert {one["config"]["seed"]: one["metrics"]["test"]["accuracy"] for one in found} == {1: 1 / 3, 2: 0.5}


def test_a_run_and_its_archived_copy_tie(tmp_path):
    """Rounded metrics would make wins and losses of runs that are equal."""
    values = {1: 15 / 37, 2: 0.1 + 0.2, 3: 2 / 3}
    write_archive(tmp_path / "a.gz", [record(i, value, history=[1 / 3]) for i, value in values.items()])
    found = list(read_archive(tmp_path / "a.gz"))
    archived = {one["config"]["seed"]: one["metrics"]["test"]["accuracy"] for one in found}
    assert paired_test(list(values.values()), [archived[i] for i in values]).counts == (0, 0, 3)
    assert found[0]["history"] == [0.333333]


def test_the_same_records_give_the_same_bytes(tmp_path):
    first, second = tmp_path / "a.gz", tmp_path / "b.gz"
    write_archive(first, [record(1), record(2)])
    write_archive(second, [record(2), record(1)])
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"not gzip", "not an archive"),
        (gzip.compress(b"{broken", mtime=0), "line 1: damaged, or not a record"),
        (gzip.compress(b'["a list"]', mtime=0), "line 1: not the record of a run"),
        (gzip.compress(json.dumps(record(1)).encode(), mtime=0)[:-12], "not an archive"),
        (gzip.compress(b"[" * 100_000, mtime=0), "line 1: damaged, or not a record"),
    ],
    ids=["not-gzip", "broken-json", "not-a-record", "truncated", "deep"],
)
def test_damage_is_named(tmp_path, content, complaint):
    path = tmp_path / "records.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(RecordError, match=complaint):
        list(read_archive(path))


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(RecordError, match="no such file"):
        stored_records(tmp_path / "nothing.gz")
    with pytest.raises(RecordError, match="not a file"):
        list(read_archive(tmp_path))


@pytest.mark.parametrize(
    ("place", "to", "complaint"),
    [
        (("config",), {}, "config.dataset: is missing"),
        (("config",), "a configuration", "config: input should be"),
        (("config", "protocol", "epochs"), "many", "config.protocol: epochs"),
        (("config", "seed"), -1, "config.seed"),
        (("metrics", "test", "accuracy"), float("nan"), "NaN is not a number"),
        (("metrics", "test", "accuracy"), "high", "metrics.test.accuracy: input should be a valid number, got 'high'"),
        (("metrics", "test", "accuracy"), 97.5, "less than or equal to 1"),
        (("metrics", "test", "accuracy"), None, "metrics.test.accuracy"),
        (("metrics", "val", "nll"), 10**400, "a whole number of 1329 bits is too large"),
        (("metrics",), [], "metrics: input should be a valid dictionary"),
        (("trajectory", "train_loss"), [1.0], "train_loss has 1 epochs of 30"),
        (("interrupted",), True, "interrupted run"),
        (("schema",), 2, "has schema 2"),
        (("imported",), {"from": 1}, "imported.from"),
    ],
)
def test_what_is_no_record_is_refused_and_changes_nothing(tmp_path, place, to, complaint):
    good = sorted((json.dumps(record(seed)).encode() for seed in (2, 3)), key=lambda one: json.loads(one)["id"])
    path = pack(tmp_path / "a.gz", *good, edited(record(1), *place, to=to))
    with pytest.raises(RecordError, match=complaint) as caught:
        unpack_archive(path, Store(tmp_path / "store"))
    assert "a.gz: line" in str(caught.value) and "\n" not in str(caught.value)
    assert not (tmp_path / "store").exists()


def test_the_same_run_twice_is_refused(tmp_path):
    line = json.dumps(record(1)).encode()
    with pytest.raises(RecordError, match="line 2 is out of order, or the second one of its run"):
        list(read_archive(pack(tmp_path / "a.gz", line, line)))


def test_a_number_changed_in_an_archive_is_noticed_though_its_curves_are_rounded(tmp_path):
    path = tmp_path / "a.gz"
    write_archive(path, [record(1)])
    (packed,) = raw(path)
    assert set(packed["checksums"]) == {"results", "record"}
    for place, complaint in ((("metrics", "test", "accuracy"), "results"), (("trajectory", "val_loss", 3), "contents")):
        forged = json.loads(json.dumps(packed))
        inside = forged
        for key in place[:-1]:
            inside = inside[key]
        inside[place[-1]] = 0.75
        with pytest.raises(RecordError, match=f"line 1: its {complaint} have changed since it was written"):
            list(read_archive(pack(tmp_path / "b.gz", json.dumps(forged).encode())))


def test_the_results_keep_their_checksum_from_the_store_into_the_archive_and_back(tmp_path):
    store, path = Store(tmp_path / "first"), tmp_path / "a.gz"
    store.save(record(1)["id"], {".json": archive.encode_record(record(1, 1 / 3))})
    stored = json.loads(next((tmp_path / "first").glob("*.json")).read_text())["checksums"]
    write_archive(path, store.records())
    unpack_archive(path, Store(tmp_path / "second"))
    again = json.loads(next((tmp_path / "second").glob("*.json")).read_text())["checksums"]
    assert stored["results"] == raw(path)[0]["checksums"]["results"] == again["results"]
    assert stored["record"] != again["record"]


@pytest.mark.parametrize(
    ("limit", "value", "complaint"),
    [
        ("LONGEST_LINE", 1 << 20, "a line of more than 1 MiB"),
        ("LARGEST", 8 << 20, "more than 8 MiB"),
        ("ANY_RATIO_UP_TO", 1 << 20, "more than 30 times its size"),
    ],
)
def test_what_unpacks_to_too_much_is_refused_in_little_memory(tmp_path, monkeypatch, limit, value, complaint):
    monkeypatch.setattr(archive, limit, value)
    line = json.dumps(record(1) | {"padding": " " * (40 << 20 if limit == "LONGEST_LINE" else 1 << 19)}).encode()
    with gzip.open(tmp_path / "bomb.gz", "wb", compresslevel=1) as stream:
        for _ in range(1 if limit == "LONGEST_LINE" else 64):
            stream.write(line + b"\n")
    del line
    monkeypatch.setattr(archive, "decode_record", lambda line, *_: _numbered(line))
    tracemalloc.start()
    try:
        with pytest.raises(RecordError, match=complaint):
            unpack_archive(tmp_path / "bomb.gz", Store(tmp_path / "store"))
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()


_count = iter(range(10**9))


def _numbered(line: bytes) -> Any:
    """As if every line were the record of another run, so that only the limits can stop the reading."""
    record = {**json.loads(line), "id": f"{next(_count):064d}"}
    return SimpleNamespace(record=record, typed=SimpleNamespace(id=record["id"], interrupted=False))


def test_the_archive_of_the_issue_is_refused(tmp_path):
    """1.3 MB that unpack to 300 MB: without a change of any limit, and in the memory of one line."""
    with gzip.open(tmp_path / "bomb.gz", "wb", compresslevel=1) as stream:
        for _ in range(300):
            stream.write(b" " * (1 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(RecordError, match="a line of more than 16 MiB"):
            list(read_archive(tmp_path / "bomb.gz"))
        assert tracemalloc.get_traced_memory()[1] < 80 << 20
    finally:
        tracemalloc.stop()


def test_a_record_too_long_for_an_archive_is_left_out_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "LONGEST_LINE", 10_000)
    said: list[str] = []
    long = record(1, padding="x" * 10_000)
    assert write_archive(tmp_path / "a.gz", [long, record(2)], said.append) == 1
    assert len(said) == 1 and long["id"][:12] in said[0]


def test_an_imported_run_says_so_wherever_it_goes(tmp_path):
    first, second = tmp_path / "first.gz", tmp_path / "second.gz"
    write_archive(first, [record(1)])
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    assert unpack_archive(first, here) == (1, 0) and unpack_archive(first, here) == (0, 1)
    mark = {"from": "first.gz", "sha256": hashlib.sha256(first.read_bytes()).hexdigest()}
    assert [one["imported"] for one in here.records()] == [mark]
    write_archive(second, here.records())
    assert [one["imported"] for one in read_archive(second)] == [mark]
    unpack_archive(second, there)
    (again,) = there.records()
    assert again["imported"]["from"] == "second.gz" and again["imported"]["earlier"] == [mark]
    (straight,) = stored_records(first)
    assert straight["imported"] == mark


def test_a_damaged_record_gives_way_to_an_imported_one(tmp_path):
    store, path = Store(tmp_path / "store"), tmp_path / "a.gz"
    write_archive(path, [record(1)])
    store.save(record(1)["id"], {".json": b"{"})
    assert unpack_archive(path, store) == (1, 0) and store.damaged == {}


def test_the_committed_archive_is_read_and_its_records_are_imported(tmp_path):
    """What was written before there were checksums stays readable."""
    head = gzip.decompress(COMMITTED.read_bytes()).splitlines()[:50]
    path = pack(tmp_path / "records.jsonl.gz", *head)
    store = Store(tmp_path / "store")
    assert "checksums" not in json.loads(head[0]) and unpack_archive(path, store) == (50, 0)
    assert [one["id"] for one in store.records()] == [json.loads(line)["id"] for line in head]


def test_a_full_disk_is_named(tmp_path, monkeypatch):
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(RecordError, match=r"a\.gz: cannot be written \(No space left on device\)"):
        write_archive(tmp_path / "a.gz", [record(1)])
    assert list(tmp_path.iterdir()) == []
