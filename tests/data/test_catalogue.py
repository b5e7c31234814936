"""The catalogue against the manifest, and against what brute force finds in the files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ltga.data import CATALOGUE, load_dataset
from ltga.data.catalogue import COMMITS, IMPOSTORS, known_by_sha256
from ltga.data.obtain import sha256_of

CONTRACT = [
    "cora",
    "citeseer",
    "pubmed",
    "texas",
    "wisconsin",
    "cornell",
    "roman-empire",
    "amazon-ratings",
    "actor",
    "minesweeper",
    "tolokers",
    "chameleon-filtered",
    "squirrel-filtered",
    "roman-words",
    "gum-syntax",
    "gum-syntax-large",
    "csbm",
    "digits-noise",
    "mutag",
    "proteins",
    "enzymes",
    "mutagenicity",
    "aids",
    "esol",
    "tox21",
    "twitch-de",
    "twitch-engb",
    "umls",
    "kinships",
]
OTHER_TASKS = CONTRACT[CONTRACT.index("mutag") :]
GENERATED = ("csbm", "digits-noise")
ABSENT = ("roman-empire", "amazon-ratings")
PRESENT = [name for name in CONTRACT if name not in (*GENERATED, *ABSENT, *OTHER_TASKS)]
LIGHT = [name for name in PRESENT if name != "gum-syntax-large"] + ["twitch-de", "twitch-engb"]


def test_the_catalogue_has_the_names_of_the_contract() -> None:
    assert list(CATALOGUE) == CONTRACT


@pytest.mark.data
@pytest.mark.parametrize("name", PRESENT)
def test_facts_are_those_of_the_manifest(name: str, data_root: Path) -> None:
    manifest = json.loads((data_root / "manifest.json").read_text())
    listed, facts = manifest["datasets"][name.replace("-", "_")], CATALOGUE[name]
    assert facts.packed is not None
    assert (facts.packed.path, facts.packed.size, facts.packed.sha256) == (
        listed["file"],
        listed["bytes"],
        listed["sha256"],
    )
    assert (facts.nodes, facts.edges, facts.features, facts.classes, facts.splits) == tuple(
        listed[key] for key in ("nodes", "edges_stored", "features", "classes", "splits")
    )
    assert facts.convention == listed["edge_convention"]
    assert facts.split_sizes == tuple(listed["split_sizes"])
    assert (facts.undirected, facts.self_loops) == (listed["edges_undirected"], listed["self_loops"])
    assert facts.homophily == listed["edge_homophily"]
    if "upstream" in listed:
        assert facts.packed.upstream_path == listed["upstream"]


@pytest.mark.data
def test_raw_files_are_those_of_the_manifest(data_root: Path) -> None:
    manifest = json.loads((data_root / "manifest.json").read_text())
    every = manifest["raw"] | manifest["other_tasks"]
    listed = {path: (entry["bytes"], entry["sha256"]) for path, entry in every.items()}
    known = {file.path: (file.size, file.sha256) for facts in CATALOGUE.values() for file in facts.raw}
    beside = ("mixture", "README", "readme", "citing", "LICENSE")
    assert {path: entry for path, entry in listed.items() if not any(word in path for word in beside)} == known
    pinned = {name: commit for name, commit in COMMITS.items() if name in manifest["sources"]}
    assert pinned == {name: manifest["sources"][name] for name in pinned}
    assert len(pinned) == 4
    for path, entry in manifest["raw"].items():
        if "mixture" not in path and "repository" in entry:
            owner = next(f for facts in CATALOGUE.values() for f in facts.raw if f.path == path)
            assert owner.repository == entry["repository"]
    missing = manifest["not_here"]["roman_empire.npz"]
    packed = CATALOGUE["roman-empire"].packed
    assert packed is not None
    assert (packed.size, packed.sha256) == (missing["bytes"], missing["sha256"])


@pytest.mark.data
@pytest.mark.parametrize("name", LIGHT)
def test_facts_hold_for_the_loaded_graph(name: str, data_root: Path) -> None:
    dataset, facts = load_dataset(name, root=data_root), CATALOGUE[name]
    y = dataset.data.y.numpy()
    ends = np.sort(dataset.data.edge_index.numpy(), axis=0)
    codes = np.unique(ends[0] * facts.nodes + ends[1])
    pairs = np.stack([codes // facts.nodes, codes % facts.nodes], axis=1)
    assert pairs.shape[0] == facts.undirected
    assert int((pairs[:, 0] == pairs[:, 1]).sum()) == facts.self_loops
    assert float((y[pairs[:, 0]] == y[pairs[:, 1]]).mean()) == pytest.approx(facts.homophily, abs=6e-5)
    assert dataset.metric == ("roc_auc" if name in ("minesweeper", "tolokers") else "accuracy")
    assert (dataset.num_classes, dataset.num_splits) == (facts.classes, facts.splits)
    assert dataset.facts is facts


@pytest.mark.data
@pytest.mark.slow
def test_the_large_graph_loads(data_root: Path) -> None:
    dataset = load_dataset("gum-syntax-large", root=data_root)
    assert tuple(dataset.data.x.shape) == (377724, 300)
    assert dataset.data.edge_index.shape[1] == 2 * 583714


@pytest.mark.data
def test_class_names_and_words_of_gum_syntax(data_root: Path) -> None:
    manifest = json.loads((data_root / "manifest.json").read_text())
    dataset = load_dataset("gum-syntax", root=data_root)
    assert list(dataset.class_names) == manifest["datasets"]["gum_syntax"]["class_names"]
    assert dataset.node_names is not None
    same_word = [at for at, word in enumerate(dataset.node_names) if word == "the"]
    assert len(same_word) > 100
    assert bool((dataset.data.x[same_word] == dataset.data.x[same_word[0]]).all())


@pytest.mark.parametrize("name", GENERATED)
def test_generated_graphs_have_their_facts(name: str) -> None:
    dataset, facts = load_dataset(name), CATALOGUE[name]
    assert tuple(dataset.data.x.shape) == (facts.nodes, facts.features)
    assert (dataset.num_classes, dataset.num_splits) == (facts.classes, facts.splits)
    assert dataset.data.is_undirected()


@pytest.mark.data
def test_roman_words_has_its_words_and_the_official_splits(data_root: Path) -> None:
    dataset = load_dataset("roman-words", root=data_root)
    stored = np.load(data_root / "roman_words.npz", allow_pickle=False)
    words = stored["words_utf8"].tobytes().decode().split("\n")
    assert dataset.node_names is not None
    assert list(dataset.node_names) == [words[at] for at in stored["node_words"]]
    assert np.array_equal(dataset.data.x.numpy(), stored["word_vectors"].astype(np.float32)[stored["node_words"]])
    for split in range(10):
        for mask, key in zip(dataset.split(split), ("train_masks", "val_masks", "test_masks")):
            assert np.array_equal(mask.numpy(), stored[key][split])


def test_addresses_are_pinned_to_commits() -> None:
    for name in OTHER_TASKS:
        for file in CATALOGUE[name].raw:
            assert file.url is not None
            assert file.archive is not None or COMMITS[file.repository or ""] in file.url
    packed = CATALOGUE["amazon-ratings"].packed
    assert packed is not None
    assert packed.url == (
        "https://raw.githubusercontent.com/yandex-research/heterophilous-graphs/"
        "a431395582e929d88271309716bea4fe24ce6318/data/amazon_ratings.npz"
    )
    gum = CATALOGUE["gum-syntax"].packed
    assert gum is not None
    assert gum.url is None


@pytest.mark.data
def test_impostors_are_the_files_they_are_said_to_be(data_root: Path) -> None:
    raw = data_root / "raw/geom-gcn/new_data/cornell_texas_mixture"
    found = {
        sha256_of(path)
        for path in (
            data_root / "cornell_texas_mixture.npz",
            data_root / "cornell_platonov.npz",
            raw / "out1_graph_edges.txt",
        )
    }
    assert found == set(IMPOSTORS)
    assert not found & set(known_by_sha256())
    assert known_by_sha256()[sha256_of(raw / "out1_node_feature_label.txt")][0].name == "texas"
