"""The tables of what was measured: speed, memory, scale and what compilers made of the GPU kernels."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from markdown_table import markdown

from ltga.bench.run import ratio, table

ROOT = Path(__file__).parents[1]


def speed() -> str:
    """One layer against PyG's, and in a sentence a whole training run, from benchmarks/results.json."""
    results = json.loads((ROOT / "benchmarks" / "results.json").read_text())
    rows = []
    for name, work in results["works"].items():
        pyg, ours = (min(work["seconds"]["default"][layer]) for layer in ("pyg-gatv2", "ltga-head"))
        bytes_pyg, bytes_ours = (work["extra_bytes"][layer] for layer in ("pyg-gatv2", "ltga-head"))
        faster, reusing = (ratio(work, mode, "pyg-gatv2", "ltga-head") for mode in ("default", "reusing"))
        rows.append(
            [
                f"{name}: {work['what']}",
                f"{pyg:.2f} s",
                f"{ours:.2f} s",
                f"**{faster:.1f}×**",
                f"{reusing:.1f}×",
                f"{bytes_pyg / 1e6:,.0f} → {bytes_ours / 1e6:,.0f} MB",
            ]
        )
    header = ["one layer, forward and backward", "GATv2Conv", "LTGAConv", "faster", "faster¹", "extra memory"]
    machine = results["machine"]
    note = (
        f"{machine['cpu']}, {machine['threads']} threads, torch {machine['torch']}. ¹ Both with an allocator told to "
        "keep freed memory; by default page faults cost PyG more than the arithmetic."
    )
    runs = []
    for name, modes in results["training"].items():
        best = {mode: {who: min(values) for who, values in modes[mode].items()} for mode in modes}
        faster, reusing = (best[mode]["pyg-gatv2"] / best[mode]["ltga-head"] for mode in ("default", "reusing"))
        runs.append(f"{faster:.1f}× on {name} ({reusing:.1f}×¹)")
    whole = f"A whole epoch of training with LTGA-Head, evaluation included, is faster by {', '.join(runs)}."
    return f"{markdown(header, rows)}\n\n{whole}\n\n{note}"


def benchmarks() -> str:
    """Everything benchmarks/run.py measured."""
    return table(json.loads((ROOT / "benchmarks" / "results.json").read_text()))


def published_networks() -> str:
    """An epoch of the published networks against PyG's layers, from benchmarks/results/baselines.json."""
    measured = json.loads((ROOT / "benchmarks" / "results" / "baselines.json").read_text())["milliseconds"]
    rows = []
    for graph, networks in measured["default"].items():
        for name, found in networks.items():
            reusing = measured["reusing"][graph][name]["faster"]
            times = [f"{found[form]:,.0f} ms" for form in ("pyg", "ours")]
            rows.append([graph, name, *times, f"**{found['faster']:.1f}×**", f"{reusing:.1f}×"])
    return markdown(["graph", "network", "PyG's layers", "ours", "faster", "faster, reusing memory"], rows)


def small_graphs() -> str:
    """A new batch of small graphs each step, from benchmarks/results/small_graphs.json."""
    layers = _measured("small_graphs")["layers"]
    rows = ([name, f"{one['milliseconds']:.2f} ms", f"{one['ratio']:.2f}"] for name, one in layers.items())
    return markdown(["layer", "a step", "of PyG's time"], rows)


def checks() -> str:
    """What looking at remembered tensors costs, from benchmarks/checks.json."""
    rows = [
        [
            name,
            f"{1e3 * work['layer']:.1f} ms",
            f"{1e3 * work['edges']:.2f} ms",
            f"{1e3 * work['features']:.2f} ms",
            share,
        ]
        for name, work in json.loads((ROOT / "benchmarks" / "checks.json").read_text()).items()
        for share in [f"{(work['edges'] + work['features']) / work['layer']:.1%}"]
    ]
    return markdown(
        ["one layer, forward and backward", "time", "check of the edges", "of the features", "together"], rows
    )


def _measured(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())
    return found


def sampling() -> str:
    """Sampled edges per second and what memory allows, from benchmarks/results/sampling.json."""
    found = _measured("sampling")
    settings, limits, seconds = found["settings"], found["limits_of_one_thread"], found["training_seconds_per_batch"]
    rates = {
        **found["edges_per_second"],
        "limit of one thread by bandwidth": limits["bandwidth_edges_per_second"],
        "limit of one thread by reads at random": limits["gather_edges_per_second"],
    }
    plain = rates["plain torch"]
    rows = [[name, f"{rate / 1e6:.1f} million", f"{rate / plain:.1f}"] for name, rate in rates.items()]
    plain_batch, our_batch = (median(seconds[name]) for name in ("plain", "ours"))
    return (
        f"{markdown(['sampler', 'edges per second', 'times plain torch'], rows)}\n\n"
        f"{settings['nodes']:,} nodes, {settings['edges']:,} edges, fan-out {', '.join(map(str, settings['fanout']))}, "
        f"{settings['batch_size']:,} seeds a batch; load of the machine {found['machine']['load_average'][0]:.1f} on "
        f"{found['machine']['cores']} cores. NeighborLoader on torch-sparse: {found['torch_sparse']}. A batch of "
        f"training (sample, features, a step of a {len(settings['fanout'])}-layer LTGA) takes {our_batch:.2f} s "
        f"instead of {plain_batch:.2f} s."
    )


def on_disk() -> str:
    """Time and peak memory of every step on a large graph, from benchmarks/results/scale.json."""
    found = _measured("scale")
    what = {
        "convert": "write the folder",
        "check": "compare it with its checksums",
        "train": f"an epoch over {found['train']['seeds']:,} training nodes",
        "command": "`ltga train` from disk: such an epoch, validation, exact evaluation of all nodes",
        "evaluate": f"exact prediction of {found['evaluate']['test_nodes']:,} test nodes",
    }
    rows = [
        [text, f"{found[step]['process_seconds']:.0f} s", f"{found[step]['peak_bytes'] / 2**30:.1f} GiB"]
        for step, text in what.items()
        if step in found
    ]
    train, evaluate, machine = found["train"], found["evaluate"], found["machine"]
    return (
        f"{markdown(['step', 'time of the process', 'peak memory'], rows)}\n\n"
        f"{found['settings']['nodes']:,} nodes, {found['settings']['edges']:,} edges asked for, "
        f"{found['settings']['features']} features, {found['folder_bytes'] / 2**30:.1f} GiB on disk. Training: "
        f"{train['batches']} batches of {train['nodes'] / train['batches']:,.0f} nodes and "
        f"{train['edges'] / train['batches']:,.0f} edges on average, {train['epoch_seconds']:.1f} s, of which "
        f"{train['waited_for_batches_seconds']:.1f} s waiting for a batch; loss {train['first_loss']:.2f} to "
        f"{train['last_loss']:.2f}. Accuracy {evaluate['accuracy']:.2f} (by chance {evaluate['by_chance']:.2f}). Load "
        f"of the machine before it: {machine['load_average_before'][0]:.1f} on {machine['cores']} cores."
    )


def full_batch() -> str:
    """Bytes per number of full-batch training, and how well they predict, from benchmarks/results/memory.json."""
    methods = _measured("memory")["methods"]
    names = max((list(found["constants"]) for found in methods.values()), key=len)
    rows = [
        [
            name,
            *(f"{found['constants'][name]:,.1f}" if name in found["constants"] else "" for found in methods.values()),
        ]
        for name in names
    ]
    errors = {
        part: max(abs(row["predicted"] / row["bytes"] - 1) for found in methods.values() for row in found[part])
        for part in ("fitted", "kept_back")
    }
    return (
        f"{markdown(['bytes for each of', *methods], rows)}\n\nLargest error on the sizes that the constants were "
        f"fitted to {errors['fitted']:.0%}, on sizes kept back {errors['kept_back']:.0%}."
    )


def step_cost() -> str:
    """Seconds for each thing a step grows with, and what was kept back, predicted (benchmarks/results/cost.json)."""
    found, made = _measured("cost"), _cost_tables()
    worst = max(abs(row["error"]) for row in found["fitted"])
    kept = ["kept back", "network", "nodes of a batch, predicted / measured", "time of a step", "error"]
    return (
        f"{markdown(['for each', 'processor time'], made.constants_rows(found))}\n\n"
        f"{markdown(kept, made.held_out_rows(found))}\n\n"
        f"Largest error on the {len(found['fitted'])} configurations that the constants were fitted to {worst:.0%}. "
        f"Load of the machine {found['machine']['load_average'][0]:.1f} on {found['machine']['cores']} cores."
    )


def crossovers() -> str:
    """Where one way of training overtakes another, by the same constants."""
    return markdown(["step up", "when", "crossover"], _cost_tables().crossover_rows(_measured("cost")))


def billion() -> str:
    """What a graph of a billion edges needs, by the same constants and benchmarks/results/scale.json."""
    rows = _cost_tables().billion_rows(_measured("cost"), _measured("scale"))
    return markdown(["100 million nodes, a billion edges, 128 features", "needed"], rows)


def _cost_tables() -> Any:
    folder = str(ROOT / "benchmarks")
    if folder not in sys.path:
        sys.path.append(folder)
    import cost_tables

    return cost_tables


def gpu_code() -> str:
    """What compilers made of the GPU kernels (benchmarks/gpu.json): registers of a thread, spills, shared memory."""
    found = json.loads((ROOT / "benchmarks" / "gpu.json").read_text())
    targets = list(found["compiled"])
    names = list(dict.fromkeys(row["kernel"] for row in found["compiled"][targets[0]]))

    def most(target: str, kernel: str) -> str:
        used = [row for row in found["compiled"][target] if row["kernel"] == kernel]
        registers, spilled, shared = (max(row[what] for row in used) for what in ("registers", "spilled", "shared"))
        return f"{registers}, {spilled}, {shared} B"

    rows = [
        [f"`{kernel.split(' ')[0]}` {kernel.partition(' ')[2]}", *(most(target, kernel) for target in targets)]
        for kernel in names
    ]
    note = (
        "The most that any scoring (GATv2 and dot with 3 edge features, given logits) and normaliser takes; "
        f"8 heads of 64 channels, float32, Triton {found['triton']}."
    )
    return f"{markdown(['registers, spills, shared memory', *targets], rows)}\n\n{note}"


def gpu_kernels() -> str:
    """What every launch of a GPU kernel reads and writes for each edge (benchmarks/gpu.json)."""
    counted = json.loads((ROOT / "benchmarks" / "gpu.json").read_text())["counted"]
    columns: dict[str, dict[str, str]] = {}
    for setting, found in counted.items():
        scoring, normalizer = setting.split(" ")
        shown = columns.setdefault(normalizer, {}) if scoring == "gatv2" else {}
        for launch in found["kernels"]:
            name = f"`{launch['kernel']}`"
            name += " again" if name in shown else ""
            shown[name] = f"{launch['read']:,.0f} + {launch['written']:,.0f}"
    names = dict.fromkeys(name for shown in columns.values() for name in shown)
    rows = [[name, *(shown.get(name, "") for shown in columns.values())] for name in names]
    return markdown(["read + written", *(f"`{normalizer}`" for normalizer in columns)], rows)


def gpu_traffic() -> str:
    """What the GPU kernels read, write and allocate for each edge, beside plain torch (benchmarks/gpu.json)."""
    counted = json.loads((ROOT / "benchmarks" / "gpu.json").read_text())["counted"]
    rows = [
        [
            *(f"`{name}`" for name in setting.split(" ")),
            *(f"{found[what][who]:,.0f}" for what in ("bytes", "peak") for who in ("plain", "triton")),
            f"1/{found['bytes']['plain'] / found['bytes']['triton']:.1f}",
            f"1/{found['peak']['plain'] / found['peak']['triton']:.1f}",
        ]
        for setting, found in counted.items()
    ]
    header = [
        "scoring",
        "normaliser",
        "bytes moved, plain torch",
        "Triton",
        "largest memory, plain torch",
        "Triton",
        "moved",
        "memory",
    ]
    return markdown(header, rows)


SPEED_TABLES: tuple[Callable[[], str], ...] = (
    speed, benchmarks, published_networks, small_graphs, checks, sampling, on_disk, full_batch, step_cost, crossovers,
    billion, gpu_code, gpu_kernels, gpu_traffic,
)  # fmt: skip
