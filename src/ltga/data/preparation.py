"""`Preparation`: what is done to tables before a network sees them, every choice by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from ltga.data.conventions import CONVENTIONS, Convention
from ltga.data.date_formats import check_date_format
from ltga.data.number_formats import NumberFormat, Thousands, check_units, number_format
from ltga.data.structure import check_names
from ltga.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from ltga.data.prepare import PreparedGraph

_LISTS = ("drop", "categorical", "units", "structure")
# What may differ from table to table under one model: how it is written, and what becomes of odd rows.
_OF_A_TABLE = (
    "encoding", "decimal", "thousands", "date_format", "missing_labels", "new_category", "stray_cells", "bad_smiles",
    "repeated_ids", "unknown_ids",
)  # fmt: skip


def said_options(words: Iterable[str]) -> dict[str, str]:
    """Options and their values from `option=value` texts.

    >>> said_options(["label=churned", "drop=name,phone"])
    {'label': 'churned', 'drop': 'name,phone'}
    """
    values: dict[str, str] = {}
    for word in words:
        key, equals, value = (part.strip() for part in word.partition("="))
        if not key or not equals or not value:
            raise InputError(f"prepare: expected option=value, got {word!r}; for example label=churned")
        if values.get(key, value) != value:
            raise InputError(f"prepare: {key} contradicts itself, {values[key]} and {value}; give it once")
        values[key] = value
    return values


class Preparation(BaseModel):
    """How tables become a graph. The defaults mend what is safe to mend and refuse the rest.

    Args:
        id, label, split: columns of the node table; every other column is a feature. `label` may be several columns of
            0 and 1, separated by commas: several labels for a node.
        predict: what the label column holds: one "class" for each node, a "number", or several "labels" (separated by
            semicolons, or a column each); "auto": as it looks, and what is chosen is told. "links": nothing of nodes,
            only edges are, and no label is needed.
        missing_labels: labels such as NA, None, null, - and ?: refused, as somebody has to say whether they are
            "unknown", as blank ones are, or name a "class". Among numbers they are unknown.
        source, target, weight: columns of the edge table; every column but the first two is an edge attribute.
        drop: columns to leave out.
        categorical: columns of numbers that are names of categories (post codes, say).
        encoding: of CSV and other text files.
        convention: what a row of edges means; `None`: what the source says, else "directed".
        repeated_edges: several rows from A to B become one: weights are added ("sum"), averaged, or the first is
            kept. Attributes other than the weight are averaged unless the first is kept.
        reversed_edges: the same for A-B beside B-A, if edges are undirected and stored once.
        unknown_ids: edges of nodes that the node table does not have: refused, or left out.
        repeated_ids: a node described twice: refused, or the first row kept.
        categories: text columns: "auto" is one-hot up to `one_hot_limit` different values, hashed into
            `hash_columns` columns beyond, left out if nearly every value is another one.
        new_category: when the preparation is repeated, a category or class that was not there: refused, or "other"
            (zeros for a category, no label for a class).
        empty_cells: of number columns: filled with the median, the mean or zero, or refused; with `indicator`, a
            column of 0 and 1 says where.
        decimal: what stands before the fraction of a number: 3910.79, or 3910,79.
        thousands: what stands between groups of three digits; "auto": points if `decimal` is a comma, else nothing.
        units: signs and words beside numbers (€, kg) that are taken off; a column has one of them at most.
        stray_cells: text among numbers: refused, or taken as empty.
        bad_smiles: molecules that rdkit cannot read: refused, or left out, of predictions as well.
        dates: as a number of days since 1970, as categories, left out, or refused; `date_format` as for
            `datetime.strptime` if they are not all written 2024-12-31, several separated by commas.
        scale: number columns have mean 0 and standard deviation 1 ("standard") or stay as they are ("none").
        structure: features made from the edges (see `ltga.data.structure`); "auto": some, if there are no others.

    >>> Preparation(scale="none").scale
    'none'
    >>> Preparation(scales="none")
    Traceback (most recent call last):
    ...
    ltga.errors.InputError: prepare: there is no option 'scales'; did you mean 'scale'?
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = "id"
    label: str = "label"
    split: str = "split"
    predict: Literal["auto", "class", "number", "labels", "links"] = "auto"
    missing_labels: Literal["error", "unknown", "class"] = "error"
    source: str = "source"
    target: str = "target"
    weight: str = "weight"
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    encoding: str = "utf-8"
    convention: Convention | None = None
    repeated_edges: Literal["sum", "mean", "first", "error"] = "sum"
    reversed_edges: Literal["mean", "sum", "first", "error"] = "mean"
    unknown_ids: Literal["error", "drop"] = "error"
    repeated_ids: Literal["error", "first"] = "error"
    categories: Literal["auto", "one-hot", "hash", "drop", "error"] = "auto"
    one_hot_limit: int = Field(32, ge=1, le=10_000)
    hash_columns: int = Field(32, ge=1, le=10_000)
    new_category: Literal["error", "other"] = "error"
    empty_cells: Literal["median", "mean", "zero", "error"] = "median"
    indicator: bool = True
    decimal: Literal[".", ","] = "."
    thousands: Thousands = "auto"
    units: tuple[str, ...] = ()
    stray_cells: Literal["error", "empty"] = "error"
    bad_smiles: Literal["error", "drop"] = "error"
    dates: Literal["number", "category", "drop", "error"] = "number"
    date_format: str | None = None
    scale: Literal["standard", "none"] = "standard"
    structure: tuple[str, ...] = ("auto",)

    def __init__(self, **values: Any) -> None:
        unknown = [key for key in values if key not in type(self).model_fields]
        if unknown:
            names = type(self).model_fields
            hint = did_you_mean(unknown[0], names, f"there are {', '.join(names)}")
            raise InputError(f"prepare: there is no option {unknown[0]!r}; {hint}")
        try:
            super().__init__(**values)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(map(str, first["loc"])) or "structure"
            problem = first["msg"].removeprefix("Value error, ").removeprefix(f"{name}: ")
            raise InputError(f"prepare: {name}: {problem}, got {str(first['input'])[:80]!r}") from None
        if self.source == self.target:
            raise InputError(f"prepare: source and target are both {self.source!r}; an edge has two ends")
        if self.decimal == self.thousands:
            raise InputError(f"prepare: decimal and thousands are both {self.decimal!r}; one sign cannot be both")

    @field_validator(*_LISTS, mode="before")
    @classmethod
    def _split_text(cls, value: Any) -> Any:
        """On the command line a list is written with commas."""
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("structure")
    @classmethod
    def _known_structure(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if value not in (("auto",), ("none",)):
            check_names(value)
        return value

    @field_validator("encoding")
    @classmethod
    def _known_encoding(cls, value: str) -> str:
        try:
            "".encode(value)
        except (LookupError, UnicodeError):
            raise ValueError("no such encoding, use for example utf-8 or cp1252") from None
        return value

    @field_validator("units")
    @classmethod
    def _sound_units(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        check_units(value)
        return tuple(dict.fromkeys(value))

    @field_validator("date_format")
    @classmethod
    def _sound_format(cls, value: str | None) -> str | None:
        check_date_format(value)
        return value

    @classmethod
    def from_words(cls, words: Iterable[str]) -> Preparation:
        """From `option=value` texts, as the command line has them.

        >>> Preparation.from_words(["label=churned", "drop=name,phone"]).drop
        ('name', 'phone')
        """
        return cls(**said_options(words))

    def fit(self, source: Any, *, nodes: Any = None) -> PreparedGraph:
        """Prepare a graph to train on; `source` and `nodes` as for `ltga.data.as_tables`.

        What comes back has the graph (`dataset()`), what was done (`fitted`, to be repeated with `apply` on another
        graph) and what was found (`problems`). What only a person can mend is one line of error.

        >>> import pandas as pd
        >>> nodes = pd.DataFrame({"id": ["a", "b"], "label": ["x", "y"], "age": [20, 40]})
        >>> edges = pd.DataFrame({"source": ["a", "a"], "target": ["b", "b"], "weight": [1, 2]})
        >>> graph = Preparation().fit((nodes, edges))
        >>> graph.arrays.x.tolist(), graph.node_ids
        ([[-1.0], [1.0]], ('a', 'b'))
        >>> graph.fitted.apply((nodes.assign(age=[30, 60]), edges)).arrays.x.tolist()
        [[0.0], [3.0]]
        """
        from ltga.data.prepare import accepted  # these stand on this module
        from ltga.data.sources import as_tables

        return accepted(as_tables(source, self, nodes=nodes), self)

    def for_another(self, changes: Mapping[str, Any]) -> Preparation:
        """The same for another table, which may be written otherwise and have other odd rows.

        >>> Preparation(label="churned").for_another({"decimal": ","}).decimal
        ','
        >>> Preparation().for_another({"scale": "none"})
        Traceback (most recent call last):
        ...
        ltga.errors.InputError: prepare: scale: stays as the run was trained; for another table one may choose ...
        """
        if not isinstance(changes, Mapping):
            raise InputError(f"prepare: expected a mapping of options, got {type(changes).__name__}")
        kept = [name for name in changes if name not in _OF_A_TABLE and name in type(self).model_fields]
        if kept:
            choices = ", ".join(_OF_A_TABLE)
            raise InputError(
                f"prepare: {kept[0]}: stays as the run was trained; for another table one may choose {choices}"
            )
        merged = {**self.model_dump(), **changes}
        for name, other in (("decimal", "thousands"), ("thousands", "decimal")):
            if name in changes and other not in changes and merged[name] == merged[other]:
                example = "none" if other == "thousands" else "," if merged[name] == "." else "."
                raise InputError(
                    f"prepare: {name}: {merged[name]!r} is {other} in the run's tables; say what it is in these, "
                    f"for example {other}={example}"
                )
        return Preparation(**merged)

    def with_convention(self, convention: str) -> Preparation:
        """The same with another meaning of edges."""
        if convention not in CONVENTIONS:
            raise InputError(f"convention: got {convention!r}; use one of {', '.join(map(repr, CONVENTIONS))}")
        return Preparation(**{**self.model_dump(), "convention": convention})

    @property
    def number_format(self) -> NumberFormat:
        """How numbers are written."""
        return number_format(self.decimal, self.thousands, self.units)

    @property
    def changed(self) -> dict[str, Any]:
        """The options that are not the defaults."""
        return self.model_dump(mode="json", exclude_defaults=True)
