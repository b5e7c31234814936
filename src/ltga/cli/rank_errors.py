"""Errors of one of several processes: a line that names it, on the side that started them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

BY_US = "LTGA_LAUNCHED"  # set where `--workers` started the process, so that errors are printed once, by the launcher
LOST = "lost another process"  # how the message of a process begins that is not to blame
TERMINATED = -15  # by the launcher, after another had failed


def line_of_rank(line: str) -> str:
    """The line, with the process it comes from if there are several.

    >>> line_of_rank("no such file")
    'no such file'
    """
    return line if int(os.environ.get("WORLD_SIZE", 1)) == 1 else f"rank {os.environ.get('RANK', '?')}: {line}"


def noted_by_launcher(line: str) -> bool:
    """Leave the line where torchrun looks for it; whether whoever started the process will print it."""
    place = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if place is None or "RANK" not in os.environ:
        return False
    said = {"message": {"message": line, "extraInfo": {"timestamp": str(int(time.time()))}}}
    with suppress(OSError):
        Path(place).write_text(json.dumps(said), encoding="utf-8")
        return os.environ.get(BY_US) == "1"
    return False


def first_failure(failures: Mapping[int, ProcessFailure]) -> str:
    """The line about the process that is to blame: killed by somebody, or with an error of its own."""

    def blame(rank: int) -> tuple[bool, bool, int]:
        failure = failures[rank]
        killed = failure.exitcode < 0 and failure.exitcode != TERMINATED
        return not killed, LOST in _said(failure) or failure.exitcode == TERMINATED, rank

    rank = min(failures, key=blame)
    failure = failures[rank]
    if failure.exitcode < 0:
        name = failure.signal_name()
        hint = "; out of memory?" if name == "SIGKILL" else ""
        return f"rank {rank}: killed by {name}{hint}; the same command goes on from the last checkpoint"
    return f"rank {rank}: {_said(failure)}"


def _said(failure: ProcessFailure) -> str:
    message = failure.error_file_data.get("message", {})
    said = message.get("message", "") if isinstance(message, dict) else str(message)
    return said if failure.error_file != "<N/A>" and said else f"ended with exit code {failure.exitcode}"
