"""Roman-Empire-style graphs from any treebank: words joined by order and by syntax."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ltga.data.assemble import GraphArrays, assemble
from ltga.data.conllu import Word, parse_conllu
from ltga.data.dataset import Dataset
from ltga.data.splits import random_masks
from ltga.errors import DataError, InputError

Fallback = Callable[[str], np.ndarray]


def syntax_graph(
    text: str,
    vectors: Mapping[str, np.ndarray] | np.ndarray,
    vocabulary: Sequence[str] | None = None,
    *,
    name: str = "syntax",
    drop: frozenset[str] = frozenset({"PUNCT"}),
    num_relations: int = 17,
    unknown: Fallback | None = None,
    num_splits: int = 10,
    seed: int = 0,
) -> Dataset:
    """A graph with a node per syntactic word, joined to the next word and along dependency arcs.

    The class of a word is its relation without the subtype: one class for each of the `num_relations`
    most frequent, in that order, and "other" for the rest. Sentences follow one another, so the text
    is one chain. Splits are random, 50/25/25.

    Args:
        text: a treebank in CoNLL-U.
        vectors: word vectors, as a mapping from lower-cased forms or as rows `[W, F]`.
        vocabulary: the form of each row, if `vectors` is an array.
        name: what the dataset is called.
        drop: universal tags of words to leave out; pass `frozenset()` to keep punctuation.
        num_relations: how many relations have a class of their own.
        unknown: makes a vector `[F]` for a form without one; zeros if left out.
        num_splits: number of random splits.
        seed: seed of the splits.
    """
    if num_relations < 1:
        raise InputError(f"num_relations: got {num_relations}; give at least 1")
    words, arcs = _keep(parse_conllu(text, name), drop)
    if len(words) < 2:
        raise DataError(f"{name}: the treebank has {len(words)} words to make a graph of; two are needed")
    y, class_names = _classes([word.relation.split(":")[0] for word in words], num_relations)
    chain = [(at, at + 1) for at in range(len(words) - 1)]
    edges = np.array(sorted({(min(pair), max(pair)) for pair in (*chain, *arcs)}), dtype=np.int64)
    forms = [word.form.lower() for word in words]
    arrays = GraphArrays(
        x=_features(forms, _as_mapping(vectors, vocabulary), unknown),
        y=y,
        edges=edges,
        masks=random_masks(len(words), (0.5, 0.25), num_splits, seed),
        class_names=class_names,
        node_names=tuple(word.form for word in words),
    )
    knobs = {"dropped": sorted(drop), "num_relations": num_relations, "seed": seed}
    return assemble(arrays, name, "undirected, once", name, provenance=knobs)


def _keep(sentences: list[list[Word]], drop: frozenset[str]) -> tuple[list[Word], list[tuple[int, int]]]:
    """The kept words of the whole text, and the arcs between kept words as positions among them."""
    words: list[Word] = []
    arcs: list[tuple[int, int]] = []
    for sentence in sentences:
        position: dict[int, int] = {}
        for number, word in enumerate(sentence, start=1):
            if word.upos not in drop:
                position[number] = len(words)
                words.append(word)
        arcs.extend(
            (position[sentence[number - 1].head], at)
            for number, at in position.items()
            if sentence[number - 1].head in position
        )
    return words, arcs


def _classes(relations: list[str], num_relations: int) -> tuple[np.ndarray, tuple[str, ...]]:
    """Class of each word `[N]` and the class names; equally frequent relations come in alphabetical order."""
    counts = Counter(relations)
    ranked = sorted(counts, key=lambda relation: (-counts[relation], relation))
    names = ranked[:num_relations]
    if len(ranked) > num_relations:
        names.append("other")
    number = {relation: min(at, num_relations) for at, relation in enumerate(ranked)}
    return np.array([number[relation] for relation in relations], dtype=np.int64), tuple(names)


def _as_mapping(
    vectors: Mapping[str, np.ndarray] | np.ndarray, vocabulary: Sequence[str] | None
) -> Mapping[str, np.ndarray]:
    if isinstance(vectors, Mapping):
        if vocabulary is not None:
            raise InputError("vocabulary: give it only if vectors is an array")
        if not vectors:
            raise InputError("vectors: the mapping is empty; give at least one word vector")
        return vectors
    rows = np.asarray(vectors)
    if rows.ndim != 2 or vocabulary is None or len(vocabulary) != rows.shape[0]:
        raise InputError(
            f"vectors: an array must be [words, features] with a vocabulary of as many words, got "
            f"{list(rows.shape)} and {'none' if vocabulary is None else len(vocabulary)}"
        )
    return dict(zip(vocabulary, rows))


def _features(forms: list[str], vectors: Mapping[str, np.ndarray], unknown: Fallback | None) -> np.ndarray:
    """A vector for each form `[N, F]`, from the mapping or the fallback."""
    width = np.asarray(next(iter(vectors.values()))).shape
    if len(width) != 1:
        raise InputError(f"vectors: expected one-dimensional word vectors, got shape {list(width)}")
    rows: dict[str, np.ndarray] = {}
    for form in dict.fromkeys(forms):
        known = form in vectors
        row = vectors[form] if known else unknown(form) if unknown is not None else np.zeros(width)
        rows[form] = np.asarray(row, dtype=np.float32)
        if rows[form].shape != width:
            argument = "vectors" if known else "unknown"
            raise InputError(
                f"{argument}: the vector of {form!r} has shape {list(rows[form].shape)}, not {list(width)}"
            )
    return np.stack([rows[form] for form in forms])
