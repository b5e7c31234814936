"""Typed links against their files and against brute force."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from ltga.data import CATALOGUE, Triples, load_dataset
from ltga.data.triples import read_triples
from ltga.errors import DataError, InputError


@pytest.mark.data
@pytest.mark.parametrize("name", ["umls", "kinships"])
def test_triples_are_those_of_the_files(name: str, data_root: Path) -> None:
    triples = load_dataset(name, root=data_root)
    assert isinstance(triples, Triples)
    facts = CATALOGUE[name]
    for mask, file in zip(triples.split(0), facts.raw):
        written = [line.split("\t") for line in (data_root / file.path).read_text().splitlines()]
        heads, tails = triples.edge_index[:, mask].tolist()
        found = [
            [triples.node_names[head], triples.relation_names[relation], triples.node_names[tail]]
            for head, relation, tail in zip(heads, triples.edge_type[mask].tolist(), tails)
        ]
        assert found == written
    assert (triples.num_nodes, triples.num_relations) == (facts.nodes, facts.classes)
    assert tuple(int(mask.sum()) for mask in triples.split(0)) == facts.split_sizes
    every = set(zip(triples.edge_index[0].tolist(), triples.edge_type.tolist(), triples.edge_index[1].tolist()))
    test = triples.split(0)[2].nonzero().flatten()[:40]
    (heads, tails), relations = triples.edge_index[:, test], triples.edge_type[test]
    for found, ends, of_tails in (
        (triples.true_tails(heads, relations), heads, True),
        (triples.true_heads(tails, relations), tails, False),
    ):
        assert found.shape == (40, facts.nodes)
        for row, end, relation in zip(found.tolist(), ends.tolist(), relations.tolist()):
            expected = [
                ((end, relation, node) if of_tails else (node, relation, end)) in every for node in range(facts.nodes)
            ]
            assert row == expected
    assert triples.task == "typed link prediction"


@pytest.mark.data
def test_the_visible_graph_is_the_training_part_and_its_inverse(data_root: Path) -> None:
    triples = load_dataset("umls", root=data_root)
    plain, both = triples.graph(inverse=False), triples.graph()
    assert plain.edge_index.shape == (2, 5216) and plain.num_nodes == 135
    assert torch.equal(both.edge_index[:, 5216:], plain.edge_index.flip(0))
    assert torch.equal(both.edge_type[5216:], plain.edge_type + 46)


def files(folder: Path, train: str | bytes, valid: str = "a\tr\tb\n", test: str = "b\tr\tc\n") -> list[Path]:
    paths = [folder / f"{part}.txt" for part in ("train", "valid", "test")]
    for path, text in zip(paths, (train, valid, test)):
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return paths


GOOD = "a\tr\tc\nc\ts\tb\n"


def test_a_small_file(tmp_path: Path) -> None:
    triples = read_triples(files(tmp_path, GOOD), "small")
    assert repr(triples) == "Triples('small', 3 nodes, 2 relations, 2/1/1 triples)"
    again = read_triples(files(tmp_path, GOOD), "small")
    assert triples.fingerprint == again.fingerprint
    with pytest.raises(InputError, match="small has 1 splits"):
        triples.split(1)


@pytest.mark.parametrize(
    ("train", "rest", "message"),
    [
        ("a\tr\n", {}, r"train\.txt: line 1: expected head, relation and tail"),
        ("a\t\tb\n", {}, "line 1: expected head, relation and tail"),
        ("", {}, r"train\.txt: there are no triples"),
        (b"a\tr\t\xff\n", {}, r"train\.txt: cannot be read as text"),
        (GOOD, {"test": "d\tr\tb\n"}, r"test\.txt: line 1: 'd' is not in train\.txt"),
        (GOOD, {"valid": "a\tknows\tb\n"}, r"valid\.txt: line 1: 'knows' is not in train\.txt"),
        (GOOD, {"test": "a\tr\tc\n"}, "a triple is there twice"),
    ],
)
def test_unsound_files_are_refused_by_name(
    train: str | bytes, rest: dict[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read_triples(files(tmp_path, train, **rest), "small")
    assert "\n" not in str(caught.value)
