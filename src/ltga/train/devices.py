"""Where a run is computed: the CPU or a GPU, and how what it reads gets there.

Graphs are read, divided and sampled on the CPU, weights are drawn there, and results come back to it; in between a run
is computed where its model is. The device is no part of a run's configuration: the id is the same wherever it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from ltga.errors import InputError

T = TypeVar("T")
Device = str | torch.device
CPU = torch.device("cpu")


def find_device(device: Device, init: str = "paired", backend: str = "auto") -> torch.device:
    """The device that is meant by ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:1"`` or a ``torch.device``.

    ``"auto"`` is a GPU if torch finds one and it has what ``init`` and ``backend`` of a protocol ask for. A device that
    is named and is not there, or has not, is an error.

    >>> find_device("cpu")
    device(type='cpu')
    """
    only_cpu = _needs_the_cpu(init, backend)
    if isinstance(device, str) and device == "auto":
        device = "cuda" if torch.cuda.is_available() and only_cpu is None else "cpu"
    place = _named(device)
    if place.type == "cpu":
        return CPU
    if only_cpu is not None:
        raise InputError(f"device: {only_cpu}; use device='cpu'")
    if not torch.cuda.is_available():
        raise InputError(f"device: torch finds no GPU here, got '{device}'; use 'cpu' or 'auto'")
    count = torch.cuda.device_count()
    if place.index is not None and place.index >= count:
        raise InputError(f"device: '{device}' is not here, torch finds {count} (from cuda:0 to cuda:{count - 1})")
    return torch.device("cuda", torch.cuda.current_device() if place.index is None else place.index)


def _named(device: object) -> torch.device:
    try:
        place = torch.device(device) if isinstance(device, str) else device
    except RuntimeError:
        place = None
    if not isinstance(place, torch.device) or place.type not in ("cpu", "cuda"):
        raise InputError(f"device: expected 'auto', 'cpu', 'cuda' or one like 'cuda:1', got {str(device)!r}")
    return place


def _needs_the_cpu(init: str, backend: str) -> str | None:
    """What is wanted and only the CPU has."""
    if init == "paper":
        return "init='paper' needs the paper's random numbers, which only the CPU's generator gives"
    if backend == "numba":
        return "backend='numba' is compiled for the CPU only"
    return None


def device_of(model: nn.Module) -> torch.device:
    """Where a model's parameters are; the CPU if it has none.

    >>> device_of(nn.Linear(2, 2)), device_of(nn.Identity())
    (device(type='cpu'), device(type='cpu'))
    """
    return next((parameter.device for parameter in model.parameters()), CPU)


def device_name(device: torch.device) -> str:
    """What a record says about the device."""
    if device.type != "cuda":
        return device.type
    return f"{device.type}: {torch.cuda.get_device_name(device)}"


def moved(value: T, device: torch.device) -> T:
    """``value`` with every tensor in it on ``device``: tensors, graphs, tuples and dataclasses of such.

    Copies out of pinned memory are not waited for; what is there already is not copied.

    >>> moved((torch.ones(1), "as it is"), torch.device("meta"))[0].device
    device(type='meta')
    """
    return _mapped(value, lambda tensor: tensor.to(device, non_blocking=True))


def pinned(value: T, device: torch.device) -> T:
    """``value`` in memory from which a GPU copies by itself, if ``device`` is one; for the threads that prepare."""
    return _mapped(value, Tensor.pin_memory) if device.type == "cuda" else value


def _mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, Data):
        return value.__copy__().apply(change)
    if isinstance(value, tuple | list):
        found = [_mapped(item, change) for item in value]
        if all(new is old for new, old in zip(found, value)):
            return value
        return type(value)(*found) if hasattr(value, "_fields") else type(value)(found)
    if isinstance(value, Mapping):
        return {key: _mapped(item, change) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        own = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        found_own = {name: _mapped(item, change) for name, item in own.items()}
        return value if all(found_own[name] is own[name] for name in own) else replace(value, **found_own)
    return value


def free_bytes(device: torch.device) -> int | None:
    """Memory of a GPU that nobody uses; ``None`` for the CPU, whose memory is the system's to tell."""
    return int(torch.cuda.mem_get_info(device)[0]) if device.type == "cuda" else None


@contextmanager
def own_random_numbers(device: torch.device) -> Iterator[None]:
    """Leave torch's generators, the CPU's and those of GPUs, as they were found."""
    gpus = range(torch.cuda.device_count()) if device.type == "cuda" else ()
    with torch.random.fork_rng(devices=gpus):
        yield
