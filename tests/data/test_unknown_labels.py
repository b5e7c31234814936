"""Words such as NA in what is predicted, and numbers there that are not written as Python writes them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ltga.data import FittedPreparation, Preparation, PreparedGraph
from ltga.errors import DataError

COUNT = 40
EDGES = pd.DataFrame({"source": range(COUNT - 1), "target": range(1, COUNT)})


def nodes(labels: list[Any]) -> pd.DataFrame:
    return pd.DataFrame({"id": range(COUNT), "label": labels, "x": range(COUNT)})


def fitted(labels: list[Any], **options: Any) -> PreparedGraph:
    return Preparation(**options).fit((nodes(labels), EDGES))


@pytest.mark.parametrize(
    "word", ["NA", "NaN", "n/a", "null", "None", "-", "?", "#N/A", r"\N", "N.A.", "n.a.", "#NA", "--"]
)
def test_a_word_among_classes_is_for_a_person_to_say(word: str) -> None:
    """R writes NA for what is missing, and there are classes called None: neither may pass without a word."""
    labels = [word, "red", "blue", "red"] * 10
    with pytest.raises(DataError, match=rf"row 1: label is {re.escape(repr(word))} \(10 rows\); choose missing_lab"):
        fitted(labels)
    graph = fitted(labels, missing_labels="unknown")
    assert graph.fitted.classes == ("blue", "red") and int((graph.arrays.y < 0).sum()) == 10
    assert any("taken as not known (missing_labels=unknown)" in note for note in graph.problems.notes)
    graph = fitted(labels, missing_labels="class")
    assert graph.fitted.classes == tuple(sorted((word, "red", "blue"))) and graph.arrays.y.min() == 0
    assert any("taken as a class (missing_labels=class)" in note for note in graph.problems.notes)


@pytest.mark.parametrize("word", ["unknown", "Missing", "nil", "."])
def test_a_word_that_is_rather_a_class_is_one_and_noted(word: str) -> None:
    graph = fitted([word, "red", "blue", "red"] * 10)
    assert graph.fitted.classes == tuple(sorted((word, "red", "blue")))
    assert any(f"label is {word!r} (10 rows); taken as a class; if it means" in note for note in graph.problems.notes)


def test_minus_one_is_not_known_and_said() -> None:
    (problem,) = [one for one in fitted(["-1", "0", "1", "1"] * 10).problems.found if "'-1'" in one.what]
    assert "read as not known" in problem.action and problem.count == 10


def test_a_preparation_from_before_keeps_its_class() -> None:
    kept = fitted(["NA", "red", "blue", "red"] * 10, missing_labels="class").fitted.model_dump(mode="json")
    del kept["options"]["missing_labels"]
    again = FittedPreparation.model_validate(kept).apply((nodes(["NA", "red", "None", "red"] * 10), EDGES))
    assert again.arrays.y[:4].tolist() == [0, 2, -1, 2]
    assert any("'None' (10 rows); taken as not known" in note for note in again.problems.notes)


@pytest.mark.parametrize("word", ["NA", "", "-"])
def test_a_word_among_numbers_is_not_known(word: str) -> None:
    graph = fitted([word, *(f"{at}.5" for at in range(COUNT - 1))])
    assert graph.fitted.target == "number" and graph.values is not None
    np.testing.assert_equal(graph.values[:3], [np.nan, 0.5, 1.5])
    assert not word or any(f"label is '{word}'; taken as not known" in note for note in graph.problems.notes)


def test_a_word_among_several_labels() -> None:
    table = nodes(["NA", "1", "0", "1"] * 10).rename(columns={"label": "old"}).assign(new=["0", "n/a", "1", "1"] * 10)
    values = Preparation(label="old,new").fit((table, EDGES)).values
    np.testing.assert_equal(values[:2], [[np.nan, 0], [1, np.nan]])
    listed = fitted(["NA", "a;b", "b", "a"] * 10, missing_labels="unknown")
    np.testing.assert_equal(listed.values[:2], [[np.nan, np.nan], [1, 1]])


def test_a_word_that_is_a_part_of_several_labels() -> None:
    labels = ["a;NA", "a;b", "b", ";"] * 10
    with pytest.raises(DataError, match=r"row 1: label is 'NA' \(10 rows\); choose missing_labels=unknown"):
        fitted(labels)
    graph = fitted(labels, missing_labels="unknown")
    assert graph.fitted.classes == ("a", "b")
    np.testing.assert_equal(graph.values[:4], [[np.nan, np.nan], [1, 1], [0, 1], [0, 0]])
    graph = fitted(labels, missing_labels="class")
    assert graph.fitted.classes == ("NA", "a", "b") and graph.values is not None
    assert graph.values[0].tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    ("cell", "options"),
    [("{},5", {"decimal": ","}), ("1.{}0,5 €", {"decimal": ",", "units": "€"}), ("{} kg", {"units": "kg"})],
)
def test_numbers_to_predict_may_be_written_otherwise(cell: str, options: dict[str, Any]) -> None:
    labels = [cell.format(at) for at in range(10, 10 + COUNT)]
    with pytest.raises(DataError, match=r"which looks like numbers with .* choose (decimal=,|units=)"):
        fitted(labels)
    with pytest.raises(DataError, match="which looks like numbers with"):
        fitted(labels, predict="number")
    graph = fitted(labels, **options)
    assert graph.fitted.target == "number" and graph.values is not None
    assert graph.values[0] == float(cell.split()[0].format(10).replace(".", "").replace(",", "."))


def test_a_word_that_strayed_among_numbers_to_predict() -> None:
    with pytest.raises(DataError, match="row 1: label is 'tall'; give a number, leave blank what is not known, or ch"):
        fitted(["tall", *(f"{at}.5" for at in range(COUNT - 1))])


def test_few_numbers_of_another_format_are_classes_and_it_is_said() -> None:
    notes = fitted(["1,5", "2,5"] * 20).problems.notes
    assert any("taken as classes; for numbers choose decimal=, and predict=number" in note for note in notes)
