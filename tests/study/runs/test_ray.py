"""Ray, for real: a cluster of several nodes on this machine, one of them killed while it is at a run."""

import threading
from collections import Counter

import pytest

from ltga.errors import InputError
from ltga.study import Store, run_suite

ray = pytest.importorskip("ray")


@pytest.fixture
def cluster(monkeypatch):
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_worker_niceness", "0")  # else a busy machine starves them
    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    yield found
    ray.shutdown()
    found.shutdown()


@pytest.mark.slow
def test_a_node_killed_while_at_a_run_loses_nothing(tmp_path, tiny, cluster, monkeypatch, wait_for) -> None:
    from ltga.study.engines import ray_cluster as module

    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    doomed, log = nodes[1], tmp_path / "log"
    log.write_text("")

    def traced(job, dataset, threads):
        import ray

        from ltga.study.engines.ray_cluster import _task

        def note(word):
            with log.open("a") as stream:
                stream.write(f"{word} {job.spec.seed} {ray.get_runtime_context().get_node_id()}\n")

        note("begins")
        finished = _task(job, dataset, threads)
        note("ends")
        return finished

    def at_work() -> set[tuple[str, str]]:
        """(seed, node) of the runs begun and not ended."""
        lines = [line.split() for line in log.read_text().splitlines()]
        begun, ended = ({(seed, node) for word, seed, node in lines if word == which} for which in ("begins", "ends"))
        return begun - ended

    lost: list[str] = []

    def kill_at_work() -> None:
        def busy() -> list[str]:
            return [seed for seed, node in at_work() if node == doomed.node_id]

        wait_for(busy, 300)
        cluster.remove_node(doomed, allow_graceful=False)
        lost.extend(busy())  # begun there, and it will never end there

    def watch(tally) -> None:
        if tally.done == 2:
            threading.Thread(target=kill_at_work).start()

    monkeypatch.setattr(module, "_task", traced)
    specs = [tiny(seed, epochs=500, patience=500) for seed in range(1, 9)]
    specs.append(tiny(9, method="linkx", residual=True))  # linkx has no residual: fails, and is not tried again
    tally = run_suite(specs, tmp_path / "store", module.RayCluster(cluster.address), watch=watch)

    assert len(lost) == 1, "the node was killed between two runs"
    begun = Counter(line.split()[1] for line in log.read_text().splitlines() if line.startswith("begins"))
    assert begun[lost[0]] == 2 and begun.total() == 10  # that run again, and no other
    assert (tally.done, len(tally.failed), tally.left) == (8, 1, {})
    assert "residual" in next(iter(tally.failed.values()))
    records = list(Store(tmp_path / "store").records())
    assert sorted(record["config"]["seed"] for record in records) == list(range(1, 9))
    assert {record["epochs"] for record in records} == {500}
    assert {record["environment"]["machine"]["threads"] for record in records} == {1}


def test_a_cluster_that_is_not_there_is_named(tmp_path, tiny) -> None:
    from ltga.study.engines.ray_cluster import RayCluster

    with pytest.raises(InputError, match=r"address: cannot reach a Ray cluster at '127\.0\.0\.1:1' \(.*refused"):
        run_suite([tiny(1)], tmp_path, RayCluster("127.0.0.1:1"))
    assert not ray.is_initialized()
