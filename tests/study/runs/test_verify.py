"""``verify``: what is sound, what is not, and which runs that means."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ltga.cli.app import app
from ltga.study import Store, run_suite
from ltga.study.archive import unpack_archive, write_archive
from ltga.study.verify import verify_store

NAMES = {seed: f"csbm:num_nodes=60, ltga-head, seed {seed}, split {(seed - 1) % 10}" for seed in (1, 2, 3)}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from ltga.study import RunSpec
    from ltga.train import Protocol

    folder = tmp_path_factory.mktemp("store")
    protocol = Protocol(epochs=2, hidden_channels=4, heads=2)
    run_suite([RunSpec("csbm:num_nodes=60", "ltga-head", seed, protocol) for seed in NAMES], folder)
    return folder


@pytest.fixture
def store(whole: Path, tmp_path: Path) -> dict[int, Path]:
    """The records of a store by seed."""
    shutil.copytree(whole, tmp_path / "store")
    return {json.loads(path.read_text())["config"]["seed"]: path for path in (tmp_path / "store").glob("*.json")}


def verify(store: dict[int, Path]) -> Any:
    return verify_store(Store(store[1].parent))


def again(store: dict[int, Path]) -> dict[str, str]:
    return {run.run.split(", split")[0]: run.problem for run in verify(store).of("damaged")}


def test_a_whole_store_is_sound(store: dict[int, Path]) -> None:
    found = verify(store).as_json()
    assert (found["runs"], found["sound"], found["damaged"], found["again"]) == (3, 3, 0, [])


@pytest.mark.parametrize("suffix", [".json", ".npz", ".safetensors"])
def test_every_kind_of_damage_names_its_run(store: dict[int, Path], suffix: str) -> None:
    path = store[2].with_suffix(suffix)
    whole = path.read_bytes()
    cut, swapped = whole[:-30], store[1].with_suffix(suffix).read_bytes()
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    for content in (cut, swapped, flipped):
        path.write_bytes(content)
        problems = again(store)
        if content is swapped and suffix == ".json":  # the only place that knew what it was is gone
            assert list(problems) == [f"run {store[2].stem[:12]}"]
        else:
            assert list(problems) == ["csbm:num_nodes=60, ltga-head, seed 2"], problems
        assert len(verify(store).of("sound")) == 2
    if suffix != ".json":
        path.unlink()
        assert "missing or damaged" in again(store)["csbm:num_nodes=60, ltga-head, seed 2"]


def test_two_records_that_changed_places_are_both_named(store: dict[int, Path]) -> None:
    first, second = store[1].read_bytes(), store[2].read_bytes()
    store[1].write_bytes(second)
    store[2].write_bytes(first)
    problems = again(store)
    assert set(problems) == {f"csbm:num_nodes=60, ltga-head, seed {seed}" for seed in (1, 2)}
    assert all("of another run" in problem for problem in problems.values())


def test_earlier_versions_imports_and_leftovers_are_told_apart(store: dict[int, Path], tmp_path: Path) -> None:
    old = json.loads(store[1].read_text())
    del old["checksums"]
    store[1].write_text(json.dumps(old))
    cut = json.loads(store[2].read_text())
    store[2].unlink()
    archive = tmp_path / "a.gz"
    write_archive(archive, Store(store[1].parent).records())
    found = verify(store)
    assert found.leftover == tuple(sorted(f"{store[2].stem}{suffix}" for suffix in (".npz", ".safetensors")))
    assert [run.seed for run in found.of("unchecked")] == [1] and [run.seed for run in found.of("sound")] == [3]
    other = Store(tmp_path / "other")
    unpack_archive(archive, other)
    imported = verify_store(other)
    assert {run.imported for run in imported.of("sound")} == {"a.gz"} and imported.as_json()["imported"] == 2
    assert cut["config"]["seed"] == 2


def test_the_command(store: dict[int, Path]) -> None:
    folder = str(store[1].parent)
    fine = CliRunner().invoke(app, ["suite", "verify", "--store", folder])
    assert fine.exit_code == 0 and fine.stdout.endswith("3 runs: 3 sound\n")
    record = json.loads(store[3].read_text())
    record["metrics"]["test"]["accuracy"] = 1.0
    store[3].write_text(json.dumps(record))
    found = CliRunner().invoke(app, ["suite", "verify", "--store", folder])
    assert found.exit_code == 2
    assert f"do again: {NAMES[3]}: {store[3].name}: its results have changed" in found.stdout
    assert "2 sound, 1 damaged" in found.stdout
    plain = CliRunner().invoke(app, ["suite", "verify", "--store", folder, "--json"])
    (entry,) = json.loads(plain.stdout)["again"]
    assert plain.exit_code == 2 and (entry["file"], entry["seed"], entry["method"]) == (store[3].name, 3, "ltga-head")
    assert "there is no folder" in str(CliRunner().invoke(app, ["suite", "verify", "--store", "nowhere"]).exception)


def test_a_damaged_run_is_done_again(store: dict[int, Path]) -> None:
    from ltga.study import RunSpec
    from ltga.train import Protocol

    before = json.loads(store[2].read_text())["metrics"]
    store[2].write_text(store[2].read_text().replace("0.5", "0.6"))
    place = Store(store[1].parent)
    protocol = Protocol(epochs=2, hidden_channels=4, heads=2)
    tally = run_suite([RunSpec("csbm:num_nodes=60", "ltga-head", seed, protocol) for seed in NAMES], place)
    assert (tally.done, tally.already) == (1, 2) and place.damaged == {}
    assert json.loads(store[2].read_text())["metrics"] == before and len(verify(store).of("sound")) == 3
