"""The syntax-graph builder against a hand-made treebank and networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ltga.data import syntax_graph
from ltga.data.conllu import parse_conllu
from ltga.errors import DataError, InputError


def line(number: object, form: str, upos: str, head: object, relation: str) -> str:
    return "\t".join([str(number), form, "_", upos, "_", "_", str(head), relation, "_", "_"])


# "They don't see it , he said ." and "Why ?", with a multiword token, an empty node and comments.
TREEBANK = "\n".join(
    [
        "# sent_id = 1",
        line(1, "They", "PRON", 4, "nsubj"),
        line("2-3", "don't", "_", "_", "_"),
        line(2, "do", "AUX", 4, "aux"),
        line(3, "n't", "PART", 4, "advmod:neg"),
        line(4, "see", "VERB", 0, "root"),
        line("4.1", "ghost", "VERB", "_", "_"),
        line(5, "it", "PRON", 4, "obj"),
        line(6, ",", "PUNCT", 4, "punct"),
        line(7, "he", "PRON", 8, "nsubj"),
        line(8, "said", "VERB", 4, "parataxis"),
        line(9, ".", "PUNCT", 4, "punct"),
        "",
        "",
        "# sent_id = 2",
        line(1, "Why", "ADV", 0, "root"),
        line(2, "?", "PUNCT", 1, "punct"),
    ]
)
WORDS = ["They", "do", "n't", "see", "it", "he", "said", "Why"]
VECTORS = {"they": np.ones(2), "see": np.array([2.0, 3.0])}


def test_words_edges_classes_and_features() -> None:
    dataset = syntax_graph(TREEBANK, VECTORS, num_relations=2)
    assert dataset.node_names == tuple(WORDS)
    pairs = {tuple(pair) for pair in dataset.data.edge_index.T.tolist() if pair[0] < pair[1]}
    chain = {(i, i + 1) for i in range(7)}
    arcs = {(0, 3), (1, 3), (2, 3), (3, 4), (5, 6), (3, 6)}
    assert pairs == chain | arcs
    assert dataset.data.is_undirected()
    # nsubj and root occur twice each; the alphabet decides between them
    assert dataset.class_names == ("nsubj", "root", "other")
    assert dataset.data.y.tolist() == [0, 2, 2, 1, 2, 0, 2, 1]
    assert dataset.data.x.tolist() == [[1, 1], [0, 0], [0, 0], [2, 3], [0, 0], [0, 0], [0, 0], [0, 0]]


def test_subtypes_are_cut_and_punctuation_may_stay() -> None:
    dataset = syntax_graph(TREEBANK, VECTORS, drop=frozenset())
    assert dataset.data.num_nodes == 11
    assert "advmod" in dataset.class_names
    assert "other" not in dataset.class_names
    assert dataset.class_names[0] == "punct"


def test_an_array_with_a_vocabulary_and_a_fallback() -> None:
    rows = np.array([[1, 1], [2, 3]], dtype=np.float16)
    dataset = syntax_graph(TREEBANK, rows, ["they", "see"], unknown=lambda form: np.full(2, len(form)))
    assert dataset.data.x.tolist()[:4] == [[1, 1], [2, 2], [3, 3], [2, 3]]


def test_splits_are_random_halves_and_quarters() -> None:
    dataset = syntax_graph("\n\n".join([TREEBANK] * 10), VECTORS)
    assert dataset.num_splits == 10
    assert [int(mask.sum()) for mask in dataset.split(0)] == [40, 20, 20]


@given(st.lists(st.integers(1, 6), min_size=2, max_size=5), st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_any_text_is_one_connected_chain_with_its_trees(sizes: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph, lines, start = nx.Graph(), [], 0
    for size in sizes:
        for number in range(1, size + 1):
            head = int(rng.integers(0, number))  # an earlier word or the root: always a forest
            relation = "root" if head == 0 else ["obj", "obl:tmod", "nsubj"][number % 3]
            lines.append(line(number, f"w{number}", "X", head, relation))
            if head:
                graph.add_edge(start + head - 1, start + number - 1)
        lines.append("")
        start += size
    nx.add_path(graph, range(start))
    text = "\n".join([*lines, line(1, "a", "X", 0, "root"), line(2, "b", "X", 1, "dep")])
    nx.add_path(graph, range(start - 1, start + 2))
    dataset = syntax_graph(text, {"w1": np.ones(1)})
    built = nx.Graph(dataset.data.edge_index.T.tolist())
    assert nx.utils.graphs_equal(nx.Graph(sorted(built.edges)), built)
    assert {frozenset(e) for e in built.edges} == {frozenset(e) for e in graph.edges}


FAULTS = [
    (line(1, "a", "X", 0, "root") + "\n1 b", "line 2: expected 10 tab-separated fields, got 1"),
    (line(1, "a", "X", 0, "root") + "\n" + line(3, "b", "X", 1, "dep"), "line 2: expected word 2, got '3'"),
    ("# c\n" + line(1, "a", "X", 5, "dep"), "line 2: head 5 of word 1 is not another word"),
    (line(1, "a", "X", 1, "dep"), "line 1: head 1 of word 1"),
    (line(1, "a", "X", "x", "dep"), "line 1: expected a head number, got 'x'"),
    (line(1, "a", "X", 0, "_"), "line 1: word 1 has no form or no relation"),
    (line("1-x", "a", "X", 0, "root"), "line 1: expected word 1"),
]


@pytest.mark.parametrize(("text", "message"), FAULTS)
def test_the_wrong_line_is_named(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse_conllu(text)


def test_windows_line_ends_and_odd_spaces_in_forms() -> None:
    text = line(1, "New\u2028York", "X", 0, "root").replace("\n", "\r\n") + "\r\n\r\n"
    assert [word.form for word in parse_conllu(text)[0]] == ["New\u2028York"]


def test_unusable_vectors_and_texts_are_refused() -> None:
    with pytest.raises(InputError, match=r"vectors: the vector of 'see' has shape \[3\]"):
        syntax_graph(TREEBANK, {"they": np.ones(2), "see": np.ones(3)})
    with pytest.raises(InputError, match="unknown: the vector of 'do'"):
        syntax_graph(TREEBANK, VECTORS, unknown=lambda form: np.ones(5))
    with pytest.raises(InputError, match="vocabulary of as many words"):
        syntax_graph(TREEBANK, np.ones((2, 2)), ["one"])
    with pytest.raises(InputError, match="empty"):
        syntax_graph(TREEBANK, {})
    with pytest.raises(InputError, match="num_relations"):
        syntax_graph(TREEBANK, VECTORS, num_relations=0)
    with pytest.raises(DataError, match="has 0 words"):
        syntax_graph("# nothing\n", VECTORS)
