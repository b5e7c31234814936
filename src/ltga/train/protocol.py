"""The training protocol: one validated value. Its defaults are the paper's; `recommended` is what we would use."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from ltga.errors import InputError, did_you_mean

FIRST_SETTINGS = {
    "lr", "weight_decay", "kappa", "warmup", "prior", "delta", "dropout", "epochs", "patience", "hidden_channels",
    "heads", "num_layers", "residual", "init", "backend",
}  # fmt: skip
"""Settings that every record has; a record leaves out a later one where it is the paper's, so that ids stay."""
METRICS = (
    "loss", "auto", "accuracy", "balanced_accuracy", "macro_f1", "roc_auc", "average_precision",
)  # fmt: skip
# Chosen on development graphs only: docs/recipe.md has the candidates and what became of them.
RECOMMENDED: dict[str, Any] = {
    "init": "paired", "warmup": 0, "index_form": "log", "index_start": "auto", "epochs": 500, "patience": 100,
    "metric": "auto", "hidden_channels": "auto", "heads": "auto",
}  # fmt: skip


class Protocol(BaseModel):
    """How a network is trained.

    Args:
        lr: learning rate of the weights.
        weight_decay: on all weights, biases included; never on the index.
        kappa: how much slower the index learns: its rate is ``lr / kappa``.
        warmup: epochs during which q stays at exactly 1.
        prior: weight lambda of the Shannon prior, the mean of (q - 1)^2.
        delta: q stays in (1 - delta, 1 + delta).
        dropout: on features and attention weights.
        epochs: at most this many.
        patience: stop after so many epochs without a new best one.
        hidden_channels, heads, num_layers, residual: the network; ``"auto"`` for 4 heads of 32 channels, and 8 of 64 on
            a graph with 20,000 nodes or more.
        init: ``"paper"``, the paper's random numbers, or ``"paired"``: all attention methods of a seed
            share weights and dropout.
        backend: ``"auto"``, ``"torch"``, ``"numba"`` or ``"triton"``.
        metric: which epoch is the best, on the validation part: the one with the lowest ``"loss"``, or with the highest
            value of a metric; ``"auto"`` for the metric that the graph is judged by.
        class_weights: weigh classes in the loss so that each counts the same, however rare.
        index_form, index_start: how a learned q is held, ``"tanh"`` (bounded by ``delta``) or ``"log"``, and its start;
            ``"auto"`` for 1.5 on a graph with at least a tenth of its nodes to learn from, else 1.
        norm: of the deep backbones: ``"batch"``, ``"layer"`` or ``"none"``.

    >>> Protocol(lr=0.02, kappa=4).lr_index
    0.005
    >>> Protocol(weight_deca=0.1)
    Traceback (most recent call last):
    ...
    ltga.errors.InputError: weight_deca: the protocol has no such setting; did you mean 'weight_decay'?
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    lr: float = Field(1e-2, gt=0)
    weight_decay: float = Field(5e-4, ge=0)
    kappa: float = Field(1.0, gt=0)
    warmup: int = Field(20, ge=0)
    prior: float = Field(0.0, ge=0)
    delta: float = Field(1.0, gt=0, le=3)
    dropout: float = Field(0.4, ge=0, lt=1)
    epochs: int = Field(200, ge=1)
    patience: int = Field(20, ge=1)
    hidden_channels: Annotated[int, Field(ge=1)] | Literal["auto"] = 64
    heads: Annotated[int, Field(ge=1)] | Literal["auto"] = 8
    num_layers: int = Field(2, ge=1)
    residual: bool = False
    init: Literal["paper", "paired"] = "paper"
    backend: Literal["auto", "torch", "numba", "triton"] = "auto"
    metric: Literal[METRICS] = "loss"  # type: ignore[valid-type]
    class_weights: bool = False
    index_form: Literal["tanh", "log"] = "tanh"
    index_start: float | Literal["auto"] = Field(1.0)
    norm: Literal["batch", "layer", "none"] = "batch"

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            of: dict[str, list[Any]] = {}
            for one in error.errors():  # where a setting may be of two kinds, there is one about each
                of.setdefault(str(one["loc"][0]), []).append(one)
            raise InputError("; ".join(_explain(key, found) for key, found in of.items())) from None

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, bool) and info.field_name not in (
            "residual",
            "class_weights",
        ):  # pydantic would read True as 1
            raise PydanticCustomError("number", "Input should be a number")
        return value

    @classmethod
    def paper(cls, **changes: Any) -> Protocol:
        """The paper's headline protocol, which is also that of ``Protocol()``."""
        return cls(**changes)

    @classmethod
    def recommended(cls, **changes: Any) -> Protocol:
        """What ``fit``, the classifier and ``ltga train`` use unless told otherwise (docs/recipe.md).

        >>> Protocol.recommended().warmup, Protocol.paper().warmup
        (0, 20)
        """
        return cls(**{**RECOMMENDED, **changes})

    def settings(self) -> dict[str, Any]:
        """What a record says of it; see :data:`FIRST_SETTINGS`.

        >>> "metric" in Protocol().settings(), Protocol(metric="accuracy").settings()["metric"]
        (False, 'accuracy')
        """
        usual = type(self).model_fields
        dumped = self.model_dump()
        return {key: value for key, value in dumped.items() if key in FIRST_SETTINGS or value != usual[key].default}

    @property
    def lr_index(self) -> float:
        """Learning rate of the index parameters."""
        return self.lr / self.kappa

    @property
    def size(self) -> tuple[int, int]:
        """Channels of a head, and heads; an error as long as they are left to the graph.

        >>> Protocol(heads=2).size
        (64, 2)
        """
        if self.hidden_channels == "auto" or self.heads == "auto":
            raise InputError("hidden_channels, heads: 'auto' has no meaning without a graph; give numbers")
        return self.hidden_channels, self.heads

    def with_overrides(self, **changes: Any) -> Protocol:
        """The same protocol with some settings changed.

        >>> Protocol().with_overrides(warmup=0).warmup
        0
        """
        return Protocol(**{**self.model_dump(), **changes})


def _explain(key: str, errors: list[Any]) -> str:
    if errors[0]["type"] == "extra_forbidden":
        names = Protocol.model_fields
        hint = did_you_mean(key, names, f"it has {', '.join(names)}", cutoff=0.5)
        return f"{key}: the protocol has no such setting; {hint}"
    first, *others = (error["msg"][0].lower() + error["msg"][1:] for error in errors)
    wanted = " or ".join([first, *(other.removeprefix("input should be ") for other in others)])
    return f"{key}: {wanted}, got {errors[0]['input']!r}"
