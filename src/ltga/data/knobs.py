"""The names of generated graphs: `csbm:degree=20,snr=0.5` and back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ltga.errors import InputError


def knob_name(base: str, make: Callable[..., Any], settings: Mapping[str, float]) -> str:
    """`base` and those settings that differ from the defaults of `make`, in alphabetical order.

    >>> def make(k: int = 5, share: float = 3.0): ...
    >>> knob_name("graph", make, {"share": 0.5, "k": 5})
    'graph:share=0.5'
    """
    defaults = inspect.signature(make).parameters
    changed = {key: value for key, value in settings.items() if value != defaults[key].default}
    shown = (f"{key}={_tidy(changed[key])}" for key in sorted(changed))
    return f"{base}:{','.join(shown)}" if changed else base


def parse_knobs(base: str, make: Callable[..., Any], text: str, given: int = 0, also: str = "") -> dict[str, float]:
    """The settings in `text` (`"k=5,share=0.5"`) as keyword arguments of `make`, after the first `given` of them.

    `also` names settings that are not its own, for the message.
    """
    allowed = dict(list(inspect.signature(make).parameters.items())[given:])
    settings: dict[str, float] = {}
    for knob in filter(None, text.split(",")):
        key, _, value = (part.strip() for part in knob.partition("="))
        if key not in allowed:
            raise InputError(f"name: {base} has no setting {key!r}; use {', '.join(filter(None, (*allowed, also)))}")
        if key in settings:
            raise InputError(f"name: {base}: {key} is given twice")
        settings[key] = _number(base, key, value, whole=isinstance(allowed[key].default, int))
    return settings


def take_knob(base: str, make: Callable[..., Any], text: str, key: str) -> tuple[float | None, str]:
    """The number that `text` gives for `key`, `None` if it gives none; and the rest of the text.

    >>> def share(graph: str, part: float) -> None: ...
    >>> take_knob("graph", share, "k=5,part=0.5", "part")
    (0.5, 'k=5')
    """
    settings = text.split(",")
    own = [setting for setting in settings if setting.partition("=")[0].strip() == key]
    rest = ",".join(setting for setting in settings if setting not in own)
    return parse_knobs(base, make, ",".join(own), given=1).get(key), rest


def _number(base: str, key: str, value: str, whole: bool) -> float:
    try:
        return int(value) if whole else _tidy(float(value))
    except (ValueError, OverflowError):
        kind = "whole number" if whole else "finite number"
        raise InputError(f"name: {base}: {key} must be a {kind}, got {value!r}") from None


def _tidy(value: float) -> float:
    """A whole number as int, so that 20 and 20.0 have one name; infinities and nan raise."""
    return int(value) if int(value) == value else value
