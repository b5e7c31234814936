"""``--workers``: the command is started again by torch's launcher, as several processes that train together."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ltga.errors import InputError, TrainingError


def launched(workers: int | None, arguments: Sequence[str]) -> bool:
    """Do the command by ``workers`` processes; false if this process is to do it itself."""
    if workers is None or workers == 1:
        return False
    if "RANK" in os.environ:  # one of them, or torchrun's
        started = int(os.environ.get("WORLD_SIZE", 1))
        if started != workers:
            raise InputError(f"--workers: {workers}, but torchrun has started {started} processes; leave --workers out")
        return False
    _launch(workers, arguments)
    return True


def on_ray(
    engine: str | None, workers: int | None, address: str | None, device: str = "auto"
) -> tuple[int, str | None] | None:
    """How many workers of which cluster; ``None`` without ``--engine ray``.

    >>> on_ray("ray", 2, None)
    (2, None)
    """
    if engine not in (None, "ray"):
        raise InputError(f"--engine: expected 'ray', got {engine!r}; leave it out for processes on this machine")
    if engine is None:
        if address is not None:
            raise InputError("--address: is that of a Ray cluster; give --engine ray too")
        return None
    if workers is None:
        raise InputError("--engine ray: needs --workers, for example --workers 2")
    if device not in ("auto", "cpu"):
        raise InputError(f"--device: workers of a Ray cluster compute on the CPU so far, got {device!r}; leave it out")
    return workers, address


def _launch(workers: int, arguments: Sequence[str]) -> None:
    import logging
    import signal
    import uuid

    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    from ltga.cli.rank_errors import BY_US, first_failure

    for name in ("torch.distributed.elastic", "torch.distributed.elastic.agent.server.api"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # a failure is told in one line below
    os.environ.setdefault("OMP_NUM_THREADS", str(max((os.cpu_count() or 1) // workers, 1)))
    os.environ[BY_US] = "1"
    config = LaunchConfig(
        min_nodes=1, max_nodes=1, nproc_per_node=workers, run_id=uuid.uuid4().hex, rdzv_backend="c10d",
        rdzv_endpoint="localhost:0", max_restarts=0, logs_specs=DefaultLogsSpecs(),
    )  # fmt: skip
    try:
        elastic_launch(config, sys.executable)("-m", "ltga", *arguments)
    except ChildFailedError as error:
        raise TrainingError(first_failure(error.failures)) from None
    except SignalException as error:  # sent to this process, which has ended the others
        if error.sigval == signal.SIGINT:
            raise KeyboardInterrupt from None
        name = signal.Signals(error.sigval).name
        raise TrainingError(f"ended by {name}; the same command goes on from the last checkpoint") from None
    finally:
        del os.environ[BY_US]
