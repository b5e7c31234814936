"""The finished runs of a study, and what analyses of their models found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

import pandas as pd

from ltga.data import Dataset
from ltga.errors import DataError, InputError, LTGAError, RecordError
from ltga.study import EXPERIMENTS, Experiment, RunSpec, Store
from ltga.study.analyses.every_analysis import ANALYSES, Frames, Material
from ltga.study.analyses.kept_results import Kept, folder_of, result_inside
from ltga.study.archive import stored_records
from ltga.study.experiment import PAIRED
from ltga.study.lookup import by_spec, find_among
from ltga.study.spec import load_if_here
from ltga.train.finished import load_run
from ltga.train.record import Record, imported_from
from ltga.train.storage import read_arrays


class Study:
    """Everything a report draws on: records and, where they are at hand, arrays, models, datasets and kept analyses.

    Args:
        store: the runs: a store, its folder, or an archive of records, which has no arrays and models.
        root: folder with datasets, as for :func:`~ltga.data.load_dataset`; nothing is downloaded.
        analyses: folder where results of analyses are kept (default: ``analyses`` in the store).
        watch: told in a few words what is being computed.
    """

    def __init__(
        self,
        store: Store | str | Path,
        root: str | Path | None = None,
        analyses: str | Path | None = None,
        watch: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._place = store.folder if isinstance(store, Store) else Path(store)
        if not self._place.exists():
            raise InputError(
                f"store: there is no {self._place}; give the folder that `ltga suite run` fills, or what `export` wrote"
            )
        folder = Store(self._place) if self._place.is_dir() else None
        self._store = store if isinstance(store, Store) else folder
        if analyses is None and self._store is not None:
            analyses = folder_of(self._place)
        self._kept = None if analyses is None else Kept(analyses)
        self._root = root
        self._watch = watch
        self._runs: dict[str, dict[RunSpec, Record]] = {}
        self._datasets: dict[str, Dataset] = {}
        self._analyses: dict[tuple[str, str], Frames | None] = {}
        self._reasons: dict[tuple[str, str], str] = {}
        self.tables: dict[tuple[Callable[..., pd.DataFrame], str], pd.DataFrame] = {}
        """Run tables made so far; see :func:`ltga.study.report.run_table.made_once`."""

    @cached_property
    def _records(self) -> Mapping[RunSpec, Sequence[Record]]:
        """All finished runs; those of an archive are marked with its name."""
        records = stored_records(self._place) if self._store is None else self._store.records()
        return by_spec(record for record in records if _tested(record))

    @property
    def damaged(self) -> Mapping[str, str]:
        """Files of the store that were left out, by name, and what is wrong with each."""
        return {} if self._store is None else self._store.damaged

    def runs(self, experiment: Experiment) -> dict[RunSpec, Record]:
        """The finished runs of an experiment."""
        if experiment.name not in self._runs:
            self._runs[experiment.name] = find_among(experiment.runs, self._records)
        return self._runs[experiment.name]

    def archives(self, *experiments: Experiment | None) -> dict[str, str]:
        """By the id of every run of these experiments the archive it was imported from; empty if it was made here."""
        records = [record for one in experiments if one is not None for record in self.runs(one).values()]
        return {record["id"]: imported_from(record) or "" for record in records}

    def analysis(self, record: Record, name: str) -> Frames | None:
        """The result of one of the ``ANALYSES``, kept or made now; ``None`` if it cannot be had."""
        key = record["id"], name
        if key not in self._analyses:
            found = result_inside(record, name) or (self._kept.read(record, name) if self._kept else None)
            self._analyses[key] = found or self._analyse(record, name)
        return self._analyses[key]

    def why_not(self, record: Record, name: str) -> str:
        """Why an analysis could not be had."""
        return self._reasons.get((record["id"], name), "")

    def _analyse(self, record: Record, name: str) -> Frames | None:
        config = record["config"]
        self._watch(f"analysing {name}: {config['dataset']['name']}, {config['method']}, seed {config['seed']}")
        material = Material(
            lambda: load_run(self._path(record)), lambda: self._dataset(record), lambda: read_arrays(self._path(record))
        )
        try:
            frames = ANALYSES[name].compute(material)
        except LTGAError as error:
            self._reasons[record["id"], name] = _reason(error)
            return None
        if self._kept is not None:
            # A store that cannot be written can still be reported on.
            with suppress(OSError):
                self._kept.write(record, name, frames)
        return frames

    def _path(self, record: Record) -> Path:
        if self._store is None:
            raise InputError("store: an archive has neither arrays nor models")
        return self._place / f"{record['id']}.json"

    def _dataset(self, record: Record) -> Dataset:
        """The very graph of a run, if it is on this machine."""
        config = record["config"]["dataset"]
        name = config["name"]
        if name not in self._datasets:
            self._datasets[name] = load_if_here(name, self._root)
        if self._datasets[name].fingerprint != config["fingerprint"]:
            raise DataError(f"{name}: this graph is not on this machine")
        return self._datasets[name]


def _tested(record: Record) -> bool:
    return record["metrics"].get("test", {}).get("accuracy") is not None  # a study compares test nodes


def _reason(error: LTGAError) -> str:
    """Why something could not be computed, without the paths of this machine."""
    if isinstance(error, RecordError):
        return "arrays or model are missing or damaged"
    return "the graph is not on this machine" if isinstance(error, DataError) else str(error)


def original(experiment: Experiment) -> Experiment | None:
    """For a twin under paired initialisation the same experiment under the paper's, which then is the reference."""
    paired = experiment.name.endswith(PAIRED)
    return EXPERIMENTS.get(experiment.name.removesuffix(PAIRED)) if paired else None
