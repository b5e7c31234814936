"""Installing from a clone gives the versions that were tested: constraints.txt pins whatever any extra needs."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PINNED = {
    canonicalize_name(name): version
    for name, version in re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
}


def wanted() -> list[Requirement]:
    """What the package and its extras ask for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    found = [Requirement(text) for texts in lists for text in texts]
    return [requirement for requirement in found if requirement.name != "ltga"]


def everything(first: list[Requirement]) -> set[str]:
    """The names of these and of what they need in turn, as far as it is installed here."""
    found: set[str] = set()
    left, seen = list(first), set()
    while left:
        requirement = left.pop()
        if str(requirement) in seen:
            continue
        seen.add(str(requirement))
        found.add(canonicalize_name(requirement.name))
        try:
            needs = [Requirement(text) for text in requires(requirement.name) or ()]
        except PackageNotFoundError:  # an extra that is not installed
            continue
        extras = requirement.extras or {""}
        left += [
            need
            for need in needs
            if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in extras)
        ]
    return found


def test_every_package_that_would_be_installed_is_pinned() -> None:
    assert everything(wanted()) - PINNED.keys() == set()


def test_every_pin_is_a_version_that_the_package_accepts() -> None:
    assert [str(need) for need in wanted() if not need.specifier.contains(PINNED[canonicalize_name(need.name)])] == []
