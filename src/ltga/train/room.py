"""How much memory there is to be had, now, for this process."""

from __future__ import annotations

import os
from pathlib import Path

SHARE = 0.7  # of the free memory that may be planned with; estimates are off by a third at most


def free_memory() -> int | None:
    """Bytes that can be had without swapping, in a container what it is allowed; ``None`` where nobody tells."""
    known = [bytes_ for bytes_ in (_of_the_system(), _of_the_container()) if bytes_ is not None]
    return min(known) if known else None


def _of_the_system() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return None


def _of_the_container(folder: Path = Path("/sys/fs/cgroup")) -> int | None:
    """What is left of a limit on this group of processes (cgroup 2), files that can be let go of counted as free."""
    try:
        limit, used = ((folder / f"memory.{name}").read_text().strip() for name in ("max", "current"))
        told = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        files = int(told["active_file"]) + int(told["inactive_file"])
        return None if limit == "max" else max(int(limit) - int(used) + files, 0)
    except (OSError, ValueError, KeyError):
        return None
