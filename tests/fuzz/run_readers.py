"""Reads spoiled files one after the other and reports, as JSON, what did not end in a dataset or one line of error.

Run as a process of its own: python run_readers.py CASES SEED FOLDER. The case at hand lies in FOLDER, so that a crash
leaves it behind.
"""

from __future__ import annotations

import faulthandler
import json
import random
import re
import resource
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fuzz.reader_seeds import Format, formats
from ltga.data import Dataset
from ltga.errors import LTGAError

MOST_SECONDS = 5.0
MOST_BYTES = 700 * 1024**2  # beyond what the valid files took; what is harmless by the readers' own measure is 256 MiB
OUT_OF_MEMORY = re.compile(r"unable to allocate|memory|malloc|alloc failed| \(\)(;|$)", re.IGNORECASE)


def peak_bytes() -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmPeak"))
    return int(line.split()[1]) * 1024


def use(read: Any) -> None:
    """What everybody does with a dataset; a fault that shows only here is one of the reader's."""
    if not isinstance(read, Dataset):
        return
    assert len(read.fingerprint) == 64
    train, val, test = read.split(0)
    assert train.any() and not (train & val).any() and not (val & test).any()
    assert torch.isfinite(read.data.x).all() and int(read.data.y.max()) < read.num_classes
    assert read.num_classes <= max(1000, 10 * int(read.data.y.unique().numel()))
    assert read.data.num_nodes == len(read.data.x)


def one_case(form: Format, folder: Path) -> tuple[str, str]:
    """('valid' | 'refused' | 'fault', why)."""
    before, began = peak_bytes(), time.monotonic()
    try:
        use(form.read(folder))
        outcome, why = "valid", ""
    except LTGAError as error:
        outcome, why = "refused", str(error)
        if "\n" in why or len(why) > 2000 or OUT_OF_MEMORY.search(why):
            outcome = "fault"
    except BaseException:
        outcome, why = "fault", traceback.format_exc()
    if time.monotonic() - began > MOST_SECONDS:
        outcome, why = "fault", f"took {time.monotonic() - began:.1f} s; {why}"
    if peak_bytes() - before > MOST_BYTES:
        outcome, why = "fault", f"took {(peak_bytes() - before) >> 20} MB; {why}"
    return outcome, why


def main(cases: int, seed: int, folder: Path) -> None:
    torch.set_num_threads(1)
    scratch, place = folder / "scratch", folder / "case"
    for made in (scratch, place):
        made.mkdir(parents=True)
    every = formats(scratch)
    counts: dict[str, dict[str, int]] = {name: {"valid": 0, "refused": 0, "fault": 0} for name in every}
    faults: list[dict[str, Any]] = []
    for form in every.values():
        for files in form.seeds:
            write(files, place)
            use(form.read(place))  # a seed that does not read well would make the rest pointless
    resource.setrlimit(resource.RLIMIT_AS, (peak_bytes() + 3 * 1024**3,) * 2)
    for case in range(cases):
        name = sorted(every)[case % len(every)]
        rng = random.Random(f"{seed} {case}")
        write(every[name].spoil(rng), place)
        (folder / "at").write_text(f"{name}, seed {seed}, case {case}")
        faulthandler.dump_traceback_later(60, exit=True)
        outcome, why = one_case(every[name], place)
        faulthandler.cancel_dump_traceback_later()
        counts[name][outcome] += 1
        if outcome == "fault":
            faults.append({"format": name, "seed": seed, "case": case, "why": why[-3000:]})
    print(json.dumps({"cases": cases, "counts": counts, "faults": faults}))


def write(files: dict[str, bytes], place: Path) -> None:
    for old in place.iterdir():
        old.unlink()
    for name, content in files.items():
        (place / name).write_bytes(content)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
