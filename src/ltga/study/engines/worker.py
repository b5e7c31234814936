"""What a worker process runs: as a script by its path, so that nothing is imported before its first lines.

Importing torch takes seconds, and a runner may be killed meanwhile. The worker therefore ties its life to the
runner's before it imports anything of weight, and asks whether the runner is still there after that.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress

PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)
LOOK_SECONDS = 0.5


def end_with(parent: int) -> None:
    """End this process at once when ``parent``, which started it, ends, however that ends.

    On Linux the kernel sees to it, the moment the runner (its thread, to be exact) is gone. Elsewhere, and should
    the kernel refuse, a thread looks twice a second.
    """
    with suppress(OSError, AttributeError):  # not Linux
        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # it ended before the kernel was told
        os._exit(1)

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_SECONDS)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()


def main() -> None:
    parent, descriptor = map(int, sys.argv[1:3])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's affair
    end_with(parent)
    settings = json.loads(sys.argv[3])
    sys.path[:] = settings["path"]  # modules are found where the runner finds them
    from multiprocessing.connection import Connection

    from ltga.study.engines.processes import work

    work(Connection(descriptor), settings["threads"], settings["root"])


if __name__ == "__main__":
    main()
