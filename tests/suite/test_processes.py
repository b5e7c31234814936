"""Worker processes: threads as told, a killed worker costs its run only, nobody outlives the parent."""

import json
import multiprocessing as mp
import os
import signal
import threading
import time

import psutil
import pytest

from ltga.errors import InputError
from ltga.suite import Store, run_suite
from ltga.suite.processes import Processes


def test_a_killed_worker_costs_its_run_and_the_rest_is_done_with_the_threads_asked_for(tmp_path, tiny, wait_for):
    endless = tiny(2, epochs=10_000_000, patience=10_000_000)
    specs = [tiny(1), endless, tiny(3)]

    def kill_the_second(tally) -> None:
        def kill() -> None:
            time.sleep(1.0)  # by then it is at the endless run
            os.kill(mp.active_children()[0].pid, signal.SIGKILL)

        if tally.done == 1 and not tally.failed:
            threading.Thread(target=kill).start()

    tally = run_suite(specs, tmp_path, Processes(1, threads=2), watch=kill_the_second)
    assert tally.done == 2 and len(tally.failed) == 1
    assert "killed by SIGKILL" in next(iter(tally.failed.values()))
    assert [json.loads(path.read_text())["died"] for path in (tmp_path / "failed").iterdir()] == [True]
    records = list(Store(tmp_path).records())
    assert sorted(record["config"]["seed"] for record in records) == [1, 3]
    assert {record["environment"]["machine"]["threads"] for record in records} == {2}
    assert mp.active_children() == []


def test_workers_die_with_a_killed_parent(tmp_path, tiny, in_other_process, wait_for) -> None:
    specs = [tiny(seed, epochs=10_000_000, patience=10_000_000) for seed in (1, 2)]
    process = in_other_process(run_suite, specs, tmp_path, Processes(2))
    parent = psutil.Process(process.pid)

    def workers() -> list[psutil.Process]:
        return [child for child in parent.children(recursive=True) if "spawn_main" in " ".join(child.cmdline())]

    wait_for(lambda: len(workers()) == 2)
    children = workers()
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    wait_for(lambda: not any(child.is_running() and child.status() != "zombie" for child in children), 300)
    assert Store(tmp_path).claim(next((tmp_path / ".claims").iterdir()).name) is not None


def test_no_jobs_at_all_is_refused() -> None:
    with pytest.raises(InputError, match="jobs: got 0"):
        Processes(0)
