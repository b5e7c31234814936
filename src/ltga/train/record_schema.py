"""What a record is: one typed value, and the check that everything read from a disk or an archive goes through.

Records travel as plain dictionaries with the JSON of :class:`RunRecord`; fields that are not named here are allowed,
so that a record of a later version with the same schema number can still be read.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from ltga.errors import InputError, RecordError
from ltga.train.protocol import FIRST_SETTINGS, Protocol

DEEPEST = 32  # levels of lists and dictionaries; a record has seven
LARGEST = 1 << 64  # of a whole number; a seed may be as large as torch takes it

Number = float | None
"""What is not finite is stored as ``None``."""
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Setting = bool | int | float | str | None
Part = TypeVar("Part", bound=BaseModel)


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow", frozen=True, allow_inf_nan=False, protected_namespaces=())


class Graph(_Part):
    """Which graph a run was made on."""

    name: str
    fingerprint: str


class Configuration(_Part):
    """Everything that decides the outcome of a run; its hash is the run's id."""

    dataset: Graph
    split: int = Field(ge=0)
    method: str = Field(min_length=1)
    protocol: dict[str, Setting]
    seed: int = Field(ge=0)
    major_version: int = Field(ge=0)
    minibatch: dict[str, Any] | None = None
    workers: int | None = Field(None, ge=2)
    task: str | None = None
    options: dict[str, Setting] | None = None

    def as_protocol(self) -> Protocol:
        return Protocol(**self.protocol)  # type: ignore[arg-type]

    @field_validator("protocol")
    @classmethod
    def _is_a_protocol(cls, given: dict[str, Setting]) -> dict[str, Setting]:
        try:
            understood = Protocol(**given).model_dump()
        except InputError as error:
            raise ValueError(str(error)) from None
        if missing := sorted(FIRST_SETTINGS - given.keys()):
            raise ValueError(f"{missing[0]}: is missing")
        for name, value in given.items():
            if isinstance(value, str) != isinstance(understood[name], str) or value != understood[name]:
                raise ValueError(f"{name}: expected a value like {understood[name]!r}, got {value!r}")
        return given


class Metrics(_Part):
    """How well one part of the nodes is predicted. Other tasks than node classification have metrics of their own."""

    accuracy: float = Field(math.nan, ge=0, le=1)
    balanced_accuracy: Number = None
    macro_f1: Number = None
    nll: Number = None
    brier: Number = None
    ece: Number = None
    roc_auc: Number = None
    average_precision: Number = None


class LayerAttention(_Part):
    """Statistics of one layer's attention, a number per head."""

    zero_fraction: list[Number]
    entropy: list[Number]
    top1: list[Number]
    effective_neighbors: list[Number]


class LayerIndex(_Part):
    """q of one layer: per epoch a number per head."""

    mean: list[Annotated[list[Number], Field(min_length=1)]]
    std: list[list[Number]] | None = None


class Trajectory(_Part):
    """The epochs as columns."""

    train_loss: list[Number]
    val_loss: list[Number]
    val_accuracy: list[Number]
    val_score: list[Number] | None = None
    index_gradient_norm: list[Number]
    q: list[LayerIndex]


class Timing(_Part):
    """How long it took; ``compile_seconds``, if any, went into compiling kernels and are part of ``train_seconds``."""

    train_seconds: float = Field(ge=0)
    observe_seconds: float = Field(ge=0)
    median_epoch_seconds: Number = None
    compile_seconds: Number = None

    @property
    def own_seconds(self) -> float:
        """Training without what is done once for a machine."""
        return self.train_seconds - (self.compile_seconds or 0.0)


class Resumed(_Part):
    """That a process went on with a run which another had left after ``epoch``, and what was no longer the same."""

    epoch: int = Field(ge=1)
    changed: list[str]


class Source(_Part):
    """An archive that a record came from."""

    name: str = Field(alias="from")
    sha256: Digest


class Imported(Source):
    """The archive a record was taken from, and those it had been in before."""

    earlier: list[Source] = []


class Checksums(_Part):
    """What the parts of a run hashed to when it was written; an archive has neither arrays nor weights."""

    results: Digest
    record: Digest
    arrays: Digest | None = None
    weights: Digest | None = None


class RunRecord(_Part):
    """The record of a run."""

    schema_: Literal[1] = Field(alias="schema")
    id: Digest
    config: Configuration
    model: dict[str, int | None]
    best_epoch: int = Field(ge=1)
    epochs: int = Field(ge=1)
    stopped: Literal["patience", "epochs", "interrupted"]
    interrupted: bool
    resumed: list[Resumed] | None = None
    metrics: dict[Literal["train", "val", "test"], Metrics]
    metric: str | None = None
    asked: dict[str, Setting] | None = None
    reading: dict[str, Any] | None = None
    class_names: list[str] | None = None
    predicted_share: dict[str, list[Number]] | None = None
    attention: list[LayerAttention] | None = None
    heads_at_bound: list[Annotated[float, Field(ge=0, le=1)]] | None = None
    trajectory: Trajectory
    timing: Timing
    environment: dict[str, Any]
    analyses: dict[str, Any] | None = None
    imported: Imported | None = None
    checksums: Checksums | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> RunRecord:
        if self.best_epoch > self.epochs:
            raise ValueError(f"best_epoch: {self.best_epoch} comes after the last epoch, {self.epochs}")
        if "val" not in self.metrics:
            raise ValueError("metrics: the part 'val' is missing")
        for part, found in self.metrics.items():
            if self.config.task is None and "accuracy" not in found.model_fields_set:
                raise ValueError(f"metrics.{part}.accuracy: is missing")
        curves = self.trajectory
        columns: dict[str, list[Any]] = {
            "train_loss": curves.train_loss,
            "val_loss": curves.val_loss,
            "val_accuracy": curves.val_accuracy,
            "index_gradient_norm": curves.index_gradient_norm,
        }
        if curves.val_score is not None:
            columns["val_score"] = curves.val_score
        for number, layer in enumerate(curves.q, start=1):
            columns[f"mean q of layer {number}"] = layer.mean
            if layer.std is not None:
                columns[f"spread of q of layer {number}"] = layer.std
                if [len(heads) for heads in layer.std] != [len(heads) for heads in layer.mean]:
                    raise ValueError(f"trajectory: mean and spread of q of layer {number} differ in their heads")
            if len({len(heads) for heads in layer.mean}) > 1:
                raise ValueError(f"trajectory: the heads of layer {number} differ from epoch to epoch")
        for name, column in columns.items():
            if len(column) != self.epochs:
                raise ValueError(f"trajectory: {name} has {len(column)} epochs of {self.epochs}")
        if curves.q and self.attention is None:
            raise ValueError("attention: is missing beside q")
        return self


def typed(record: Mapping[str, Any]) -> RunRecord:
    """A record by its attributes: ``typed(record).config.dataset.name``."""
    return _of(RunRecord, record)


def configuration_of(record: Mapping[str, Any]) -> Configuration:
    """The configuration of a record alone, which takes a fifteenth of the time."""
    return _of(Configuration, record.get("config"))


def seconds_of(record: Mapping[str, Any]) -> float:
    """How long a finished run took."""
    timing = timing_of(record)
    return timing.train_seconds + timing.observe_seconds


def timing_of(record: Mapping[str, Any]) -> Timing:
    """The timing of a record alone."""
    return _of(Timing, record.get("timing"))


def checked_record(value: Any) -> RunRecord:
    """``value`` by its attributes; a :class:`ValueError` says what keeps it from being a record.

    >>> checked_record({"schema": 1, "id": "x", "config": {}})
    Traceback (most recent call last):
    ...
    ValueError: id: string should match pattern '^[0-9a-f]{64}$', got 'x'
    """
    return _checked(RunRecord, value)


def checked_configuration(value: Any) -> Configuration:
    """The same for a configuration.

    >>> checked_configuration({"dataset": "cora"})
    Traceback (most recent call last):
    ...
    ValueError: dataset: input should be a valid dictionary or instance of Graph, got 'cora'
    """
    return _checked(Configuration, value)


def json_fault(value: Any) -> str | None:
    """What keeps ``value`` from being strict JSON of a sane depth; ``None`` if nothing does.

    >>> json_fault({"a": [1.5, float("nan")]}), json_fault({"a": [1, None, "b"]})
    ('nan is not a finite number', None)
    """
    level, depth = [value], 0
    while level:
        if depth > DEEPEST:
            return f"nested more than {DEEPEST} levels deep"
        below: list[Any] = []
        for item in level:
            if isinstance(item, Mapping):
                below += item.keys()
                below += item.values()
            elif isinstance(item, list | tuple):
                below += item
            elif isinstance(item, str):
                if not _is_text(item):
                    return f"{item!r} is not valid Unicode text"
            elif isinstance(item, float):
                if not math.isfinite(item):
                    return f"{item} is not a finite number"
            elif isinstance(item, int):
                if abs(item) >= LARGEST:
                    return f"a whole number of {item.bit_length()} bits is too large"
            elif item is not None:
                return f"{type(item).__name__} is not a type that JSON has"
        level, depth = below, depth + 1
    return None


def _is_text(text: str) -> bool:
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def _of(kind: type[Part], value: Any) -> Part:
    try:
        return _validated(kind, value)
    except ValueError as error:
        raise RecordError(f"record: not the record of a run ({error})") from None


def _checked(kind: type[Part], value: Any) -> Part:
    if (fault := json_fault(value)) is not None:
        raise ValueError(fault)
    return _validated(kind, value)


def _validated(kind: type[Part], value: Any) -> Part:
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        # A value that may be one of several types gives an error for each; the first names the place.
        raise ValueError(_explain(error.errors(include_url=False)[0])) from None


def _explain(error: Any) -> str:
    place = ".".join(str(part) for part in error["loc"])
    said = error["msg"].removeprefix("Value error, ")
    said = said[0].lower() + said[1:]
    if error["type"] == "missing":
        return f"{place}: is missing"
    if error["type"] == "value_error":
        return f"{place}: {said}" if place else said
    return f"{place}: {said}, got {reprlib.repr(error['input'])}" if place else said
