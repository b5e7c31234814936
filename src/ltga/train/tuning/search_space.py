"""Which settings a search may try, and how it draws them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ltga.errors import InputError
from ltga.nn.methods import find_method
from ltga.train.protocol import Protocol

METHODS = ("gatv2", "ltga-head", "entmax-head")
WIDE = 10  # a range whose ends differ by more than this factor is drawn from on a logarithmic scale


@dataclass(frozen=True)
class Choices:
    """One of a few values."""

    values: tuple[Any, ...]

    def holds(self, value: Any) -> bool:
        return value in self.values

    def draw(self, trial: Any, name: str) -> Any:
        return trial.suggest_categorical(name, self.values)

    @property
    def ends(self) -> tuple[Any, ...]:
        return self.values


@dataclass(frozen=True)
class Range:
    """A number from ``low`` to ``high``: a whole one if both ends are, else rounded to two digits that count.

    >>> Range(0.001, 0.03).holds(0.01), Range(1, 4).holds(5)
    (True, False)
    """

    low: float
    high: float

    def holds(self, value: Any) -> bool:
        return not isinstance(value, bool | str) and self.low <= value <= self.high

    def draw(self, trial: Any, name: str) -> Any:
        if self._whole:
            return trial.suggest_int(name, int(self.low), int(self.high), log=self._wide)
        drawn = trial.suggest_float(name, self.low, self.high, log=self._wide)
        return min(max(float(f"{drawn:.2g}"), self.low), self.high)

    @property
    def ends(self) -> tuple[float, float]:
        return self.low, self.high

    @property
    def _whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)

    @property
    def _wide(self) -> bool:
        return self.low > 0 and self.high / self.low > WIDE


Space = Mapping[str, Choices | Range]
SPACE: Space = {
    "hidden_channels": Choices((16, 32, 64)),
    "heads": Choices((2, 4, 8)),
    "num_layers": Range(1, 4),
    "dropout": Choices((0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)),
    "lr": Range(1e-3, 3e-2),
    "weight_decay": Choices((0.0, 1e-5, 1e-4, 5e-4, 2e-3, 1e-2)),
    "residual": Choices((False, True)),
}
"""What is tried unless the caller says otherwise; the defaults of every task lie in it."""


def search_space(methods: Sequence[str], fixed: Iterable[str] = (), asked: Mapping[str, Any] | None = None) -> Space:
    """The settings to search: the usual ones and those that are asked for, without the fixed ones (``None``: fixed).

    >>> list(search_space(["gatv2"], fixed=["heads", "residual"], asked={"kappa": (0.5, 2.0)}))
    ['hidden_channels', 'num_layers', 'dropout', 'lr', 'weight_decay', 'kappa']
    """
    fixed = set(fixed)
    fixed |= {name for name, value in (asked or {}).items() if value is None}
    own = checked_wishes(asked or {})
    if both := sorted(fixed & own.keys()):
        raise InputError(f"search: {both[0]} is also set to one value; give it once")
    space = {name: values for name, values in {**SPACE, **own}.items() if name not in fixed}
    if "residual" in space and (lacking := _without_residual(methods)):
        if "residual" in own:
            raise InputError(
                f"search: residual: {lacking[0]} has no residual connection; leave out the one or the other"
            )
        del space["residual"]
    return space


def checked_wishes(asked: Mapping[str, Any]) -> dict[str, Choices | Range]:
    """What is asked for of every setting that is to be searched, each value one that the protocol takes."""
    return {name: _checked(name, value) for name, value in asked.items() if value is not None}


def parse_search(words: Iterable[str]) -> dict[str, Any]:
    """What ``--search`` says: ``name=low..high`` or ``name=value,value``.

    >>> parse_search(["lr=0.001..0.1", "heads=1,2", "norm=layer,none"])
    {'lr': (0.001, 0.1), 'heads': [1, 2], 'norm': ['layer', 'none']}
    """
    found: dict[str, Any] = {}
    for word in words:
        name, equals, text = (part.strip() for part in word.partition("="))
        if not (name and equals and text):
            raise InputError(f"search: expected name=low..high or name=value,value, got {word!r}")
        if name in found:
            raise InputError(f"search: {name} is given twice; give it once")
        low, dots, high = text.partition("..")
        if dots:
            found[name] = (_value(low), _value(high))
        else:
            found[name] = [_value(part) for part in text.split(",")]
    return found


def _value(text: str) -> Any:
    text = text.strip()
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _checked(name: str, asked: Any) -> Choices | Range:
    """A pair of numbers is a range, a list (or set) is a choice; every value must be one that the protocol takes."""
    if isinstance(asked, Choices | Range):
        made = asked
    elif isinstance(asked, tuple) and len(asked) == 2 and all(_is_number(end) for end in asked):
        low, high = (_like_the_setting(name, end) for end in asked)
        if not low < high:
            raise InputError(f"search: {name}: a range goes from the lower to the higher end, got {low} to {high}")
        made = Range(low, high)
    elif isinstance(asked, list) and asked:
        made = Choices(tuple(dict.fromkeys(asked)))
    else:
        raise InputError(f"search: {name}: expected (low, high) or a list of values, got {asked!r}")
    for value in made.ends:
        try:
            understood = getattr(Protocol(**{name: value}), name)
        except InputError as error:
            raise InputError(f"search: {error}") from None
        if isinstance(understood, str) != isinstance(value, str):  # pydantic reads '8' as 8
            raise InputError(f"search: {name}: expected a value like {understood!r}, got {value!r}")
    return made


def _like_the_setting(name: str, end: float) -> float:
    """An end of a range as a fraction unless the setting is a whole number, so that kappa=1..10 means 2.5 too."""
    field = Protocol.model_fields.get(name)
    return end if field is None or field.annotation is int else float(end)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _without_residual(methods: Sequence[str]) -> list[str]:
    from ltga.nn.build import accepted_arguments, form  # now: a misspelt setting should not wait for torch

    return [
        name
        for name in methods
        if any("residual" not in accepted_arguments(form(find_method(name), init)[0]) for init in ("paired", "paper"))
    ]
