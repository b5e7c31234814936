"""What the constants of benchmarks/cost.py say: where one way of training overtakes another, what a billion edges need.

Rows for docs/tables.py; nothing is measured here. Networks and disks are assumed as stated in the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cost_model import (
    Shape,
    averaging_seconds,
    draw_work,
    folder_bytes,
    most_in_a_batch,
    resident_bytes,
    seconds,
    step_work,
)

from ltga.train.memory import CONSTANTS, full_batch_bytes
from ltga.train.room import SHARE

DEGREE = 10
NETWORK = Shape(features=64, hidden=64, heads=8, layers=2, classes=10)  # as recommended
BATCH, FANOUT, BLOCK = 1024, (10, 5), 4096
TEN_GIGABITS, READS = 1.25e9, 100_000  # bytes a second of a network, and reads at random a second of a disk
BILLION = {"nodes": 100_000_000, "edges": 1_000_000_000}
WIDE = Shape(features=128, hidden=64, heads=8, layers=2, classes=16)
UNITS = {
    "project": "operation of a projection", "attend": "number that attention sums, per edge", "weigh": "weight",
    "edges": "edge and layer", "step": "step", "draw": "drawn edge", "gather": "gathered number", "batch": "batch",
}  # fmt: skip


def constants_rows(found: Mapping[str, Any]) -> list[list[str]]:
    return [[UNITS[name], _time(value)] for name, value in found["constants"].items()]


def held_out_rows(found: Mapping[str, Any]) -> list[list[str]]:
    """What was predicted and what was measured."""
    rows = []
    for row in found["kept_back"]:
        size, measured, predicted = row["size"], row["measured"], row["predicted"]
        how = f"{size['batch_size']} seeds, fan-out {', '.join(map(str, size['fanout']))}" if size["fanout"] else "all"
        rows.append([
            f"{size['nodes']:,} nodes, {size['edges']:,} edges; {how}",
            f"{size['features']} features, {size['layers']} layers of {size['heads']} x {size['hidden']}",
            f"{row['expected']['nodes']:,.0f} / {measured['nodes']:,.0f}",
            f"{_time(sum(predicted.values()))} / {_time(measured['step'] + measured['draw'])}",
            f"{row['error']:+.0%}",
        ])  # fmt: skip
    return rows


def step_seconds(nodes: float, edges: float, shape: Shape, constants: Mapping[str, float]) -> float:
    return seconds(step_work(nodes, edges, shape), constants)


def batch_seconds(shape: Shape, fanout: Sequence[int], constants: Mapping[str, float], seeds: int = BATCH) -> float:
    """A step on a batch as large as can be, drawn by a thread beside it."""
    sizes = most_in_a_batch(seeds, fanout)
    return max(step_seconds(*sizes, shape, constants), seconds(draw_work(*sizes, shape), constants))


def crossover_rows(found: Mapping[str, Any]) -> list[list[str]]:
    """From where on the next way is the better one."""
    constants, shape = found["constants"], NETWORK
    many = 10**7
    whole = step_seconds(many, DEGREE * many, shape, constants) / many
    rows = []
    for fanout in ((5, 5), FANOUT, (10, 10)):
        share = whole / (batch_seconds(shape, fanout, constants) / BATCH)
        told = ", ".join(map(str, fanout))
        rows.append([
            "full batch to batches, by time", f"fan-out {told}: an epoch is quicker if fewer are trained on than",
            f"{share:.1%} of the nodes",
        ])  # fmt: skip
    sizes = {"features": 64, "hidden": shape.hidden, "heads": shape.heads, "layers": 2, "classes": shape.classes}
    per_node = {
        how: full_batch_bytes(nodes=many, edges=DEGREE * many, **sizes, computed=how) / many for how in CONSTANTS
    }
    for memory in (16, 256):
        most = {how: SHARE * memory * 2**30 / each / 1e6 for how, each in per_node.items()}
        rows.append([
            "full batch to batches, by memory", f"{memory} GiB: a full batch fits up to",
            ", ".join(f"{nodes:.2g} million nodes ({how})" for how, nodes in most.items()),
        ])  # fmt: skip
    step = batch_seconds(shape, FANOUT, constants)
    spent = averaging_seconds(shape.parameters, 8, TEN_GIGABITS)
    rows.append([
        "one worker to several (DDP)", f"8 workers, 10 Gbit/s: averaging {shape.parameters:,} parameters takes",
        f"{_time(spent)} beside a step of {_time(step)}",
    ])  # fmt: skip
    rows.append([
        "one worker to several (DDP)", "averaging takes as long as that step from",
        f"{step / averaging_seconds(1, 8, TEN_GIGABITS) / 1e6:,.0f} million parameters",
    ])  # fmt: skip
    nodes, edges = most_in_a_batch(BATCH, FANOUT)
    moved = (2 * nodes * shape.features + 16 * edges) * 7 / 8
    rows.append([
        "one disk to partitioned storage", f"a batch: {nodes + edges:,} reads of a disk at 100,000 a second",
        f"{_time((nodes + edges) / READS)}; from 8 machines' memory by 10 Gbit/s {_time(moved / TEN_GIGABITS)}",
    ])  # fmt: skip
    return rows


def billion_rows(found: Mapping[str, Any], scale: Mapping[str, Any]) -> list[list[str]]:
    """What a graph of a billion edges needs, by the same arithmetic."""
    constants, shape, (nodes, edges) = found["constants"], WIDE, BILLION.values()
    converting = scale["convert"]["process_seconds"] / scale["settings"]["edges"] * edges
    steps = nodes // 100 / BATCH
    step = batch_seconds(shape, FANOUT, constants)
    each = most_in_a_batch(BLOCK, (DEGREE,))
    # Forward is a third of the arithmetic, but sources are projected anew in every block.
    passes = nodes / BLOCK * step_seconds(*each, shape, constants) / 3
    whole = full_batch_bytes(
        nodes=nodes, edges=edges, features=shape.features, hidden=shape.hidden, heads=shape.heads, layers=2,
        classes=shape.classes,
    )  # fmt: skip
    spent = averaging_seconds(shape.parameters, 8, TEN_GIGABITS)
    return [
        ["on disk, features as float16", _size(folder_bytes(nodes, edges, shape.features))],
        ["converting, by the rate measured on 100 million edges", _time(converting)],
        ["memory to convert, beside --memory", _size(50 * nodes)],
        ["memory of a full batch (fused)", _size(whole)],
        ["memory to train from disk, beside a batch", _size(resident_bytes(nodes, shape.classes))],
        [f"an epoch over 1 % of the nodes, fan-out {', '.join(map(str, FANOUT))}, one core", _time(steps * step)],
        ["the same on 8 workers of one core, 10 Gbit/s", _time(steps / 8 * (step + spent))],
        ["hidden layer of an exact evaluation of all nodes, on disk", _size(4 * nodes * shape.hidden * shape.heads)],
        ["that evaluation, one core", _time(passes)],
    ]


def _time(given: float) -> str:
    units = (("h", 3600.0, 2), ("min", 60.0, 2), ("s", 1.0, 1), ("ms", 1e-3, 1), ("µs", 1e-6, 1), ("ns", 1e-9, 0))
    unit, size = next((unit, size) for unit, size, least in units if given >= least * size)
    shown = given / size
    return f"{shown:,.0f} {unit}" if shown >= 100 else f"{shown:.3g} {unit}" if shown >= 1 else f"{shown:.2g} {unit}"


def _size(given: float) -> str:
    return f"{given / 2**30:,.0f} GiB" if given >= 2**30 else f"{given / 2**20:,.0f} MiB"
