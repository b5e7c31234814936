"""Checkpoints: what a run needs to go on, should its process die, in one file beside the finished runs.

The file has the parameters now and at the best epoch, both optimisers, torch's generators, and the course so far;
nothing else that changes decides a run, because samples and shuffles are functions of seed and epoch. A run that goes
on from it therefore ends with the numbers it would have had, to the last bit, on the same machine with the same
versions and threads; what differs is told in its record.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ltga.data.bounds import in_a_line
from ltga.data.tensor_files import TensorFile
from ltga.errors import InputError, RecordError
from ltga.train.crew import Crew
from ltga.train.devices import device_of
from ltga.train.loop import EpochInfo, State
from ltga.train.record import environment

EVERY = 180.0  # seconds; what a process that dies loses at most, besides an epoch
FOLDER = ".checkpoints"  # in a folder of runs
_FILE = TensorFile("ltga-checkpoint", "a checkpoint of a run", RecordError)


class Checkpoint:
    """The checkpoint of one run, written at most every ``every`` seconds; a shorter run has none.

    Args:
        folder: where it is kept, as ``<run>.safetensors``.
        run: the run's id.
        every: seconds from one to the next.
        crew: who trains; the first of them reads and writes, for all.
        say: told in one line if a checkpoint is damaged (the run then starts afresh), if one cannot be written (the
            run goes on), and after which epoch a run goes on.
    """

    def __init__(
        self,
        folder: str | Path,
        run: str,
        every: float = EVERY,
        say: Callable[[str], Any] | None = None,
        crew: Crew | None = None,
    ) -> None:
        self.path = Path(folder) / f"{run}.safetensors"
        self._run, self._every, self._say, self._crew = run, every, say, crew or Crew()
        self._begun = self._last = time.monotonic()

    def resume(self, state: State) -> None:
        """Bring ``state`` to where the last checkpoint left it, if there is one and it is sound."""
        self._begun = self._last = time.monotonic()
        saved = self._crew.from_first(lambda: self._sound(state))
        if saved is not None:
            saved.restore(state, self._crew.rank)

    def offer(self, state: State) -> None:
        """Write the state if the last checkpoint is old enough."""
        if self._crew.from_first(lambda: time.monotonic() - self._last >= self._every):
            self.write(state)

    def write(self, state: State) -> None:
        """Write the state. What keeps it from being written is told and does not end the run."""
        self._last = time.monotonic()
        generators = self._crew.gathered(generator_states())
        if self._crew.rank:
            return
        tensors, described = capture(state, generators, time.monotonic() - self._begun)
        text = json.dumps({"run": self._run, **described}, allow_nan=False)
        try:
            _FILE.write(self.path, tensors, {"state": text, "sha256": digest(tensors, text)})
        except RecordError as error:
            self._tell(f"no checkpoint after epoch {len(state.history)}: {error}; the run goes on without")

    def discard(self) -> None:
        """Throw the checkpoint away: the run is to start afresh."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise RecordError(f"{self.path}: cannot be deleted ({error.strerror}); delete it") from None

    def done(self) -> None:
        """The run is done, so nobody needs a checkpoint. One that cannot be deleted is told: the result is sound."""
        try:
            self.discard()
        except RecordError as error:
            self._tell(str(error))

    def _sound(self, state: State) -> Saved | None:
        if not self.path.exists():
            return None
        try:
            saved = Saved.of(*self._read(), environment(device_of(state.model)))
            saved.check_fit(state)
        except RecordError as error:
            self._tell(f"{self.path}: {error}; the run starts afresh")
            return None
        if self._say is not None:
            self._say(f"going on after epoch {len(saved.history)}, from {self.path}")
        return saved

    def _tell(self, line: str) -> None:
        if self._say is None:
            warnings.warn(line, stacklevel=3)
        else:
            self._say(line)

    def _read(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        try:
            tensors, metadata = _FILE.read(self.path)
        except RecordError as error:
            raise RecordError(str(error).removeprefix(f"{self.path}: ")) from None
        text = metadata.get("state", "")
        if metadata.get("sha256") != digest(tensors, text):
            raise RecordError("damaged (checksum differs)")
        described = json.loads(text)
        if described["run"] != self._run:
            raise RecordError(f"a checkpoint of another run, {described['run'][:12]}")
        return tensors, described


def checkpoint_in(folder: str | Path | None, run: str, every: float = EVERY) -> Checkpoint | None:
    """A run's checkpoint in ``folder``; ``None`` for none."""
    if folder is None:
        return None
    if isinstance(every, bool) or not isinstance(every, int | float) or not every >= 0:
        raise InputError(f"checkpoint_every: expected seconds, got {every!r}")
    if Path(folder).exists() and not Path(folder).is_dir():
        raise InputError(f"checkpoint: {folder} is a file; give a folder")
    return Checkpoint(folder, run, every)


def capture(
    state: State, generators: Sequence[Mapping[str, Tensor]], seconds: float
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The state as tensors and as JSON, with every process's generators; ``seconds`` were spent since it resumed."""
    tensors: dict[str, Tensor] = {}
    tensors |= {f"model/{name}": value for name, value in state.model.state_dict().items()}
    tensors |= {f"best/{name}": value for name, value in state.best.kept.items()}
    tensors |= {f"optimizer/{name}": value for name, value in state.optimizer.tensors().items()}
    for rank, states in enumerate(generators):
        tensors |= {f"random/{rank}/{name}": value for name, value in states.items()}
    described = {
        "best": {"epoch": state.best.epoch, "merit": _as_json(list(state.best.merit))},
        "history": [_as_json(asdict(info)) for info in state.history],
        "resumed": state.resumed,
        "seconds": state.seconds_before + seconds,
        "environment": environment(device_of(state.model)),
    }
    return tensors, described


@dataclass(frozen=True, eq=False)
class Saved:
    """What :func:`capture` gave, read again."""

    tensors: Mapping[str, Mapping[str, Tensor]]  # by part: model, best, optimizer, random
    history: list[EpochInfo]
    best_epoch: int
    merit: tuple[float, float]
    resumed: list[dict[str, Any]]
    seconds: float

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor], described: Mapping[str, Any], now: Mapping[str, Any]) -> Saved:
        """From tensors, JSON and the present surroundings, which may not be those it was saved in."""
        parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "optimizer": {}, "random": {}}
        try:
            for name, value in tensors.items():
                part, _, rest = name.partition("/")
                parts[part][rest] = value
            history = [_epoch_info(entry) for entry in described["history"]]
            changed = _differences(described["environment"], now)
            resumed = [*described["resumed"], {"epoch": len(history), "changed": changed}]
            first, second = map(float, described["best"]["merit"])
            return cls(parts, history, described["best"]["epoch"], (first, second), resumed, described["seconds"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RecordError(f"written by another version ({in_a_line(error)})") from None

    def check_fit(self, state: State) -> None:
        """Raise unless the parameters are those of the network, and the optimiser's moments those of the parameters."""
        live = state.model.state_dict()
        for part in ("model", "best"):
            stored = self.tensors[part]
            for name in sorted(live.keys() | stored.keys()):
                wanted, found = (
                    (str(where[name].dtype), list(where[name].shape)) if name in where else None
                    for where in (live, stored)
                )
                if wanted != found:
                    raise RecordError(f"does not fit the network ({name}: {found} instead of {wanted})")
        misfit = state.optimizer.misfit(self.tensors["optimizer"])
        if misfit is not None:
            raise RecordError(f"does not fit the optimiser ({misfit})")

    @torch.no_grad()
    def restore(self, state: State, rank: int = 0) -> None:
        """Bring ``state``, and the generators of the process with this rank, to where they were."""
        for name, value in state.model.state_dict().items():
            value.copy_(self.tensors["model"][name])
        for name, kept in state.best.kept.items():
            kept.copy_(self.tensors["best"][name])
        state.optimizer.load(self.tensors["optimizer"])
        own = {name: value for name, value in self.tensors["random"].items() if name.startswith(f"{rank}/")}
        _set_generators({name.partition("/")[2]: value for name, value in own.items()})
        state.best.epoch, state.best.merit = self.best_epoch, self.merit
        state.history[:], state.resumed[:] = self.history, self.resumed
        state.seconds_before = self.seconds


def digest(tensors: Mapping[str, Tensor], text: str) -> str:
    """The sha256 of a text and of tensors: names, kinds, shapes and contents."""
    found = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        value = tensors[name].detach().cpu().contiguous()
        found.update(f"\n{name} {value.dtype} {list(value.shape)}\n".encode())
        found.update(value.reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def generator_states() -> dict[str, Tensor]:
    """torch's generators in this process, by device."""
    found = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        found |= {f"cuda:{number}": state for number, state in enumerate(torch.cuda.get_rng_state_all())}
    return found


def _set_generators(states: Mapping[str, Tensor]) -> None:
    for device, state in states.items():
        if device == "cpu":
            torch.set_rng_state(state)
        elif torch.cuda.is_available() and int(device.removeprefix("cuda:")) < torch.cuda.device_count():
            torch.cuda.set_rng_state(state, device)


def _as_json(value: Any) -> Any:
    """``value`` with numbers that JSON does not have as text, which ``float`` reads again."""
    if isinstance(value, dict):
        return {key: _as_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


def _epoch_info(entry: Mapping[str, Any]) -> EpochInfo:
    numbers = ("train_loss", "val_loss", "val_accuracy", "index_gradient_norm", "seconds")
    read = {**entry, **{name: float(entry[name]) for name in numbers}}
    read["val_score"] = None if entry["val_score"] is None else float(entry["val_score"])
    read["q"] = [{key: [float(q) for q in heads] for key, heads in layer.items()} for layer in entry["q"]]
    return EpochInfo(**read)


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What is no longer as it was when the checkpoint was written."""
    return [
        f"{name}: {before[part].get(name)} -> {value}"
        for part in ("versions", "machine")
        for name, value in now[part].items()
        if before[part].get(name) != value
    ]
