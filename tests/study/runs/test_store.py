"""The store: claims that die with their process, files that are whole or not there, a full disk."""

import json
import os
import resource
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ltga.errors import InputError, RecordError
from ltga.study import Store
from ltga.study.engines.engine import Job, attempt
from ltga.study.spec import identify

RUN = "a" * 64


def encoded(tiny) -> tuple[str, dict[str, bytes]]:
    spec = tiny()
    run = identify([spec]).ids[spec]
    finished = attempt(Job(run, spec), None)
    assert finished.files is not None, finished.error
    return run, dict(finished.files)


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def test_a_saved_run_is_read_back_and_its_id_is_the_one_fit_gives(tmp_path: Path, tiny) -> None:
    run, contents = encoded(tiny)
    store = Store(tmp_path)
    store.fail(run, "spec", "Traceback\nValueError: bad")
    store.save(run, contents)
    record = store.record(run)
    assert record is not None and record["id"] == run and store.failure(run) is None
    assert files(tmp_path) == {f"{run}{suffix}" for suffix in (".json", ".npz", ".safetensors")}
    assert [found["id"] for found in store.records()] == [run]


def test_a_record_that_is_damaged_or_cut_short_does_not_count(tmp_path: Path, tiny) -> None:
    run, contents = encoded(tiny)
    store = Store(tmp_path)
    store.save(run, {**contents, ".json": contents[".json"][:100]})
    assert store.record(run) is None
    cut = {**json.loads(contents[".json"]), "interrupted": True}
    store.save(run, {**contents, ".json": json.dumps(cut).encode()})
    assert store.record(run) is None and list(store.records()) == []


def test_a_run_has_one_claim_at_a_time(tmp_path: Path) -> None:
    store, other = Store(tmp_path), Store(tmp_path)
    claim = store.claim(RUN)
    assert claim is not None and other.claim(RUN) is None
    elsewhere = other.claim("b" * 64)
    claim.release()
    second = other.claim(RUN)
    assert elsewhere is not None and second is not None
    second.release()
    elsewhere.release()
    assert files(tmp_path) == set()


def test_the_claim_of_a_killed_process_is_free_and_its_half_files_go(
    tmp_path: Path, in_other_process, wait_for
) -> None:
    def claim_and_hang() -> None:
        claim = Store(tmp_path).claim(RUN)
        assert claim is not None
        (tmp_path / f".{RUN}.npz.{os.getpid()}.part").write_bytes(b"half")
        time.sleep(600)

    process = in_other_process(claim_and_hang)
    wait_for(lambda: list(tmp_path.glob("*.part")))
    assert Store(tmp_path).claim(RUN) is None
    os.kill(process.pid, 9)
    process.join()
    assert Store(tmp_path).claim(RUN) is not None
    assert not list(tmp_path.glob(".*.part"))


def test_many_processes_claim_each_run_once(tmp_path: Path, in_other_process) -> None:
    runs = [f"{number:064x}" for number in range(60)]
    winners = tmp_path / "winners"

    def claim_all() -> None:
        store, held = Store(tmp_path / "store"), []
        for run in runs:
            claim = store.claim(run)
            if claim is not None:
                held.append(claim)
                with winners.open("a") as stream:
                    stream.write(f"{run}\n")
        time.sleep(1)  # all hold on until everybody has tried

    processes = [in_other_process(claim_all) for _ in range(4)]
    for process in processes:
        process.join()
    assert sorted(winners.read_text().split()) == runs


def test_failures_are_kept_as_plain_json(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.failure(RUN) is None
    store.fail(RUN, "cora, gat, seed 1", 'Traceback (most recent call last):\n  File "x"\nTrainingError: <loss> is nan')
    failure = store.failure(RUN)
    assert failure is not None and failure["error"] == "TrainingError: <loss> is nan"
    assert failure["spec"] == "cora, gat, seed 1" and list(store.records()) == []


def test_a_file_in_the_stores_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"store: .*file is a file"):
        Store(tmp_path / "file")


def test_a_write_the_system_refuses_leaves_no_half_file(tmp_path: Path, tiny, in_other_process) -> None:
    run, contents = encoded(tiny)
    report = tmp_path / "report"

    def save_under_a_limit() -> None:
        size = len(contents[".npz"]) - 1
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        try:
            Store(tmp_path / "store").save(run, {**contents, ".safetensors": b"small"})
        except RecordError as error:
            report.write_text(str(error))

    in_other_process(save_under_a_limit).join()
    assert "cannot be written" in report.read_text() and "File too large" in report.read_text()
    assert files(tmp_path / "store") == set()  # the weights, written whole before, are of no use without a record


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("may not mount a small disk here")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_named_and_finished_runs_are_kept(small_disk: Path, tiny) -> None:
    run, contents = encoded(tiny)
    store = Store(small_disk)
    small = {".safetensors": b"x", ".npz": b"x", ".json": contents[".json"][:4000]}
    store.save(RUN, small)
    before = files(small_disk)
    with pytest.raises(RecordError, match=r"store: .*disk: cannot be written \(No space left on device\).*kept"):
        store.save(run, {**contents, ".npz": b"x" * 20_000})
    assert {name for name in files(small_disk) if name.endswith(".part")} == set()
    assert before <= files(small_disk) and store.record(run) is None
    assert (small_disk / f"{RUN}.json").read_bytes() == small[".json"]
