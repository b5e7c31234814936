"""Blocks run once each, whoever runs them, and failures are not lost."""

import os

import pytest
import torch

from ltga.kernels.runtime import threads


@pytest.fixture(params=["team", "pool"])
def engine(request, monkeypatch):
    """torch's OpenMP team and the pool of Python threads."""
    if request.param == "team" and threads._open_team() is None:
        pytest.skip("torch does not run on a reachable libgomp here")
    if request.param == "pool":
        monkeypatch.setattr(threads, "_open_team", lambda: None)
    usual = torch.get_num_threads()
    torch.set_num_threads(3)
    yield request.param
    torch.set_num_threads(usual)


def test_every_block_once(engine):
    seen = []
    threads.run_blocks([(n, n + 1) for n in range(50)], lambda *job: seen.append(job))
    assert sorted(seen) == [(n, n, n + 1) for n in range(50)]


def test_an_error_reaches_the_caller(engine):
    def task(number, first, last):
        if number == 7:
            raise ValueError("block 7")

    with pytest.raises(ValueError, match="block 7"):
        threads.run_blocks([(0, 1)] * 20, task)


def test_keyboard_interrupt_reaches_the_caller(engine):
    def task(number, first, last):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        threads.run_blocks([(0, 1)] * 4, task)


def test_a_forked_child_does_not_touch_openmp(engine):
    threads.run_blocks([(0, 1)] * 8, lambda *_: None)
    child = os.fork()
    if child == 0:
        seen = []
        threads.run_blocks([(0, 1)] * 8, lambda *job: seen.append(job))
        os._exit(0 if threads._forked and len(seen) == 8 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
