"""Batches are chosen by memory, and the command line says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from ltga.data import csbm
from ltga.train.batches import choose_batches, free_memory
from ltga.train.memory import computed_as, full_batch_bytes
from ltga.train.protocol import Protocol


def test_batches_are_chosen_where_the_estimate_is_beyond_the_share_of_free_memory() -> None:
    graph, protocol = csbm(num_nodes=500), Protocol(init="paired")
    need = full_batch_bytes(500, graph.data.num_edges, 16, 64, 8, 2, 2, computed=str(computed_as("gatv2", protocol)))
    assert choose_batches(graph, ["gatv2", "gcn"], protocol, free=2 * need) == (None, "")
    chosen, why = choose_batches(graph, ["gatv2", "gcn"], protocol, free=need)
    assert chosen is not None and "with gatv2" in why and "--full-batch" in why
    assert choose_batches(graph, ["gcn"], protocol, free=1) == (None, "")


def test_free_memory_is_what_the_system_says() -> None:
    if not Path("/proc/meminfo").exists():
        pytest.skip("not Linux")
    total = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    assert 0 < int(free_memory() or 0) <= 1024 * int(total.split()[1])
