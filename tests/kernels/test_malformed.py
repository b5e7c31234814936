"""Thousands of malformed graphs, arrays and arguments: an error every time, never a crash.

Run as a program, this file is the fuzzer; the test runs it in a process of its own.
"""

import faulthandler
import json
import random
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import pytest
import torch

WRONG_DTYPES = [
    torch.float16, torch.float32, torch.float64, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool,
    torch.complex64,
]  # fmt: skip
BAD_NUMBERS = [-1, -2, 5, 6, 7, 100, 10**6, 2**31 - 1, 2**31, 2**40, -(2**31), -(2**40), 2**62]


class Fuzzer:
    def __init__(self, seed, log):
        self.random = random.Random(seed)
        self.generator = torch.Generator().manual_seed(seed)
        self.log = log
        self.outcomes = {}
        self.unexpected = {}

    def draw(self, *shape, dtype=torch.float32):
        return torch.randn(*shape, generator=self.generator, dtype=dtype)

    def attempt(self, label, call, allowed):
        """Run one case; the label is on disk before, so that a crash names it."""
        self.log.seek(0)
        self.log.write(label.ljust(300)[:300])
        self.log.flush()
        kind = label.split(" ")[0]
        counts = self.outcomes.setdefault(kind, {"ok": 0, "error": 0})
        try:
            call()
        except allowed:
            counts["error"] += 1
        except Exception as error:
            counts["error"] += 1
            self.unexpected.setdefault(f"{kind}: {type(error).__name__}: {str(error)[:90]}", label)
        else:
            counts["ok"] += 1

    def corrupted_integers(self, values, bad_numbers=BAD_NUMBERS):
        """One to three entries replaced, or a whole other shape, dtype or layout."""
        values = values.clone()
        how = self.random.randrange(9)
        if how <= 3 and values.numel():
            for _ in range(self.random.randint(1, 3)):
                limits = torch.iinfo(values.dtype)
                bad = max(limits.min, min(limits.max, self.random.choice(bad_numbers)))
                values.view(-1)[self.random.randrange(values.numel())] = bad
            return values
        if how == 4:
            return values[..., :-1] if values.size(-1) else values.new_zeros(*values.shape[:-1], 3)
        if how == 5:
            return torch.cat([values, values], dim=-1)
        if how == 6:
            return values.to(self.random.choice(WRONG_DTYPES))
        if how == 7:
            return values.repeat_interleave(2, dim=-1)[..., ::2]  # not contiguous
        return values.reshape(-1, 1) if values.dim() == 1 else values.t()

    def corrupted_floats(self, values):
        if values is None:
            return self.draw(self.random.randint(0, 5), self.random.randint(0, 5))
        how = self.random.randrange(9)
        if how == 0:
            return None
        if how == 1:
            return values[:-1] if len(values) else self.draw(3, *values.shape[1:])
        if how == 2:
            return torch.cat([values, values])
        if how == 3:
            return values[..., :-1]
        if how == 4:
            return values.to(self.random.choice(WRONG_DTYPES))
        if how == 5:
            return values.unsqueeze(0)
        if how == 6:
            return values.reshape(-1)
        if how == 7:
            return torch.full_like(values, self.random.choice([float("nan"), float("inf"), -1e38, 1e38]))
        return values.new_zeros([0] * values.dim())


def fuzz_layer(fuzzer, rounds):
    from torch_geometric import EdgeIndex

    from ltga import LTGAError
    from ltga.nn import LTGAConv

    layers = [
        LTGAConv(4, 3, heads=2, backend=backend, **arguments)
        for backend in ("numba", "torch")
        for arguments in (
            {}, {"index": "edge", "edge_dim": 2}, {"scoring": "gat", "edge_dim": 2, "add_self_loops": False},
            {"scoring": "dot", "normalizer": "entmax", "modifier": "edge-bias", "concat": False},
        )
    ]  # fmt: skip
    for number in range(rounds):
        conv = fuzzer.random.choice(layers)
        edge_index = torch.randint(0, 5, (2, fuzzer.random.randint(0, 12)), generator=fuzzer.generator)
        attr = fuzzer.draw(edge_index.size(1), 2) if conv.edge_dim else None
        x = fuzzer.draw(5, 4)
        what = fuzzer.random.choice(["edge_index", "edge_index", "x", "edge_attr", "form", "all"])
        given = edge_index
        if what in ("edge_index", "all"):
            given = fuzzer.corrupted_integers(edge_index)
        if what in ("x", "all"):
            x = fuzzer.corrupted_floats(x)
        if what in ("edge_attr", "all"):
            attr = fuzzer.corrupted_floats(attr)
        if what == "form":
            form = fuzzer.random.randrange(6)
            if form == 0:
                given = torch.sparse_coo_tensor(edge_index, torch.ones(edge_index.size(1)), (5, 5)).to_sparse_csr()
            elif form == 1:
                given = torch.sparse_coo_tensor(edge_index, torch.ones(edge_index.size(1)), (7, 6))
            elif form == 2:
                given = EdgeIndex(edge_index, sparse_size=(5, 5))
            elif form == 3:
                given = fuzzer.random.choice([None, [[0], [1]], "graph", 3, (edge_index, edge_index)])
            elif form == 4:
                x = (x, fuzzer.draw(fuzzer.random.choice([0, 3, 5]), fuzzer.random.choice([4, 3])))
            else:
                x = (x, None)

        def run(conv=conv, x=x, given=given, attr=attr):
            out = conv(x, given, attr)
            out.sum().backward()

        shapes = [
            list(v.shape) if isinstance(v, torch.Tensor) and not v.is_sparse else type(v).__name__
            for v in (x, given, attr)
        ]
        fuzzer.attempt(f"layer {number} {what} {conv.backend} {conv.scoring} {shapes}", run, LTGAError)


def structures(fuzzer):
    from ltga.kernels import Neighbourhoods

    edges = fuzzer.random.randint(1, 14)
    edge_index = torch.randint(0, 5, (2, edges), generator=fuzzer.generator)
    return Neighbourhoods.build(edge_index, 5, 5)


def fuzz_attend(fuzzer, rounds):
    for number in range(rounds):
        nb = structures(fuzzer)
        edges, heads, channels = nb.num_edges, fuzzer.random.choice([1, 2, 3]), fuzzer.random.choice([1, 4])
        per_edge = edges if fuzzer.random.random() < 0.5 else 1
        scoring = fuzzer.random.choice([0, 1, 2, 1, 2, 7, -1])
        floats = [
            fuzzer.draw(5, heads, channels), fuzzer.draw(5, heads, channels), fuzzer.draw(heads, channels),
            fuzzer.draw(edges, 2), fuzzer.draw(2, heads, channels), fuzzer.draw(edges, heads) if scoring == 0 else None,
            fuzzer.draw(per_edge, heads), fuzzer.draw(edges, heads), 1 + 0.1 * fuzzer.draw(per_edge, heads),
            fuzzer.draw(edges, heads), fuzzer.draw(fuzzer.random.choice([1, heads]), channels),
        ]  # fmt: skip
        structure = list(nb.structure)
        changed = []
        for _ in range(fuzzer.random.randint(0, 2)):
            place = fuzzer.random.randrange(17)
            changed.append(place)
            if place < 11:
                floats[place] = fuzzer.corrupted_floats(floats[place])
            else:
                structure[place - 11] = fuzzer.corrupted_integers(structure[place - 11])
        floats = [v.requires_grad_() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in floats]
        settings = (scoring, fuzzer.random.choice([0, 1, 2, 5]), 0.2, 0.5, fuzzer.random.random() < 0.3)

        def run(floats=floats, structure=structure, settings=settings):
            out = torch.ops.ltga.attend(*floats, *structure, *settings)
            (out[0].sum() + out[1].sum()).backward()

        fuzzer.attempt(f"attend {number} changed {changed} settings {settings} heads {heads}", run, Exception)


def fuzz_attend_backward(fuzzer, rounds):
    """The derivative is an operator of its own, and as public as the first."""
    for number in range(rounds):
        nb = structures(fuzzer)
        edges, heads, channels = nb.num_edges, 2, 4
        per_edge = edges if fuzzer.random.random() < 0.5 else 1
        floats = [
            fuzzer.draw(5, heads, channels), fuzzer.draw(edges, heads), fuzzer.draw(5, heads, channels),
            fuzzer.draw(5, heads, channels), fuzzer.draw(heads, channels), fuzzer.draw(edges, 2),
            fuzzer.draw(2, heads, channels), fuzzer.draw(per_edge, heads), 1 + 0.1 * fuzzer.draw(per_edge, heads),
            fuzzer.draw(edges, heads),
        ]  # fmt: skip
        saved = [fuzzer.draw(edges, heads), fuzzer.draw(edges, heads), fuzzer.draw(edges, heads).abs()]
        structure = list(nb.structure)
        changed = []
        for _ in range(fuzzer.random.randint(1, 2)):
            place = fuzzer.random.randrange(19)
            changed.append(place)
            if place < 10:
                floats[place] = fuzzer.corrupted_floats(floats[place])
            elif place < 16:
                structure[place - 10] = fuzzer.corrupted_integers(structure[place - 10])
            else:
                saved[place - 16] = fuzzer.corrupted_floats(saved[place - 16])
        settings = (fuzzer.random.choice([0, 1, 2]), fuzzer.random.choice([0, 1, 2]), 0.2, 0.5, True, True, True, True)

        def run(floats=floats, structure=structure, saved=saved, settings=settings):
            torch.ops.ltga.attend_backward(*floats, *structure, *saved, *settings)

        fuzzer.attempt(f"attend_backward {number} changed {changed} settings {settings}", run, Exception)


def fuzz_small_operators(fuzzer, rounds):
    from ltga.kernels import SparseFeatures

    for number in range(rounds):
        nb = structures(fuzzer)
        ptr, col = nb.ptr, nb.col
        weights, x = fuzzer.draw(nb.num_edges, 2), fuzzer.draw(5, 2, 3)
        if fuzzer.random.random() < 0.5:
            ptr, col = fuzzer.corrupted_integers(ptr), fuzzer.corrupted_integers(col)
        else:
            weights, x = fuzzer.corrupted_floats(weights), fuzzer.corrupted_floats(x)
        fuzzer.attempt(f"aggregate {number}", lambda a=(weights, x, ptr, col): torch.ops.ltga.aggregate(*a), Exception)

        given = fuzzer.corrupted_integers(nb.edge_index)
        sizes = fuzzer.random.choice([(5, 5), (3, 5), (5, 2), (0, 0), (-1, 5)])
        fuzzer.attempt(
            f"sorted_structure {number} {sizes}",
            lambda a=(given, *sizes, number % 2 == 0): torch.ops.ltga.sorted_structure(*a),
            Exception,
        )

        dense = fuzzer.draw(6, 5) * (fuzzer.draw(6, 5) > 0.5)
        form = SparseFeatures.from_dense(dense)
        weight, bias = fuzzer.draw(3, 5), fuzzer.draw(3)
        arrays = [form.values, form.ptr, form.col]
        place = fuzzer.random.randrange(6)
        if place in (1, 2):
            arrays[place] = fuzzer.corrupted_integers(arrays[place])
        elif place == 0:
            arrays[0] = fuzzer.corrupted_floats(arrays[0])
        elif place == 3:
            weight = fuzzer.corrupted_floats(weight)
        else:
            bias = fuzzer.corrupted_floats(bias)
        if isinstance(weight, torch.Tensor) and weight.is_floating_point():
            weight = weight.detach().requires_grad_()

        def run(arrays=arrays, weight=weight, bias=bias):
            torch.ops.ltga.project_sparse(*arrays, weight, bias).sum().backward()

        fuzzer.attempt(f"project_sparse {number} changed {place}", run, Exception)

        columns = fuzzer.random.choice([5, 5, 3, 0, -2])
        grad = fuzzer.corrupted_floats(fuzzer.draw(6, 3)) if place == 5 else fuzzer.draw(6, 3)
        fuzzer.attempt(
            f"project_sparse_backward {number} changed {place}",
            lambda a=(grad, *arrays, columns): torch.ops.ltga.project_sparse_backward(*a),
            Exception,
        )


def fuzz_edge_mlp(fuzzer, rounds):
    for number in range(rounds):
        nb = structures(fuzzer)
        floats = [fuzzer.draw(5, 4), fuzzer.draw(5, 4), fuzzer.draw(3, 4), fuzzer.draw(3)]
        structure, grad, out = list(nb.structure), fuzzer.draw(nb.num_edges, 3), fuzzer.draw(nb.num_edges, 3)
        place = fuzzer.random.randrange(12)
        if place < 4:
            floats[place] = fuzzer.corrupted_floats(floats[place])
        elif place < 10:
            structure[place - 4] = fuzzer.corrupted_integers(structure[place - 4])
        elif place == 10:
            grad = fuzzer.corrupted_floats(grad)
        else:
            out = fuzzer.corrupted_floats(out)
        csr, bound = number % 2 == 0, float(number % 3)
        fuzzer.attempt(
            f"edge_mlp {number} changed {place}",
            lambda a=(*floats, *structure, csr, bound): torch.ops.ltga.edge_mlp(*a),
            Exception,
        )
        fuzzer.attempt(
            f"edge_mlp_backward {number} changed {place}",
            lambda a=(grad, out, *floats[:3], *structure, csr, bound): torch.ops.ltga.edge_mlp_backward(*a),
            Exception,
        )


def fuzz_segments(fuzzer, rounds):
    from ltga import LTGAError
    from ltga.functional import segment_entmax, segment_q_softmax, segment_sparsemax

    for number in range(rounds):
        length = fuzzer.random.randint(0, 9)
        z = fuzzer.draw(length) if fuzzer.random.random() < 0.5 else fuzzer.draw(length, 2)
        index = torch.randint(0, 4, (length,), generator=fuzzer.generator)
        ptr = torch.tensor([0, *sorted(fuzzer.random.randint(0, length) for _ in range(3)), length])
        value = fuzzer.random.choice(
            [1.5, 2.0, 1.0, torch.tensor([1.5, 1.2]), fuzzer.draw(3), "two", None, float("nan")]
        )
        arguments = fuzzer.random.choice(
            [
                # A large index is a legitimate request for as many segments, so only small ones here.
                {"index": fuzzer.corrupted_integers(index, [-1, -(2**40), 5, 100])},
                {"ptr": fuzzer.corrupted_integers(ptr)},
                {"index": index, "num_segments": fuzzer.random.choice([0, 2, 4, -1, 9])},
                {"ptr": ptr, "num_segments": fuzzer.random.choice([0, 4, 9])}, {"index": index, "ptr": ptr}, {},
            ]
        )  # fmt: skip
        if fuzzer.random.random() < 0.2:
            z = fuzzer.corrupted_floats(z)
        for function in (segment_q_softmax, segment_entmax):
            fuzzer.attempt(
                f"{function.__name__} {number} {list(arguments)} value {value}",
                lambda f=function, z=z, value=value, arguments=arguments: f(z, value, **arguments),
                LTGAError,
            )
        fuzzer.attempt(
            f"segment_sparsemax {number} {list(arguments)}",
            lambda z=z, arguments=arguments: segment_sparsemax(z, **arguments),
            LTGAError,
        )


SECTIONS = {
    "layer": (fuzz_layer, 1500),
    "segments": (fuzz_segments, 500),
    "attend": (fuzz_attend, 1500),
    "small": (fuzz_small_operators, 500),
    "gate": (fuzz_edge_mlp, 400),
    "backward": (fuzz_attend_backward, 1000),
}


def main(log, names):
    faulthandler.enable()
    warnings.simplefilter("ignore")
    torch.set_num_threads(2)
    with Path(log).open("w") as file:
        fuzzer = Fuzzer(20240607, file)
        for name in names or SECTIONS:
            function, rounds = SECTIONS[name]
            function(fuzzer, rounds)
    print(json.dumps({"outcomes": fuzzer.outcomes, "unexpected": fuzzer.unexpected}))


def test_nothing_malformed_crashes_the_process():
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "last"
        done = subprocess.run(
            [sys.executable, __file__, str(log)], capture_output=True, text=True, timeout=500, check=False
        )
        last = log.read_text().strip() if log.exists() else "before the first case"
    assert done.returncode == 0, f"exit code {done.returncode} in: {last}\n{done.stderr[-2000:]}"
    report = json.loads(done.stdout.splitlines()[-1])
    tried = {name: sum(counts.values()) for name, counts in report["outcomes"].items()}
    assert sum(tried.values()) > 5000
    for name, counts in report["outcomes"].items():
        assert counts["error"] > 0, name  # the corruption does corrupt
    listing = "\n".join(f"{error}   e.g. {case}" for error, case in sorted(report["unexpected"].items()))
    assert not report["unexpected"], f"not an LTGAError:\n{listing}"


@pytest.mark.parametrize("place", range(6))
def test_every_array_of_the_structure_is_checked_before_compiled_code_runs(place):
    """The gentlest corruption: one index one too large, which reads just past an array and would not crash."""
    from ltga import LTGAError
    from ltga.kernels import NORMALIZERS, SCORINGS, Neighbourhoods, attend

    nb = Neighbourhoods.build(torch.tensor([[0, 1, 2], [2, 2, 0]]), 3, 3)
    structure = [array.clone() for array in nb.structure]
    structure[place][-1] = structure[place].max() + 1 if place in (0, 3) else 3
    x = torch.randn(3, 1, 2)
    with pytest.raises(LTGAError):
        attend(
            x, x.clone(), torch.randn(1, 2), None, None, None, None, None, torch.ones(1, 1), None, None, *structure,
            SCORINGS["gatv2"], NORMALIZERS["softmax"], 0.2, 1.0, False,
        )  # fmt: skip


def test_a_bias_for_the_mean_over_heads_is_refused_without_the_mean():
    """[1, C] for H heads would be read past its end."""
    from ltga import LTGAError
    from ltga.kernels import NORMALIZERS, SCORINGS, Neighbourhoods, attend

    nb = Neighbourhoods.build(torch.tensor([[0, 1, 2], [2, 2, 0]]), 3, 3)
    x = torch.randn(3, 4, 2)
    with pytest.raises(LTGAError, match="bias"):
        attend(
            x, x.clone(), torch.randn(4, 2), None, None, None, None, None, torch.ones(1, 4), None, torch.randn(1, 2),
            *nb.structure, SCORINGS["gatv2"], NORMALIZERS["softmax"], 0.2, 1.0, False,
        )  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
