"""Whether to train on the whole graph or on sampled neighbourhoods: as asked, or as memory allows."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ltga.data import Dataset
from ltga.errors import InputError
from ltga.train.memory import computed_as, full_batch_bytes
from ltga.train.minibatch import MiniBatch
from ltga.train.protocol import Protocol

SHARE = 0.7  # of the free memory that training on the whole graph may take; the estimate is off by a third at most


def choose_batches(
    dataset: Dataset, methods: Iterable[str], protocol: Protocol, free: int | None = None
) -> tuple[MiniBatch | None, str]:
    """Batches, if some method would not fit into ``free`` bytes otherwise, and a line that says why.

    Methods that cannot be trained by batches (convolutions, heterophily models) have no estimate and are left alone.

    >>> from ltga.data import csbm
    >>> choose_batches(csbm(num_nodes=60), ["ltga-head"], Protocol())
    (None, '')
    """
    data = dataset.data
    free = free_memory() if free is None else free
    needs = {}
    for method in methods:
        computed = computed_as(method, protocol)
        if computed is not None:
            needs[method] = full_batch_bytes(
                data.num_nodes, data.num_edges, data.x.size(1), protocol.hidden_channels, protocol.heads,
                protocol.num_layers, dataset.num_classes, computed=computed,
            )  # fmt: skip
    if not needs or free is None or max(needs.values()) <= SHARE * free:
        return None, ""
    method = max(needs, key=lambda name: needs[name])
    chosen = MiniBatch()
    return chosen, (
        f"the whole graph would take about {needs[method] / 2**30:.1f} GiB with {method} and {free / 2**30:.1f} GiB "
        f"are free: training on sampled neighbourhoods, --batch-size {chosen.batch_size} --fanout {chosen.fanout} "
        "(--full-batch to do without)"
    )


def free_memory() -> int | None:
    """Bytes that can be had without swapping; ``None`` where the system does not tell."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return None


def parse_fanout(text: str) -> int | tuple[int, ...]:
    """``"10"`` or ``"15,10"``: the last layer's first.

    >>> parse_fanout("15,10"), parse_fanout("10")
    ((15, 10), 10)
    """
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--fanout: expected numbers like 10 or 15,10, got {text!r}") from None
    return numbers[0] if len(numbers) == 1 else numbers
