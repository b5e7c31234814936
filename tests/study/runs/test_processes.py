"""Worker processes: threads as told, a killed worker costs its run only, nobody outlives the parent."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from ltga.errors import InputError
from ltga.study import Store, run_suite
from ltga.study.engines import worker
from ltga.study.engines.processes import Processes

GONE_SECONDS = 2.0


def workers(parent: psutil.Process) -> list[psutil.Process]:
    """The worker processes below ``parent``."""
    found = []
    for child in parent.children(recursive=True):
        try:
            if any(word.endswith("engines/worker.py") for word in child.cmdline()):
                found.append(child)
        except psutil.Error:
            continue  # gone meanwhile
    return found


def still_there(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [one for one in processes if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]


def test_a_killed_worker_costs_its_run_and_the_rest_is_done_with_the_threads_asked_for(tmp_path, tiny, wait_for):
    endless = tiny(2, epochs=10_000_000, patience=10_000_000)
    specs = [tiny(1), endless, tiny(3)]

    def kill_the_second(tally) -> None:
        def kill() -> None:
            time.sleep(1.0)  # by then it is at the endless run
            workers(psutil.Process())[0].kill()

        if tally.done == 1 and not tally.failed:
            threading.Thread(target=kill).start()

    tally = run_suite(specs, tmp_path, Processes(1, threads=2), watch=kill_the_second)
    assert tally.done == 2 and len(tally.failed) == 1
    assert "killed by SIGKILL" in next(iter(tally.failed.values()))
    assert [json.loads(path.read_text())["died"] for path in (tmp_path / "failed").iterdir()] == [True]
    records = list(Store(tmp_path).records())
    assert sorted(record["config"]["seed"] for record in records) == [1, 3]
    assert {record["environment"]["machine"]["threads"] for record in records} == {2}
    assert still_there(workers(psutil.Process())) == []


def test_workers_die_with_a_killed_parent(tmp_path, tiny, in_other_process, wait_for) -> None:
    specs = [tiny(seed, epochs=10_000_000, patience=10_000_000) for seed in (1, 2)]
    process = in_other_process(run_suite, specs, tmp_path, Processes(2))
    parent = psutil.Process(process.pid)

    wait_for(lambda: len(workers(parent)) == 2)
    children = workers(parent)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    wait_for(lambda: not still_there(children), GONE_SECONDS)
    assert Store(tmp_path).claim(next((tmp_path / ".claims").iterdir()).name) is not None


RUNNER = """
from ltga.study import RunSpec, run_suite
from ltga.study.engines.processes import Processes
from ltga.train import Protocol
import sys

endless = Protocol(epochs=10_000_000, patience=10_000_000, hidden_channels=4, heads=2)
specs = [RunSpec("csbm:num_nodes=60", "gcn", seed, endless) for seed in (1, 2)]
print("ready", flush=True)
run_suite(specs, sys.argv[1], Processes(2))
"""


@pytest.mark.parametrize("seconds", [0.0, 0.3, *(pytest.param(late, marks=pytest.mark.slow) for late in (0.03, 1, 3))])
def test_no_worker_outlives_a_runner_that_is_killed_while_they_start(tmp_path: Path, wait_for, seconds: float) -> None:
    """torch takes seconds to import; a worker must not finish that first."""
    runner = subprocess.Popen([sys.executable, "-c", RUNNER, str(tmp_path)], stdout=subprocess.PIPE)
    try:
        assert runner.stdout is not None and runner.stdout.readline() == b"ready\n"
        parent = psutil.Process(runner.pid)
        wait_for(lambda: workers(parent))
        time.sleep(seconds)
        children = workers(parent)
    finally:
        runner.kill()
        runner.communicate()
    killed = time.monotonic()
    wait_for(lambda: not still_there(children), GONE_SECONDS)
    # The second worker may have been started after the list was made: none may be left anywhere.
    left = [one for one in psutil.process_iter() if f" {runner.pid} " in " ".join(_words(one))]
    wait_for(lambda: not still_there(left), GONE_SECONDS)
    assert children and time.monotonic() - killed < 2 * GONE_SECONDS


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_a_worker_whose_runner_is_gone_already_ends_before_it_imports_anything() -> None:
    started = time.monotonic()
    command = [sys.executable, "-P", worker.__file__, "1", "0", "not even looked at"]  # we are not process 1
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert ended.returncode == 1 and ended.stderr == b"" and time.monotonic() - started < 30


def test_no_jobs_at_all_is_refused() -> None:
    with pytest.raises(InputError, match="jobs: got 0"):
        Processes(0)
