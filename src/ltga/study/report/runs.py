"""The finished runs of a study, and the numbers one reads from a record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from ltga.data import CATALOGUE, Dataset, load_dataset
from ltga.data.obtain import is_here
from ltga.errors import DataError, InputError, LTGAError, RecordError
from ltga.study import EXPERIMENTS, Experiment, RunSpec, Store, find_records
from ltga.study.analyses.every_analysis import ANALYSES, Frames, Material
from ltga.study.analyses.kept_results import Kept, folder_of, result_inside
from ltga.study.archive import stored_records
from ltga.study.report.tables import Imports
from ltga.train.fit import load_run
from ltga.train.record import Record, imported_from
from ltga.train.storage import read_arrays

PAIRED = "-paired"


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
        place = store.folder if isinstance(store, Store) else Path(store)
        self._store: Store | None = store if isinstance(store, Store) else None
        if not place.exists():
            raise InputError(
                f"store: there is no {place}; give the folder that `ltga suite run` fills, or what `export` wrote"
            )
        self._place = place
        self.folder: Path | None = place if place.is_dir() else None
        self._root = root
        self._watch = watch
        if analyses is None and self.folder is not None:
            analyses = folder_of(self.folder)
        self._kept = None if analyses is None else Kept(analyses)
        self._runs: dict[str, dict[RunSpec, Record]] = {}
        self._datasets: dict[str, Dataset | None] = {}
        self._analyses: dict[tuple[str, str], Frames | None] = {}
        self._reasons: dict[tuple[str, str], str] = {}

    @cached_property
    def records(self) -> list[Record]:
        """All finished runs; those of an archive are marked with its name."""
        if self.folder is None:
            return stored_records(self._place)
        self._store = self._store or Store(self.folder)
        return list(self._store.records())

    @property
    def damaged(self) -> Mapping[str, str]:
        """Files of the store that were left out, by name, and what is wrong with each."""
        return {} if self._store is None else self._store.damaged

    @cached_property
    def imported(self) -> Mapping[str, str]:
        """The archive's name by the id of every run that came from one."""
        return {record["id"]: name for record in self.records if (name := imported_from(record)) is not None}

    def imports(self, experiment: Experiment) -> Imports:
        """Which of the runs of an experiment, and of the one it is compared with, are imported."""
        twin = original(experiment)
        runs = {record["id"] for one in (experiment, twin) if one for record in self.runs(one).values()}
        return Imports(len(runs), {run: name for run, name in self.imported.items() if run in runs})

    def runs(self, experiment: Experiment) -> dict[RunSpec, Record]:
        """The finished runs of an experiment."""
        if experiment.name not in self._runs:
            self._runs[experiment.name] = find_records(experiment.runs, filter(_tested, self.records))
        return self._runs[experiment.name]

    def dataset(self, record: Record) -> Dataset | None:
        """The very graph of a run, if it is on this machine."""
        config = record["config"]["dataset"]
        name = config["name"]
        if name not in self._datasets:
            self._datasets[name] = self._load(name)
        dataset = self._datasets[name]
        return dataset if dataset is not None and dataset.fingerprint == config["fingerprint"] else None

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
            lambda: load_run(self._path(record)), lambda: self._needed(record), lambda: read_arrays(self._path(record))
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
        if self.folder is None:
            raise InputError("store: an archive has neither arrays nor models")
        return self.folder / f"{record['id']}.json"

    def _needed(self, record: Record) -> Dataset:
        dataset = self.dataset(record)
        if dataset is None:
            raise DataError(f"{record['config']['dataset']['name']}: this graph is not on this machine")
        return dataset

    def _load(self, name: str) -> Dataset | None:
        facts = CATALOGUE.get(name.partition(":")[0])
        if facts is not None and not is_here(facts, self._root):
            return None
        try:
            return load_dataset(name, self._root)
        except DataError:
            return None


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


def reference_of(experiment: Experiment) -> str:
    """What stands beside the numbers of an experiment."""
    return "paper" if original(experiment) is None else "paper's init"
