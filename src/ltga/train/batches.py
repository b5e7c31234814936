"""Whether to train on the whole graph or on sampled neighbourhoods: as asked, or as memory allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ltga.data import Dataset, GraphFolder, NodeDataset
from ltga.errors import InputError
from ltga.train.left_to_the_graph import settle
from ltga.train.memory import computed_as, full_batch_bytes
from ltga.train.minibatch import MiniBatch, as_minibatch
from ltga.train.protocol import Protocol
from ltga.train.room import SHARE, free_memory


class BatchesWarning(UserWarning):
    """Training by batches was chosen because the whole graph would not fit into memory."""


def choose_batches(
    dataset: Dataset | NodeDataset | GraphFolder,
    methods: Iterable[str],
    protocol: Protocol | Callable[[str], Protocol],
    free: int | None = None,
) -> tuple[MiniBatch | None, str]:
    """Batches, if some method would not fit into ``free`` bytes otherwise, and a line that says why.

    ``protocol`` may depend on the method. A graph on disk would have to be loaded too. Methods that cannot be trained
    by batches (convolutions, heterophily models) have no estimate and are left alone.

    >>> from ltga.data import csbm
    >>> choose_batches(csbm(num_nodes=60), ["ltga-head"], Protocol())
    (None, '')
    """
    free = free_memory() if free is None else free
    folder = isinstance(dataset, GraphFolder)
    loaded = dataset.bytes_in_memory if isinstance(dataset, GraphFolder) else 0
    outputs = dataset.target.outputs if isinstance(dataset, NodeDataset) else dataset.num_classes
    needs = {}
    for method in methods:
        settings = protocol if isinstance(protocol, Protocol) else protocol(method)
        settings, _ = settle(settings, dataset.num_nodes, 1.0)
        computed = computed_as(method, settings)
        if computed is not None:
            needs[method] = loaded + full_batch_bytes(
                dataset.num_nodes, dataset.num_edges, dataset.num_features, *settings.size,
                settings.num_layers, outputs, computed=computed,
            )  # fmt: skip
    if not needs or free is None or max(needs.values()) <= SHARE * free:
        return None, ""
    method = max(needs, key=lambda name: needs[name])
    chosen = MiniBatch()
    return chosen, (
        f"the whole graph would take about {needs[method] / 2**30:.1f} GiB with {method} and {free / 2**30:.1f} GiB "
        f"are free: training on sampled neighbourhoods{' from disk' if folder else ''}, "
        f"--batch-size {chosen.batch_size} --fanout {chosen.fanout} (--full-batch to do without)"
    )


def graph_and_batches(
    dataset: Dataset | GraphFolder,
    methods: Sequence[str],
    protocol: Protocol,
    asked: Any = "auto",
    free: int | None = None,
) -> tuple[Dataset | GraphFolder, MiniBatch | None, str]:
    """What to train on and how: a folder stays on disk if it is trained by batches, and is loaded otherwise.

    Args:
        asked: batches, ``None`` for the whole graph at once, or ``"auto"`` to choose by memory.
        free: bytes of memory, as for :func:`choose_batches`.

    Returns:
        Graph, batches or ``None``, and a line that says why, if that was chosen.
    """
    why = ""
    if isinstance(asked, str) and asked == "auto":
        batches, why = choose_batches(dataset, methods, protocol, free)
    else:
        batches = as_minibatch(asked)
    if batches is not None:
        check_batched(methods, protocol, why)
    if batches is None and isinstance(dataset, GraphFolder):
        where = dataset.path
        try:
            dataset = dataset.dataset()
        except MemoryError:
            raise InputError(f"{where}: does not fit into memory; train it by batches") from None
    return dataset, batches, why


def check_batched(methods: Iterable[str], protocol: Protocol, why: str = "") -> None:
    """Raise if one of the methods cannot be trained by batches; ``why`` says what they were chosen for."""
    for method in methods:
        if computed_as(method, protocol) is None:
            cause = f", but {why.partition(':')[0]}" if why else ""
            fault = f"{method} needs the whole graph at once{cause}"
            raise InputError(f"minibatch: {fault}; leave it out, or use an attention method")
