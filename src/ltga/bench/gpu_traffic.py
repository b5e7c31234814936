"""What the GPU kernels read and write, counted while Triton's interpreter runs them, and the same of plain torch."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


@dataclass
class Launch:
    """One start of a kernel: bytes, and the addresses behind them."""

    bytes_read: int = 0
    bytes_written: int = 0
    stores: int = 0
    read: set[int] = field(default_factory=set)
    written: set[int] = field(default_factory=set)


class Traffic:
    """Counts the loads and stores of kernels that run in the interpreter; what a mask leaves out costs nothing."""

    def __init__(self) -> None:
        self.launches: list[tuple[str, Launch]] = []

    def __enter__(self) -> Traffic:
        from triton.runtime import interpreter

        from ltga.kernels.operators import program_launch

        self._builder, self._module = interpreter.InterpreterBuilder, program_launch
        names = ("create_load", "create_masked_load", "create_store", "create_masked_store")
        self._usual = {name: getattr(self._builder, name) for name in names}
        self._start = program_launch._start

        def start(kernel: Any, grid: tuple[int, int], own: dict[str, Any]) -> None:
            self.launches.append((kernel.__name__, Launch()))
            self._start(kernel, grid, own)

        usual, note = self._usual, self._note

        def masked_load(builder: Any, pointers: Any, mask: Any, *rest: Any, **options: Any) -> Any:
            note(pointers, mask, False)
            return usual["create_masked_load"](builder, pointers, mask, *rest, **options)

        def masked_store(builder: Any, pointers: Any, value: Any, mask: Any, *rest: Any, **options: Any) -> Any:
            note(pointers, mask, True)
            return usual["create_masked_store"](builder, pointers, value, mask, *rest, **options)

        # The two without a mask call the two with one.
        self._builder.create_masked_load, self._builder.create_masked_store = masked_load, masked_store
        program_launch._start = start
        return self

    def __exit__(self, *_: object) -> None:
        for name, method in self._usual.items():
            setattr(self._builder, name, method)
        self._module._start = self._start

    def _note(self, pointers: Any, mask: Any, written: bool) -> None:
        _, launch = self.launches[-1]
        element = pointers.get_element_ty()
        size = max(element.primitive_bitwidth // 8, 1)
        places = np.asarray(pointers.data).ravel()[np.asarray(mask.data, bool).ravel()].tolist()
        if written:
            launch.bytes_written += size * len(places)
            launch.stores += len(places)
            launch.written.update(places)
        else:
            launch.bytes_read += size * len(places)
            launch.read.update(places)

    @property
    def bytes(self) -> int:
        return sum(launch.bytes_read + launch.bytes_written for _, launch in self.launches)


class TorchTraffic(TorchDispatchMode):
    """Bytes of the inputs and outputs of torch's operators, views left out, and the largest sum of what was alive."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = self.alive = self.peak = 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        inputs = [value for value in tree_leaves((args, kwargs)) if isinstance(value, Tensor)]
        outputs = [value for value in tree_leaves(out) if isinstance(value, Tensor)]
        old = {value.untyped_storage().data_ptr() for value in inputs}
        new = [value for value in outputs if value.untyped_storage().data_ptr() not in old]
        if new or (outputs and func._schema.is_mutable):
            empty = "empty" in func.__name__
            self.bytes += 0 if empty else sum(value.nbytes for value in (*inputs, *outputs))
        for value in new:
            self._follow(value)
        return out

    def _follow(self, value: Tensor) -> None:
        storage = value.untyped_storage()
        place, size = storage._cdata, storage.nbytes()
        if place in self._known:
            return
        self._known.add(place)
        self.alive += size
        self.peak = max(self.peak, self.alive)

        def gone() -> None:
            self.alive -= size
            self._known.discard(place)

        weakref.finalize(storage, gone)
