"""Numbers as people write them: decimal commas, signs between thousands, units; what is said until one chooses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from ltga.data import FittedPreparation, Preparation, PreparedGraph
from ltga.data.number_formats import NumberFormat
from ltga.data.number_hints import looks_like
from ltga.data.table_cells import numbers_of
from ltga.errors import DataError, InputError

COUNT = 40
EDGES = pd.DataFrame({"source": range(COUNT - 1), "target": range(1, COUNT)})


def nodes(cells: list[Any]) -> pd.DataFrame:
    return pd.DataFrame({"id": range(COUNT), "label": ["a", "b"] * 20, "size": range(COUNT), "price": cells})


def fitted(cells: list[Any], **options: Any) -> PreparedGraph:
    return Preparation(scale="none", **options).fit((nodes(cells), EDGES))


def prices(graph: PreparedGraph) -> list[float]:
    return graph.arrays.x[:, list(graph.arrays.feature_names or ()).index("price")].tolist()


NAN = float("nan")


@pytest.mark.parametrize(
    ("cell", "form", "value"),
    [
        ("3910,79", NumberFormat(",", "."), 3910.79),
        ("3.910,79", NumberFormat(",", "."), 3910.79),
        ("-1.234.567", NumberFormat(",", "."), -1234567),
        ("1.234", NumberFormat(",", "."), 1234),
        ("1.5", NumberFormat(",", "."), NAN),
        ("0.123", NumberFormat(",", "."), NAN),
        ("12.34,5", NumberFormat(",", "."), NAN),
        ("1,234.5", NumberFormat(",", "."), NAN),
        ("1,5e3", NumberFormat(",", "."), 1500),
        (",5", NumberFormat(",", "."), 0.5),
        ("1,234.50", NumberFormat(".", ","), 1234.5),
        ("1,234", NumberFormat(".", ","), 1234),
        ("12,34", NumberFormat(".", ","), NAN),
        ("1.234", NumberFormat(".", ","), 1.234),
        ("1,234", NumberFormat(), NAN),
        ("1 234,5", NumberFormat(",", "space"), 1234.5),
        ("1\u202f234.5", NumberFormat(".", "space"), 1234.5),
        ("1’234.5", NumberFormat(".", "'"), 1234.5),
        ("€ 3910", NumberFormat(units=("€",)), 3910),
        ("-€5", NumberFormat(units=("€",)), -5),
        ("€ -5", NumberFormat(units=("€",)), -5),
        ("12 %", NumberFormat(units=("€", "%")), 12),
        ("30\u00a0kg", NumberFormat(units=("kg",)), 30),
        ("EUR 7", NumberFormat(units=("EUR",)), 7),
        ("C4", NumberFormat(units=("C",)), NAN),
        ("12 % €", NumberFormat(units=("€", "%")), NAN),
        ("3.910,79 €", NumberFormat(",", ".", ("€",)), 3910.79),
        ("n/a", NumberFormat(",", "."), NAN),
    ],
)
def test_a_cell_in_a_format(cell: str, form: NumberFormat, value: float) -> None:
    found = numbers_of(pd.Series([cell, "x"]), form)
    np.testing.assert_equal(found.values[0], value)
    assert bool(found.stray[0]) == (np.isnan(value) and cell != "n/a")


def test_numbers_that_were_never_text_keep_their_value() -> None:
    found = numbers_of(pd.Series([1.234, "1.234", "1,5"], dtype=object), NumberFormat(",", "."))
    assert found.values.tolist() == [1.234, 1234, 1.5]
    assert numbers_of(pd.Series([1.234, 2.5]), NumberFormat(",", ".")).values.tolist() == [1.234, 2.5]


@pytest.mark.parametrize(
    ("cell", "options", "said"),
    [
        (
            "{}910,79",
            {},
            "looks like numbers with a decimal comma .* choose decimal=,; if not, mend it, or choose stray",
        ),
        ("{}.910,79", {}, "choose decimal=,; if not"),
        ("{},910.79", {}, "looks like numbers with a comma between thousands .* choose thousands=,; if not"),
        ("{},910", {}, "choose decimal=, if 10,910 is 10.910, thousands=, if it is 10910; if not"),
        ("{} 910", {}, "choose thousands=space; if not"),
        ("{} 910,5", {}, "choose decimal=, and thousands=space; if not"),
        ("{}.5", {"decimal": ","}, "looks like numbers with a decimal point .* choose decimal=.; if not"),
        ("€ {}", {}, "looks like numbers with '€' .* choose units=€; if not"),
        ("${}", {}, r"choose units=\$; if not"),
        ("{} %", {}, "choose units=%; if not"),
        ("{} kg", {}, "choose units=kg; if not"),
        ("{} kg", {"units": "€"}, "choose units=€,kg; if not"),
        ("{}.910,50 €", {}, "choose decimal=, and units=€; if not"),
        ("{}.1.2", {}, "expected a finite number .*; mend it, or choose stray_cells=empty"),
    ],
)
def test_what_a_column_looks_like_is_said_first(cell: str, options: dict[str, Any], said: str) -> None:
    cells = [cell.format(at) for at in range(10, 10 + COUNT)]
    with pytest.raises(DataError, match=said):
        fitted(cells, **options)


def test_a_decimal_comma_in_training_is_one_in_prediction() -> None:
    graph = fitted([f"{at}.000,5" for at in range(1, COUNT + 1)], decimal=",")
    assert prices(graph)[:2] == [1000.5, 2000.5]
    assert any(
        "'1.000,5' is read as 1000.5; as chosen (decimal=,, thousands=.)" in note for note in graph.problems.notes
    )
    again = FittedPreparation.model_validate(graph.fitted.model_dump(mode="json"))
    assert prices(again.apply((nodes(["7,25"] * COUNT), EDGES)))[0] == 7.25


def test_a_column_keeps_its_unit() -> None:
    graph = fitted([f"€ {at}" for at in range(COUNT - 1)] + ["7"], units="€,$")
    assert prices(graph)[-2:] == [38, 7]
    assert any("'€' stands beside numbers, and 1 of its numbers have none" in note for note in graph.problems.notes)
    again = FittedPreparation.model_validate(graph.fitted.model_dump(mode="json"))
    assert prices(again.apply((nodes(["5 €"] * COUNT), EDGES)))[0] == 5
    with pytest.raises(DataError, match=r"price is '\$ 5', but the column had the unit '€' before"):
        again.apply((nodes(["$ 5"] * COUNT), EDGES))
    with pytest.raises(DataError, match="price is '5 €', but the column had no unit before"):
        fitted(list(range(COUNT)), units="€").fitted.apply((nodes(["5 €"] * COUNT), EDGES))


PLAIN = [f"{at / 7:.3f}" for at in range(COUNT)]


def target(cells: list[Any], **options: Any) -> PreparedGraph:
    return fitted(cells, label="price", predict="number", **options)


def test_what_is_predicted_keeps_its_unit() -> None:
    """Labels in grams beside a model of kilograms were taken for kilograms."""
    kilograms, grams = ([f"{cell} {unit}" for cell in PLAIN] for unit in ("kg", "g"))
    graph = target(kilograms, units="kg,g")
    again = FittedPreparation.model_validate(graph.fitted.model_dump(mode="json"))
    for cells in (kilograms, [*kilograms[:20], *[""] * 20]):
        assert again.apply((nodes(cells), EDGES)).values[3] == pytest.approx(0.429)  # type: ignore[index]
    with pytest.raises(DataError, match=r"price is '0\.000 g', but the column had the unit 'kg' before"):
        again.apply((nodes(grams), EDGES))
    with pytest.raises(DataError, match="but the column had no unit before"):
        target(PLAIN, units="kg,g").fitted.apply((nodes(grams), EDGES))
    before = graph.fitted.model_dump(mode="json", exclude={"written"})  # a run that did not look at it yet
    FittedPreparation.model_validate(before).apply((nodes(kilograms), EDGES))


@pytest.mark.parametrize("prepared", [fitted, target])
def test_numbers_without_the_unit_of_before_are_told(prepared: Any) -> None:
    """0.899 where 89.9 % were learned from went through without a word."""
    percents = [f"{cell} %" for cell in PLAIN]
    whole, half = prepared(percents, units="%"), prepared([*percents[:20], *PLAIN[20:]], units="%")
    assert any("20 of its numbers have none" in note for note in half.problems.notes)
    said = [str(problem) for problem in whole.fitted.apply((nodes(PLAIN), EDGES)).problems.found]
    assert any("price is '0.000', but all had the unit '%' before (40 rows); taken as %" in line for line in said)
    for graph, cells in ((whole, percents), (half, percents), (half, PLAIN)):
        again = graph.fitted.apply((nodes(cells), EDGES))
        assert not any("but all had" in str(problem) for problem in again.problems.found)


def test_signs_between_thousands_of_what_is_predicted_are_told() -> None:
    """With `decimal=,` 8.775 is 8775: what a column of features was told about was silent here."""
    points = [f"{1 + at}.775" for at in range(COUNT)]
    graph = target(points, decimal=",")
    assert any("'1.775' is read as 1775; as chosen (decimal=,, thousands=.)" in note for note in graph.problems.notes)
    commas = target([cell.replace(".", ",") for cell in points], decimal=",")
    again = commas.fitted.apply((nodes(points), EDGES))
    assert any("though none had a sign between thousands before" in str(each) for each in again.problems.found)


def test_a_number_in_two_units_is_not_constant() -> None:
    with pytest.raises(DataError, match="price is '5 mm', but '5 m' in another row"):
        fitted(["5 m", "5 mm"] * 20, units="m,mm")


@pytest.mark.parametrize("cells", [["30k", "1.2k", "20k"], ["1.2M", "3M"]])
def test_thousands_by_a_letter_are_no_unit(cells: list[str]) -> None:
    """Taken off, 30k would be less than 900."""
    look = looks_like(pa.array(cells), NumberFormat())
    assert look is not None and "which may stand for thousands or more; write them out" in look.what
    assert look.choose == ""


def test_numbers_that_float32_cannot_tell_apart_are_refused() -> None:
    """Sixty numbers from 123456789 on were eight, and `check` called 123456789 123,456,792."""
    close = [123456789 + at for at in range(COUNT)]
    with pytest.raises(DataError, match=r"price has numbers too close for float32, in which .*; choose scale=standard"):
        fitted(close)
    assert np.ptp(Preparation().fit((nodes(close), EDGES)).arrays.x[:, 1]) == pytest.approx(39 / np.std(close))
    with pytest.raises(DataError, match=r"price: numbers too close for float32, in which \d+ is \d+; subtract what"):
        target(close)
    graph = target([1e9 * at for at in range(COUNT)])
    few = [450000.1, 450000.2, *[""] * (COUNT - 2)]  # of a graph that nobody learns from
    graph.fitted.apply((nodes(few), EDGES)).dataset()
    fitted([101325 * (1 + at * 1e-6) for at in range(COUNT)])  # pressures
    with pytest.raises(DataError, match=r"in which 3.9e-199 is 0"):
        fitted([at * 1e-200 for at in range(COUNT)])


def test_two_units_in_a_column_are_refused() -> None:
    cells = [f"{'$' if at % 2 else '€'} {at}" for at in range(COUNT)]
    with pytest.raises(DataError, match=r"looks like numbers with '€' and '\$' .*; mend it"):
        fitted(cells)
    with pytest.raises(DataError, match=r"price is '\$ 1', but '€ 0' in another row \(20 rows\); give the column one"):
        fitted(cells, units="€,$")


@pytest.mark.parametrize(
    "cells",
    [
        [f"item {at}" for at in range(COUNT)],
        [f"C{at}" for at in range(COUNT)],
        [f"{at} {'abcd'[at % 4]}" for at in range(COUNT)],
    ],
)
def test_names_with_numbers_stay_names(cells: list[str]) -> None:
    assert any("text with 40 different values" in note for note in fitted(cells).problems.notes)


def test_leading_zeros_are_told() -> None:
    notes = fitted([f"0{1000 + at}" for at in range(COUNT)]).problems.notes
    assert any("'01000' begins with 0; taken as numbers; choose categorical=price" in note for note in notes)
    assert not any("begins with 0" in note for note in fitted([f"0.{at}" for at in range(COUNT)]).problems.notes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decimal": ",", "thousands": ","}, "decimal and thousands are both ','"),
        ({"decimal": ";"}, "decimal: "),
        ({"units": "5 kg"}, "units: a unit is a sign or a word without digits"),
        ({"units": ["-"]}, "units: a unit is a sign or a word"),
    ],
)
def test_options_that_cannot_be_meant(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"prepare: {message}"):
        Preparation(**options)


def test_strays_are_not_counted_as_empty_too() -> None:
    problems = Preparation().fit((nodes([*range(38), "", ""]), EDGES)).problems
    assert [problem.count for problem in problems if "price is empty" in problem.what] == [2]
    from ltga.data.prepare import prepare
    from ltga.data.sources import as_tables

    found = prepare(as_tables((nodes([*map(str, range(37)), "", "x", "y"]), EDGES)), Preparation()).problems
    assert [problem.count for problem in found if "price is empty" in problem.what] == [1]


def test_a_preparation_from_before_has_the_defaults() -> None:
    kept = fitted(list(range(COUNT))).fitted.model_dump(mode="json")
    for name in ("decimal", "thousands", "units"):
        del kept["options"][name]
    for column in kept["nodes"]["columns"]:
        del column["unit"]
    assert prices(FittedPreparation.model_validate(kept).apply((nodes([5] * COUNT), EDGES)))[0] == 5
