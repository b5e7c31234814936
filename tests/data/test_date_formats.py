"""Dates written in several ways, in one table and in one column."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
import pytest

from ltga.data import Preparation, PreparedGraph
from ltga.data.table_cells import days_of, kind_of
from ltga.errors import DataError, InputError

DAYS = pd.date_range("2020-01-20", periods=40)
EPOCH_DAYS = [(day - pd.Timestamp(1970, 1, 1)).days for day in DAYS]


def fitted(columns: dict[str, Any], **options: Any) -> PreparedGraph:
    nodes = pd.DataFrame({"id": range(40), "label": ["a", "b"] * 20, "size": range(40), **columns})
    edges = pd.DataFrame({"source": range(39), "target": range(1, 40)})
    return Preparation(**{"scale": "none", **options}).fit((nodes, edges))


def column(graph: PreparedGraph, name: str) -> list[float]:
    return graph.arrays.x[:, list(graph.arrays.feature_names).index(name)].tolist()


def test_a_format_of_dates_leaves_other_dates_dates() -> None:
    """Choosing a format for one column once left out every column that was written 2024-12-31."""
    written = {
        "iso": DAYS.strftime("%Y-%m-%d"),
        "dotted": DAYS.strftime("%d.%m.%Y"),
        "american": DAYS.strftime("%m/%d/%Y"),
        "mixed": [day.strftime("%Y-%m-%d" if at % 2 else "%d.%m.%Y") for at, day in enumerate(DAYS)],
    }
    graph = fitted(written, date_format="%d.%m.%Y,%m/%d/%Y")
    for name in written:
        assert column(graph, name) == EPOCH_DAYS, name


def test_what_is_not_chosen_yet_is_named_beside_what_is() -> None:
    graph = fitted({"american": DAYS.strftime("%m/%d/%Y")}, date_format="%d.%m.%Y")
    assert any("choose date_format=%d.%m.%Y,%m/%d/%Y to take them as dates" in note for note in graph.problems.notes)
    mixed = [day.strftime("%Y-%m-%d" if at % 2 else "%m/%d/%Y") for at, day in enumerate(DAYS)]
    assert any("choose date_format=%m/%d/%Y to" in note for note in fitted({"mixed": mixed}).problems.notes)


@pytest.mark.parametrize(
    ("formats", "message"),
    [
        ("%d/%m/%Y,%m/%d/%Y", "read 04/03/2024 as two dates; give one of them"),
        ("%m.%d.%Y,%Y-%m-%d,%d.%m.%Y", "read 03.04.2024 as two dates"),
        ("%d.%m.%Y %d", "is no format of dates"),  # once a traceback of re
        ("%d.%m.%Y,,%Y", "is no format of dates"),
    ],
)
def test_formats_that_cannot_be_meant_are_refused(formats: str, message: str) -> None:
    with pytest.raises(InputError, match=f"date_format: .*{message}"):
        Preparation(date_format=formats)


def test_a_format_may_have_a_time_zone() -> None:
    moments = DAYS.tz_localize("Europe/Berlin") + pd.Timedelta(hours=1)
    graph = fitted({"seen": moments.strftime("%d.%m.%Y %H:%M %z")}, date_format="%d.%m.%Y %H:%M %z")
    assert column(graph, "seen") == [(day - pd.Timestamp(1970, 1, 1)).days for day in DAYS]
    graph = fitted({"seen": DAYS.strftime("%d.%m.%Y %H:%M UTC")}, date_format="%d.%m.%Y %H:%M %Z,%m/%d/%Y")
    assert column(graph, "seen") == [(day - pd.Timestamp(1970, 1, 1)).days for day in DAYS]


def test_a_comma_may_belong_to_a_format() -> None:
    graph = fitted({"spoken": DAYS.strftime("%b %d, %Y")}, date_format="%b %d, %Y")
    assert column(graph, "spoken")[0] == 18281.0


def test_year_day_month_is_not_mixed_with_year_month_day() -> None:
    graph = fitted({"odd": ["2020-25-01"] + ["2020-02-01"] * 39}, date_format="%Y-%d-%m")
    assert column(graph, "odd") == [18286.0] + [18263.0] * 39  # 25 January and 2 January


@pytest.mark.parametrize(
    ("formats", "said"),
    [
        (("%d.%m.%Y", "%m/%d/%Y", "%Y-%m-%d"), "choose date_format=%d.%m.%Y,%m/%d/%Y to take"),
        (("%d.%m.%y", "%d.%m.%y %H:%M", "%Y-%m-%d"), "choose date_format=%d.%m.%y,%d.%m.%y %H:%M to take"),
    ],
)
def test_all_formats_of_a_mixed_column_are_named(formats: tuple[str, ...], said: str) -> None:
    """A column of three formats was once left out with the advice to hash it."""
    cells = [day.strftime(formats[at % 3]) for at, day in enumerate(DAYS)]
    notes = fitted({"mixed": cells}).problems.notes
    assert any(said in note for note in notes)
    assert any("left out (date_format= as above to keep it)" in note for note in notes)
    graph = fitted({"mixed": cells}, date_format=",".join(formats[:2]))
    assert column(graph, "mixed") == [
        pytest.approx((pd.Timestamp(day) - pd.Timestamp(1970, 1, 1)).days, abs=1) for day in DAYS
    ]


def test_what_comes_first_may_be_for_a_person_to_say() -> None:
    cells = ["11/11/2022", "1/2/2021"] * 20
    said = "day or month first: the cells fit both.*date_format=%d/%m/%Y or date_format=%m/%d/%Y"
    notes = " ".join(fitted({"odd": cells}).problems.notes)
    assert re.search(said, notes), notes


def test_a_word_among_dates_is_no_reason_to_leave_them_out() -> None:
    with pytest.raises(DataError, match="row 40: odd is 'soon', expected a date"):
        fitted({"odd": [*DAYS.strftime("%Y-%m-%d")[:-1], "soon"]})


@pytest.mark.parametrize("as_text", [True, False])
def test_a_format_of_digits_makes_dates_of_numbers(as_text: bool) -> None:
    """`20240131` is a number to every reader, and was taken as one whatever `date_format` said."""
    digits = DAYS.strftime("%Y%m%d")
    cells = {"day": digits if as_text else digits.astype(int), "holes": [*map(float, digits[:30]), *[None] * 10]}
    notes = fitted(cells, scale="standard").problems.notes
    assert sum("choose date_format=%Y%m%d to take them as dates" in note for note in notes) == 2
    graph = fitted(cells, date_format="%Y%m%d", empty_cells="zero")
    assert column(graph, "day") == EPOCH_DAYS and column(graph, "holes")[:30] == EPOCH_DAYS[:30]
    assert column(graph, "size") == list(range(40))  # two digits are no day


@pytest.mark.parametrize("form", ["%d%m%Y", "%m%d%Y", "%y%m%d", "%Y%m%d"])
@pytest.mark.parametrize("kind", [str, int, float, "text of a float"])
def test_zeros_that_a_number_has_lost_are_put_back(form: str, kind: Any) -> None:
    """`%d%m%Y` alone takes 1022024, the first of February, for the tenth, and `%y%m%d` 90101 for a day of 1990."""
    days = pd.Series(pd.date_range("2000-01-01", "2009-12-31", periods=1000).normalize())
    cells = days.dt.strftime(form)
    if kind == "text of a float":
        cells = cells.astype(float).astype(str)
    elif kind is not str:
        cells = cells.astype(kind)
    expected = (days - pd.Timestamp(1970, 1, 1)).dt.days
    assert kind_of(cells, form) == "date" and days_of(cells, form).values.tolist() == expected.tolist()
    text = cells.astype(str)
    mixed = days_of(pd.concat([text, pd.Series(["", "2001-02-03", "999999999", "0"])]), form)
    assert mixed.values[:1000].tolist() == expected.tolist() and mixed.values[1001] == 11356
    assert mixed.stray[-2:].all() and mixed.empty[1000]


def test_digits_are_read_by_a_format_of_digits_or_not_at_all() -> None:
    """Else 20240131 would be a date among those of `%d%m%Y`, though perhaps another than the one that is meant."""
    found = days_of(pd.Series(["31012024", "20240131", "2024-01-31"]), "%d%m%Y")
    assert found.stray.tolist() == [False, True, False]
    assert not days_of(pd.Series(["20240131", "2023", "2024-01-31"]), "%Y%m%d,%Y").stray.any()


def test_numbers_that_are_no_days_stay_numbers() -> None:
    cells = {"code": [101 + at for at in range(40)], "sum": [19.5 + at for at in range(40)]}
    for form in ("%Y%m%d", "%y%m%d", "%d%m%Y"):
        graph = fitted(cells, date_format=form)
        assert column(graph, "code") == cells["code"] and column(graph, "sum") == cells["sum"]
    graph = fitted({"code": [20241300 + at for at in range(40)]}, scale="standard")
    assert not any("look like dates" in note for note in graph.problems.notes)


def test_a_date_in_digits_that_is_none_is_refused() -> None:
    cells = [*DAYS[:39].strftime("%Y%m%d").astype(int), 20240231]
    with pytest.raises(DataError, match=r"day is .*20240231.*, expected a date"):
        fitted({"day": cells}, date_format="%Y%m%d")


def test_a_date_that_begins_with_zero_is_no_post_code() -> None:
    notes = fitted({"day": DAYS.strftime("%d%m%Y")}, date_format="%d%m%Y").problems.notes
    assert not any("begins with 0" in note for note in notes)
