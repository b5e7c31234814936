"""Checking a store: is every run what it was when it was written, and if not, which must be done again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from ltga.errors import RecordError
from ltga.train.record import run_id
from ltga.train.record_schema import Configuration, checked_configuration
from ltga.train.storage import read_arrays, read_stored, read_weights
from ltga.train.store import Store

State = Literal["sound", "unchecked", "damaged", "interrupted"]
SUFFIXES = (".npz", ".safetensors")
_CONFIG = re.compile(r'"config"\s*:\s*')
_MOST_LOOKED_AT = 1 << 20  # bytes of a damaged file; the configuration stands at its beginning


@dataclass(frozen=True)
class Verdict:
    """What is known about one file of a store.

    Attributes:
        file: its name.
        state: ``unchecked`` if it can be read but has no checksums, as those of earlier versions.
        problem: what is wrong, or what could not be checked.
        dataset, method, seed, split: the run, as far as that can be told from a damaged file.
        imported: the archive it came from.
    """

    file: str
    state: State
    problem: str = ""
    dataset: str | None = None
    method: str | None = None
    seed: int | None = None
    split: int | None = None
    imported: str | None = None

    @property
    def run(self) -> str:
        """The run in words."""
        if self.dataset is None:
            return f"run {Path(self.file).stem[:12]}"
        return f"{self.dataset}, {self.method}, seed {self.seed}, split {self.split}"


@dataclass(frozen=True)
class Verified:
    """What is known about a store; ``leftover`` are arrays and models without a record, from a run cut short."""

    runs: tuple[Verdict, ...]
    leftover: tuple[str, ...]

    def of(self, state: State) -> list[Verdict]:
        return [run for run in self.runs if run.state == state]

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        states: tuple[State, ...] = ("sound", "unchecked", "interrupted", "damaged")
        counts = {str(state): len(self.of(state)) for state in states}
        again = [{"run": run.run, **asdict(run)} for run in self.of("damaged")]
        imported = sum(run.imported is not None for run in self.runs)
        return {"runs": len(self.runs), **counts, "imported": imported, "again": again, "leftover": self.leftover}


def verify_store(store: Store, watch: Callable[[str], None] = lambda file: None) -> Verified:
    """Read every run of a store whole, files beside the record included; nothing is changed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     verify_store(Store(folder)).as_json()["runs"]
    0
    """
    paths = sorted(store.folder.glob("*.json"))
    verdicts = []
    for path in paths:
        watch(path.name)
        verdicts.append(_verdict(path))
    known = {path.stem for path in paths}
    leftover = (path.name for suffix in SUFFIXES for path in store.folder.glob(f"*{suffix}") if path.stem not in known)
    return Verified(tuple(_named(verdicts, paths)), tuple(sorted(leftover)))


def _verdict(path: Path) -> Verdict:
    try:
        stored = read_stored(path)
    except RecordError as error:
        return Verdict(path.name, "damaged", _reason(error, path))
    sums, origin = stored.checksums, stored.typed.imported
    told = _told(stored.typed.config) | {"imported": None if origin is None else origin.name}
    here = [suffix for suffix in SUFFIXES if path.with_suffix(suffix).exists()]
    try:
        # A record without checksums may be of an archive, where arrays and models never were.
        if "arrays" in sums or ".npz" in here:
            read_arrays(path, sums)
        if "weights" in sums or ".safetensors" in here:
            read_weights(path, sums)
    except RecordError as error:
        return Verdict(path.name, "damaged", _reason(error, path), **told)
    if stored.typed.interrupted:
        return Verdict(path.name, "interrupted", "was interrupted and does not count", **told)
    covered = {".npz": "arrays", ".safetensors": "weights"}
    if not sums:
        return Verdict(path.name, "unchecked", "has no checksums: an earlier version wrote it", **told)
    bare = [covered[suffix] for suffix in here if covered[suffix] not in sums]
    if bare:
        return Verdict(path.name, "unchecked", f"has no checksums of the {' and '.join(bare)} beside it", **told)
    return Verdict(path.name, "sound", **told)


def _named(verdicts: Iterable[Verdict], paths: Iterable[Path]) -> list[Verdict]:
    """The verdicts with the runs that damaged files should hold, wherever in the store that can be learnt."""
    verdicts, paths = list(verdicts), list(paths)
    lost = [path for path, verdict in zip(paths, verdicts) if verdict.state == "damaged" and verdict.dataset is None]
    configs = dict(filter(None, map(_salvaged, lost)))
    named = []
    for path, verdict in zip(paths, verdicts):
        config = configs.get(path.stem) if path in lost else None
        named.append(verdict if config is None else Verdict(**{**asdict(verdict), **_told(config)}))
    return named


def _salvaged(path: Path) -> tuple[str, Configuration] | None:
    """The configuration in a damaged record, if that part is whole, and whose it is, which follows from its hash."""
    try:
        with path.open("rb") as stream:
            text = stream.read(_MOST_LOOKED_AT).decode(errors="replace")
        found = _CONFIG.search(text)
        if found is None:
            return None
        config = json.JSONDecoder().raw_decode(text, found.end())[0]
        return run_id(config), checked_configuration(config)
    except (OSError, ValueError, TypeError, RecursionError):
        return None


def _told(config: Configuration) -> dict[str, Any]:
    return {"dataset": config.dataset.name, "method": config.method, "seed": config.seed, "split": config.split}


def _reason(error: RecordError, path: Path) -> str:
    """The message without the folder, which is the same for all."""
    return " ".join(str(error).replace(f"{path.parent}/", "").split())
