"""Packages whose names are imported when they are first used, so that a command need not wait for all of them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A module's ``__getattr__``: names of ``package`` by the modules they live in, separated by blanks.

    >>> find = lazy_names("ltga", {"ltga.errors": "InputError LTGAError"})
    >>> find("InputError").__name__
    'InputError'
    """
    home = {name: module for module, names in homes.items() for name in names.split()}

    def __getattr__(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(home[name]), name)

    return __getattr__
