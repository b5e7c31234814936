"""``ltga train``: the table, the sentence on q, JSON, precedence, resuming, and Ctrl-C."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.graphs import QUICK, write_graph, write_tables
from ltga.cli.plan import make_plan
from ltga.data import load_dataset
from ltga.errors import InputError
from ltga.train import Protocol, load_run


def summary(outcome: Any) -> Any:
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)


def test_a_table_with_spread_and_a_line_per_run(ltga: Any, tmp_path: Path) -> None:
    path = write_graph(tmp_path / "graph.npz")
    outcome = ltga("train", path, "--method", "gcn,gatv2,ltga-head", "--seeds", 2, *QUICK)
    assert outcome.code == 0, outcome.err
    header, *rows = [line.split() for line in outcome.out.splitlines()[:6]]
    assert header[:3] == ["method", "test", "accuracy"]
    assert [row[0] for row in rows] == ["commonest", "features", "GCN", "GATv2", "LTGA-Head"]
    assert all("±" in row[2:4] for row in rows[2:])
    assert "LTGA-Head: q moved from 1.5 to" in outcome.out
    assert "\x1b" not in outcome.out + outcome.err
    assert (
        sum(line.startswith(("gcn, seed", "gatv2, seed", "ltga-head, seed")) for line in outcome.err.splitlines()) == 6
    )
    assert len(list((tmp_path / "runs").glob("*.json"))) == 6


def test_json_agrees_with_the_records_and_nothing_else_is_printed(ltga: Any, tmp_path: Path) -> None:
    path = write_graph(tmp_path / "graph.npz")
    outcome = ltga("train", path, "--method", "ltga-edge", "--seeds", 2, "--json", "-q", *QUICK)
    said = summary(outcome)
    assert outcome.err == ""
    (method,) = said["methods"]
    accuracies = [load_run(run["record"]).metrics["accuracy"] for run in method["runs"]]
    assert method["mean"] == pytest.approx(np.mean(accuracies))
    assert method["std"] == pytest.approx(np.std(accuracies, ddof=1))
    assert [run["seed"] for run in method["runs"]] == [1, 2]
    assert said["dataset"]["nodes"] == 24
    assert said["protocol"]["epochs"] == 2


def test_the_ignored_edges_are_counted_on_the_weights(ltga: Any, tmp_path: Path) -> None:
    settings = ("--set", "epochs=3", "--set", "warmup=0", "--set", "lr=0.5", "--set", "backend=torch")
    outcome = ltga("train", "--method", "ltga-head", "--seeds", 1, "--json", "-q", *settings)
    (run,) = summary(outcome)["methods"][0]["runs"]
    graph = load_dataset("digits-noise")
    layers = load_run(run["record"]).model.attend(graph.data.x, graph.data.edge_index)  # type: ignore[operator]
    zero = {tuple(edge) for layer in layers for edge in layer.edge_index.T[(layer.weights == 0).any(1)].tolist()}
    edges = {(source, target) for source, target in zero if source != target}
    noise = set(map(tuple, graph.data.edge_index.T[graph.data.planted_edge].tolist()))
    assert run["ignored_edges"] == len(edges) > 0
    assert run["ignored_planted_edges"] == len(edges & noise)
    *_, sentence = summary(outcome)["sentences"]
    assert f"Of the {len(edges):,} edges that some head ignores, {len(edges & noise):,}" in sentence
    assert sentence.endswith("of all edges 75 % are.")


def test_a_folder_of_tables_and_a_graph_without_test_nodes(ltga: Any, tmp_path: Path) -> None:
    outcome = ltga("train", write_tables(tmp_path / "tables"), "--method", "gatv2", "--seeds", 1, *QUICK)
    assert outcome.code == 0
    assert "tables: 24 nodes, 24 edges" in outcome.err
    undirected = ("--convention", "undirected, once", *QUICK)
    outcome = ltga("train", tmp_path / "tables", "--method", "gatv2", "--seeds", 1, *undirected)
    assert "tables: 24 nodes, 48 edges" in outcome.err
    nowhere = np.zeros(24, dtype=bool)
    path = write_graph(tmp_path / "graph.npz", test_masks=nowhere)
    outcome = ltga("train", path, "--method", "gatv2", "--seeds", 1, *QUICK)
    assert outcome.code == 0
    assert "val accuracy" in outcome.out


def test_command_line_over_file_over_defaults(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('dataset = "cora"\nmethod = "gcn,gat"\nseeds = 4\n[protocol]\nepochs = 7\nlr = 0.5\n')
    plan = make_plan(config=file)
    assert (plan.dataset, plan.methods, plan.seeds) == ("cora", ("gcn", "gat"), 4)
    assert (plan.protocol.epochs, plan.protocol.lr, plan.protocol.init) == (7, 0.5, "paired")
    assert plan.protocol.hidden_channels == "auto"
    plan = make_plan("digits-noise", ["gatv2"], 1, ["epochs=9", "init=paper"], file)
    assert (plan.dataset, plan.methods, plan.seeds) == ("digits-noise", ("gatv2",), 1)
    assert (plan.protocol.epochs, plan.protocol.lr, plan.protocol.init) == (9, 0.5, "paper")
    assert plan.protocol.hidden_channels == 16
    assert make_plan().methods == ("gatv2", "ltga-head", "entmax-head")
    assert make_plan("cora", base="paper").protocol == Protocol.paper(init="paired")
    assert make_plan("cora").protocol == Protocol.recommended()
    with pytest.raises(InputError, match="--protocol: expected 'recommended' or 'paper', got 'papr'"):
        make_plan("cora", base="papr")


def test_the_last_line_names_a_run_for_the_next_command(ltga: Any, tmp_path: Path) -> None:
    graph = write_graph(tmp_path / "graph.npz")
    for options in ((), ("--task", "link")):
        outcome = ltga("train", graph, "--method", "ltga-head,gatv2", "--seeds", 1, *QUICK, *options)
        last = outcome.out.splitlines()[-1]
        run = re.search("ltga explain ([0-9a-f]{8}) ", last)
        assert run and "LTGA-Head" in last and ("--pairs" in last) == bool(options), last
        assert ltga("explain", run[1]).code == 0


def test_runs_in_the_store_are_not_run_again(ltga: Any, tmp_path: Path) -> None:
    path = write_graph(tmp_path / "graph.npz")

    def reused(*options: object) -> list[bool]:
        said = summary(ltga("train", path, "--method", "gatv2", "--seeds", 2, "--json", "-q", *QUICK, *options))
        return [run["reused"] for run in said["methods"][0]["runs"]]

    assert reused() == [False, False]
    assert reused() == [True, True]
    assert reused("--fresh") == [False, False]
    record = sorted((tmp_path / "runs").glob("*.json"))[0]
    record.with_suffix(".safetensors").write_bytes(b"damaged")
    assert sorted(reused()) == [False, True]
    assert reused("--set", "lr=0.5") == [False, False]


@contextmanager
def started(path: Path, *options: object, **how: Any) -> Iterator[subprocess.Popen[Any]]:
    command = [sys.executable, "-m", "ltga", "train", path, *options, *QUICK[2:]]

    def heed_ctrl_c() -> None:  # what a shell starts in the background ignores it, and so would its children
        signal.signal(signal.SIGINT, signal.default_int_handler)

    with subprocess.Popen(list(map(str, command)), cwd=path.parent, preexec_fn=heed_ctrl_c, **how) as process:
        try:
            yield process
        finally:
            process.kill()


def test_ctrl_c_keeps_what_is_finished(ltga: Any, tmp_path: Path) -> None:
    path = write_graph(tmp_path / "graph.npz")
    options = ("--method", "gatv2", "--set", "epochs=40", "--set", "patience=40")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with started(path, *options, "--seeds", 2000, **pipes) as process:
        assert process.stderr is not None
        while "seed 2" not in (line := process.stderr.readline()):
            assert line, "it ended by itself"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert out == ""
    assert err.splitlines()[-1] == "interrupted; what is finished is kept, and the same command goes on from there"
    assert "Traceback" not in err
    files = [file for file in (tmp_path / "runs").iterdir() if file.suffix != ".json"]
    records = sorted((tmp_path / "runs").glob("*.json"))
    assert len(records) >= 2
    assert not [file for file in files if file.name.endswith(".part")]
    for record in records:
        assert not load_run(record).record["interrupted"]
    again = ltga("train", path, *options, "--seeds", 2, "--json", "-q", *QUICK[2:])
    assert all(run["reused"] for run in summary(again)["methods"][0]["runs"])


def test_live_progress_on_a_terminal_without_colour(tmp_path: Path) -> None:
    path = write_graph(tmp_path / "graph.npz")
    leader, follower = pty.openpty()
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "xterm", "COLUMNS": "120"}
    options = ("--method", "ltga-head", "--seeds", 1, "--set", "epochs=400", "--set", "patience=400")
    seen = b""
    with started(path, *options, stdout=subprocess.PIPE, stderr=follower, env=environment) as process:
        os.close(follower)
        with suppress(OSError):  # the other end is closed
            while chunk := os.read(leader, 4096):
                seen += chunk
        out = process.communicate(timeout=60)[0].decode()
    os.close(leader)
    text = seen.decode(errors="replace")
    assert process.returncode == 0
    assert "epoch " in text and "loss " in text and "val " in text and "q 1." in text
    assert not [code for code in range(30, 38) if f"\x1b[{code}m" in text + out]
    assert "LTGA-Head" in out and "\x1b" not in out


def test_a_model_that_is_no_better_than_the_commonest_class_is_said_to_be_so(ltga: Any, tmp_path: Path) -> None:
    """One positive in ten and features that say nothing: accuracy would look good, and says nothing either."""
    rng = np.random.default_rng(0)
    y = (rng.random(200) < 0.1).astype(np.int64)
    edges = rng.integers(0, 200, (400, 2))
    path = tmp_path / "useless.npz"
    np.savez(path, node_features=rng.normal(size=(200, 3)).astype(np.float32), node_labels=y, edges=edges)
    outcome = ltga("train", path, "--method", "gatv2", "--seeds", 1, "--convention", "directed", "--json", "-q", *QUICK)
    said = summary(outcome)
    assert said["metric"] == "roc_auc" and said["yardsticks"]["commonest class"] == 0.5
    by_loss = ltga("train", path, "--method", "gatv2", "--seeds", 1, "--convention", "directed", "--json", "-q",
                   "--metric", "loss", *QUICK)  # fmt: skip
    assert summary(by_loss)["metric"] == "roc_auc"  # the loss chooses the epoch, and is no score
    outcome = ltga("train", path, "--method", "gatv2", "--seeds", 1, "--convention", "directed", "-q", "--metric",
                   "accuracy", *QUICK)  # fmt: skip
    said_aloud = " ".join(outcome.out.split())
    assert "does not beat always saying the commonest class" in said_aloud
    longer = ltga("train", path, "--method", "gatv2", "--seeds", 1, "--convention", "directed", "-q", "--metric",
                  "accuracy", "--set", "epochs=30", "--set", "hidden_channels=8", "--set", "heads=2")  # fmt: skip
    assert "GATv2 calls every test node '0': train with --set class_weights=true" in " ".join(longer.out.split())
    wrong = ltga("train", path, "--metric", "f1")
    assert wrong.code == 2 and "metric: input should be" in wrong.err


def test_batches_on_the_command_line(ltga: Any, tmp_path: Path) -> None:
    path = write_graph(tmp_path / "graph.npz")
    given = ("train", path, "--method", "ltga-head", "--seeds", 1, "--json", "-q", *QUICK)
    said = summary(ltga(*given, "--batch-size", 4, "--fanout", "3,2"))
    config = load_run(said["methods"][0]["runs"][0]["record"]).record["config"]
    assert config["minibatch"]["batch_size"] == 4 and config["minibatch"]["fanout"] == [3, 2]
    both = ltga(*given, "--batch-size", 4, "--full-batch")
    assert both.code == 2 and "contradicts" in both.err
    wrong = ltga(*given, "--fanout", "ten")
    assert wrong.code == 2 and "--fanout: expected numbers" in wrong.err
    alone = ltga("train", path, "--method", "ltga-head", "--seeds", 1, *QUICK, "--fanout", 3)
    assert alone.code == 0 and alone.err.startswith("--fanout 3: trained on batches of 512 nodes")
