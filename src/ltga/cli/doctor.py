"""``ltga doctor``: is everything here, and do the fast kernels agree with the definition?"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.markup import escape
from rich.table import Table

State = Literal["ok", "note", "broken"]
STYLES: dict[State, str] = {"ok": "green", "note": "yellow", "broken": "bold red"}
TOLERANCE = 1e-4  # of the largest value; float32 sums in another order differ by about 1e-6


@dataclass(frozen=True)
class Check:
    """One thing looked at: fine, worth knowing, or broken."""

    what: str
    state: State
    detail: str


def examine(root: Path | None = None) -> list[Check]:
    """Look at everything; a check that fails unexpectedly is reported, not raised."""
    found: list[Check] = []
    for what, look in CHECKS.items():
        try:
            found += look(root)
        except Exception as error:  # a broken installation breaks in ways nobody foresees
            line = " ".join(str(error).split())
            found.append(Check(what, "broken", f"{type(error).__name__}: {line}"))
    return found


def report(console: Console, root: Path | None, json_wanted: bool) -> bool:
    """Print what was found; true if nothing is broken."""
    checks = examine(root)
    sound = all(check.state != "broken" for check in checks)
    if json_wanted:
        print(json.dumps({"sound": sound, "checks": [asdict(check) for check in checks]}, indent=1))
        return sound
    table = Table(box=None, show_header=False)
    for _ in range(3):
        table.add_column(overflow="fold")
    for check in checks:
        table.add_row(f"[{STYLES[check.state]}]{check.state}[/]", check.what, escape(check.detail))
    console.print(table)
    console.print("Everything works." if sound else "Something is broken: see above.")
    return sound


def versions(root: Path | None) -> Iterator[Check]:
    from ltga.train.record import environment

    for package, version in environment()["versions"].items():
        yield Check(package, "ok" if version else "broken", version or "not installed; reinstall ltga")


def kernels(root: Path | None) -> Iterator[Check]:
    from ltga.cli.compiled import compiled_kernels, kernel_folder
    from ltga.kernels.runtime.backends import has_compiled_kernels

    if not has_compiled_kernels():
        yield Check(
            "kernels",
            "broken",
            "numba is missing, or NUMBA_DISABLE_JIT is set; training falls back to plain torch, many times slower",
        )
        return
    count, folder = compiled_kernels(), kernel_folder()
    state = f"{count} functions compiled" if count else "not compiled yet, which takes about a minute at first use"
    yield Check("kernels", "ok" if count else "note", f"{state}; cache in {folder}")


def threads(root: Path | None) -> Iterator[Check]:
    import torch

    from ltga.kernels.runtime.threads import _open_team

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Check("threads", "ok", f"{torch.get_num_threads()} used by torch, {cores} cores available")
    if _open_team() is None:
        yield Check(
            "thread team", "note", "torch's OpenMP library was not found; kernels use Python threads, a little slower"
        )
    else:
        yield Check("thread team", "ok", "kernels run on torch's own OpenMP threads")


def random_numbers(root: Path | None) -> Iterator[Check]:
    from ltga.kernels.operators.bernoulli import draws_like_the_paper

    if draws_like_the_paper():
        yield Check("random numbers", "ok", "torch's dropout draws as where the paper was run: its cells can come out")
    else:
        yield Check("random numbers", "note", "torch draws dropout from MKL (Intel): the paper's cells cannot come out")


def data(root: Path | None) -> Iterator[Check]:
    from ltga.cli.lists import place
    from ltga.data import CATALOGUE
    from ltga.data.obtain import ENVIRONMENT

    named = os.environ.get(ENVIRONMENT)
    if named and not Path(named).expanduser().is_dir():
        yield Check(ENVIRONMENT, "broken", f"{named} is not a folder; correct or unset the variable")
    for name, facts in CATALOGUE.items():
        where = place(facts, root)
        absent = where.startswith(("to be", "not here"))
        yield Check(name, "note" if absent else "ok", where)


def self_test(root: Path | None) -> Iterator[Check]:
    """A layer on a tiny graph, fused against the plain definition: outputs and all gradients."""
    start = time.perf_counter()
    largest = largest_difference()
    detail = f"fused and plain attention differ by at most {largest:.1e}, gradients included"
    seconds = time.perf_counter() - start
    yield Check("self-test", "ok" if largest < TOLERANCE else "broken", f"{detail} ({seconds:.1f} s)")


def largest_difference() -> float:
    """Largest relative difference between the two backends over outputs and gradients; infinite if one is NaN.

    A plain layer is computed in one step, one with a residual connection operator by operator: both are tried.
    """
    return max(_difference(edge_dim, residual) for edge_dim in (None, 3) for residual in (False, True))


def _difference(edge_dim: int | None, residual: bool) -> float:
    import torch

    from ltga.nn import LTGAConv

    generator = torch.Generator().manual_seed(0)
    features = torch.randn(40, 8, generator=generator)
    edges = torch.randint(0, 40, (2, 200), generator=generator)
    edge_attr = None if edge_dim is None else torch.randn(200, edge_dim, generator=generator)
    plain, fused = (
        LTGAConv(8, 4, heads=2, edge_dim=edge_dim, residual=residual, backend=backend) for backend in ("torch", "numba")
    )
    with torch.no_grad():
        for parameter in plain.parameters():  # the index too, so that q differs from 1
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    fused.load_state_dict(plain.state_dict())
    results = []
    for layer in (plain, fused):
        x = features.clone().requires_grad_()
        out = layer(x, edges, edge_attr)
        out.square().sum().backward()
        results.append([out.detach(), x.grad, *(parameter.grad for parameter in layer.parameters())])
    differences = [float((a - b).abs().max() / a.abs().max().clamp(min=1e-6)) for a, b in zip(*results)]
    return max(value if value == value else float("inf") for value in differences)


def gpu(root: Path | None) -> Iterator[Check]:
    """GPU kernels against the definition in double precision, on the device where there is one."""
    import torch

    from ltga.kernels import NORMALIZERS, SCORINGS
    from ltga.kernels.operators.trust import TOLERANCES, Configuration, largest_error, versions
    from ltga.kernels.runtime.backends import has_triton

    if not torch.cuda.is_available():
        yield Check("gpu", "note", "none that torch can use; attention runs on the CPU")
        return
    if not has_triton():
        yield Check("gpu", "note", "Triton is missing, so plain torch is used there; pip install 'ltga[gpu]'")
        return
    device = torch.device("cuda", torch.cuda.current_device())
    yield Check("gpu", "ok", versions(device))
    for dtype, tolerance in TOLERANCES.items():
        errors = {
            f"{scoring} {normalizer}": largest_error(Configuration(scoring, normalizer, 8, 32, 0, dtype), device)
            for scoring in SCORINGS
            for normalizer in NORMALIZERS
        }
        worst = max(errors, key=errors.__getitem__)
        state: State = "ok" if errors[worst] <= tolerance else "broken"
        yield Check(f"gpu {str(dtype)[6:]}", state, f"largest error {errors[worst]:.1e} ({worst}), gradients included")


CHECKS: dict[str, Callable[[Path | None], Iterator[Check]]] = {
    "versions": versions,
    "kernels": kernels,
    "threads": threads,
    "random numbers": random_numbers,
    "data": data,
    "self-test": self_test,
    "gpu": gpu,
}
