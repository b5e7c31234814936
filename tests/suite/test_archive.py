"""Archives of records: what goes in comes out, and damage is named."""

import gzip
import json

import pytest

from ltga.errors import RecordError
from ltga.stats import paired_test
from ltga.suite.archive import read_archive, stored_records, write_archive


def record(number, accuracy=0.5):
    return {"id": f"{number:064x}", "config": {"seed": number}, "metrics": {"test": {"accuracy": accuracy}}}


def test_round_trip_in_order_of_id(tmp_path):
    path = tmp_path / "deep" / "records.jsonl.gz"
    assert write_archive(path, [record(2), record(1, 1 / 3), record(2)]) == 2
    found = list(read_archive(path))
    assert [one["config"]["seed"] for one in found] == [1, 2]
    assert found[0]["metrics"]["test"]["accuracy"] == 1 / 3


def test_a_run_and_its_archived_copy_tie(tmp_path):
    """Rounded metrics would make wins and losses of runs that are equal."""
    values = [15 / 37, 0.1 + 0.2, 2 / 3]
    curve = {"history": [1 / 3]}
    write_archive(tmp_path / "records.jsonl.gz", [record(i, value) | curve for i, value in enumerate(values)])
    archived = [one["metrics"]["test"]["accuracy"] for one in read_archive(tmp_path / "records.jsonl.gz")]
    assert paired_test(values, archived).counts == (0, 0, 3)
    assert next(read_archive(tmp_path / "records.jsonl.gz"))["history"] == [0.333333]


def test_the_same_records_give_the_same_bytes(tmp_path):
    first, second = tmp_path / "a.gz", tmp_path / "b.gz"
    write_archive(first, [record(1), record(2)])
    write_archive(second, [record(2), record(1)])
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"not gzip", "not an archive"),
        (gzip.compress(b"{broken"), "not an archive"),
        (gzip.compress(b'["a list"]'), "line 1 is not a record"),
        (gzip.compress(json.dumps(record(1)).encode())[:-12], "not an archive"),
    ],
    ids=[
        "not-gzip",
        "broken-json",
        "not-a-record",
        "truncated",
    ],  # bytes with a time stamp differ between xdist workers
)
def test_damage_is_named(tmp_path, content, complaint):
    path = tmp_path / "records.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(RecordError, match=complaint):
        list(read_archive(path))


def test_a_missing_file(tmp_path):
    with pytest.raises(RecordError, match="no such file"):
        stored_records(tmp_path / "nothing.gz")
