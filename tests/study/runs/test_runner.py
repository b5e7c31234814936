"""The runner: what is missing, once; failures noted; kill -9, two runners and Ctrl-C survived."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

import ltga.study.engines.engine
from ltga.errors import RecordError, TrainingError
from ltga.study import Store, identify, run_suite
from ltga.study.engines.engine import Ended
from ltga.study.status import run_states
from ltga.train import fit


def seeds_in(folder: Path) -> list[int]:
    return sorted(record["config"]["seed"] for record in Store(folder).records())


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.name.endswith(".part")]


def test_missing_runs_are_done_shared_ones_once_and_restarting_does_nothing(tmp_path, tiny, executed) -> None:
    specs = [tiny(1), tiny(2), tiny(1)]
    tally = run_suite(specs, tmp_path / "store")
    assert (tally.done, tally.already, tally.left) == (2, 0, {})
    assert executed() == [1, 2]
    again = run_suite(specs, tmp_path / "store")
    assert (again.done, again.already) == (0, 2) and executed() == [1, 2]


def test_a_run_that_fit_saved_counts_as_done(tmp_path, tiny, executed) -> None:
    spec = tiny(5, "gatv2", init="paired", warmup=0)
    run = fit(spec.dataset, spec.method, spec.seed, protocol=spec.protocol)
    run.save(tmp_path)
    assert identify([spec]).ids[spec] == run.record["id"]
    assert run_suite([spec], tmp_path).already == 1 and executed() == []


def test_the_stored_run_is_the_one_fit_makes(tmp_path, tiny) -> None:
    spec = tiny(3, "ltga-edge")
    run_suite([spec], tmp_path / "suite")
    fit(spec.dataset, spec.method, spec.seed, protocol=spec.protocol).save(tmp_path / "fit")
    ours, theirs = (sorted((tmp_path / folder).glob("*.[ns]*")) for folder in ("suite", "fit"))
    names = [path.name for path in ours if path.suffix != ".json"]
    assert len(names) == 2 and [path.name for path in theirs if path.suffix != ".json"] == names
    for name in names:
        assert (tmp_path / "suite" / name).read_bytes() == (tmp_path / "fit" / name).read_bytes()


def test_a_failing_run_is_noted_and_the_others_go_on(tmp_path, tiny, executed, monkeypatch) -> None:
    real = ltga.study.engines.engine.fit

    def fails_at_two(dataset, method, seed, **settings):
        run = real(dataset, method, seed, **settings)
        if seed == 2:
            raise TrainingError("the training loss is nan at epoch 1")
        return run

    monkeypatch.setattr(ltga.study.engines.engine, "fit", fails_at_two)
    specs = [tiny(1), tiny(2), tiny(3)]
    tally = run_suite(specs, tmp_path / "store")
    assert tally.done == 2 and next(iter(tally.failed.values())).endswith("the training loss is nan at epoch 1")
    assert seeds_in(tmp_path / "store") == [1, 3]
    (noted,) = (tmp_path / "store" / "failed").iterdir()
    failure = json.loads(noted.read_text())
    assert failure["error"] == "ltga.errors.TrainingError: the training loss is nan at epoch 1"
    assert "fails_at_two" in failure["traceback"] and failure["spec"].startswith("csbm:num_nodes=60, ltga-head, seed 2")

    assert run_suite(specs, tmp_path / "store").failed_before == 1
    assert executed() == [1, 2, 3]
    still = run_suite(specs, tmp_path / "store", retry_failed=True)
    assert len(still.failed) == 1 and executed() == [1, 2, 3, 2]
    monkeypatch.setattr(ltga.study.engines.engine, "fit", real)
    mended = run_suite(specs, tmp_path / "store", retry_failed=True)
    assert (mended.done, mended.failed) == (1, {}) and not list((tmp_path / "store" / "failed").iterdir())


def test_a_run_whose_worker_died_is_done_when_the_suite_is_started_again(tmp_path, tiny) -> None:
    class Dying:
        def results(self, jobs):
            for job in jobs:
                yield Ended(job, error="killed by SIGKILL", died=True)

    assert len(run_suite([tiny(1)], tmp_path, Dying()).failed) == 1
    assert set(run_states([tiny(1)], Store(tmp_path))[0].values()) == {"missing"}
    again = run_suite([tiny(1)], tmp_path)
    assert (again.done, again.failed_before) == (1, 0) and not list((tmp_path / "failed").iterdir())


def test_absent_data_makes_runs_impossible_and_nothing_else(tmp_path, tiny, monkeypatch) -> None:
    monkeypatch.setattr("ltga.data.obtain.download", _no_network)
    monkeypatch.delenv("LTGA_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tally = run_suite([tiny(1, dataset="roman-empire"), tiny(1)], tmp_path / "store")
    assert (tally.impossible, tally.done, tally.failed) == (1, 1, {})
    assert "no connection" in tally.absent["roman-empire"]


def _no_network(*_, **__):
    from ltga.errors import DataError

    raise DataError("no connection")


def test_kill_9_in_the_middle_loses_that_run_only(tmp_path, tiny, executed, monkeypatch, in_other_process, wait_for):
    store, real = tmp_path / "store", ltga.study.engines.engine.fit

    def hangs_at_three(dataset, method, seed, **settings):
        run = real(dataset, method, seed, **settings)
        if seed == 3:
            time.sleep(600)
        return run

    specs = [tiny(seed) for seed in range(1, 6)]
    monkeypatch.setattr(ltga.study.engines.engine, "fit", hangs_at_three)
    process = in_other_process(run_suite, specs, store)
    wait_for(lambda: 3 in executed())
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert process.exitcode == -signal.SIGKILL and seeds_in(store) == [1, 2]

    monkeypatch.setattr(ltga.study.engines.engine, "fit", real)
    tally = run_suite(specs, store)
    assert (tally.already, tally.done) == (2, 3)
    assert executed() == [1, 2, 3, 3, 4, 5]
    assert leftovers(store) == [] and not list((store / ".claims").iterdir())


@pytest.mark.parametrize("number", range(3))
def test_kill_9_while_writing_leaves_nothing_half(tmp_path, tiny, monkeypatch, in_other_process, wait_for, number):
    """The process hangs inside the write of the number-th of a run's three files, and is killed there."""
    store, marker, real, calls = tmp_path / "store", tmp_path / "marker", os.fsync, []

    def hang(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) > number:
            marker.write_text("")
            time.sleep(600)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", hang)
    process = in_other_process(run_suite, [tiny(1)], store)
    wait_for(marker.exists)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    monkeypatch.setattr(os, "fsync", real)
    assert seeds_in(store) == [] and len(leftovers(store)) == 1
    assert run_suite([tiny(1)], store).done == 1
    assert leftovers(store) == [] and seeds_in(store) == [1]


def test_two_runners_share_the_work_and_do_no_run_twice(tmp_path, tiny, executed, monkeypatch, in_other_process):
    real = ltga.study.engines.engine.fit

    def slow(*arguments, **settings):
        time.sleep(0.05)
        return real(*arguments, **settings)

    monkeypatch.setattr(ltga.study.engines.engine, "fit", slow)
    specs = [tiny(seed) for seed in range(1, 13)]
    counts = tmp_path / "counts"

    def runner() -> None:
        tally = run_suite(specs, tmp_path / "store")
        with counts.open("a") as stream:
            stream.write(f"{tally.done} {tally.done + tally.elsewhere + tally.already} {len(tally.left)}\n")

    for process in [in_other_process(runner) for _ in range(3)]:
        process.join()
        assert process.exitcode == 0
    rows = [list(map(int, line.split())) for line in counts.read_text().splitlines()]
    assert sorted(executed()) == list(range(1, 13)) == seeds_in(tmp_path / "store")
    assert sum(done for done, _, _ in rows) == 12 and all(row[1:] == [12, 0] for row in rows)
    assert sum(done > 0 for done, _, _ in rows) > 1, "the others had nothing to do"


def test_a_runner_takes_over_from_one_that_dies(tmp_path, tiny, executed, monkeypatch, in_other_process, wait_for):
    real = ltga.study.engines.engine.fit
    store = tmp_path / "store"

    def hangs(*arguments, **settings):
        real(*arguments, **settings)
        time.sleep(600)

    monkeypatch.setattr(ltga.study.engines.engine, "fit", hangs)
    dying = in_other_process(run_suite, [tiny(1)], store)
    wait_for(lambda: executed() == [1])
    monkeypatch.setattr(ltga.study.engines.engine, "fit", real)
    heir = in_other_process(run_suite, [tiny(1), tiny(2)], store)
    wait_for(lambda: seeds_in(store) == [2])
    assert heir.is_alive()  # waits for the run that the other is at
    os.kill(dying.pid, signal.SIGKILL)
    dying.join()
    heir.join()
    assert heir.exitcode == 0 and seeds_in(store) == [1, 2] and executed() == [1, 2, 1]


def test_ctrl_c_stops_and_stores_no_run_cut_short(tmp_path, tiny, executed, monkeypatch) -> None:
    from ltga.train.optimizer import DecoupledAdam

    step, store = DecoupledAdam.step, tmp_path / "store"

    def interrupted(self, epoch):
        if executed() == [1, 2] and epoch == 2:
            raise KeyboardInterrupt
        step(self, epoch)

    monkeypatch.setattr(DecoupledAdam, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_suite([tiny(seed) for seed in (1, 2, 3)], store)
    assert seeds_in(store) == [1] and len(list(store.glob("*.json"))) == 1
    assert not (store / "failed").exists()
    monkeypatch.setattr(DecoupledAdam, "step", step)
    assert run_suite([tiny(seed) for seed in (1, 2, 3)], store).done == 2


def test_a_full_disk_stops_the_suite_with_one_clear_error(tmp_path, tiny, monkeypatch) -> None:
    import errno

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    run_suite([tiny(1)], tmp_path)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RecordError, match="No space left on device"):
        run_suite([tiny(2), tiny(3)], tmp_path)
    monkeypatch.undo()
    assert leftovers(tmp_path) == [] and seeds_in(tmp_path) == [1]
    assert run_suite([tiny(2), tiny(3)], tmp_path).done == 2


def test_watch_sees_every_end(tmp_path, tiny) -> None:
    seen = []
    run_suite([tiny(1), tiny(2)], tmp_path, watch=lambda tally: seen.append((tally.ended, len(tally.left))))
    assert seen == [(0, 2), (1, 1), (2, 0)]
