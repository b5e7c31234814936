"""Tensors and a description of them in one file without pickle: safetensors that says what kind of file it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from ltga.data.atomic import write_atomic
from ltga.data.bounds import in_a_line
from ltga.errors import InputError, LTGAError


@dataclass(frozen=True)
class TensorFile:
    """A kind of file.

    Attributes:
        format: what its metadata call it.
        written_by: what a message calls it.
        fault: the error that tells of an unsound one.
    """

    format: str
    written_by: str
    fault: type[LTGAError]

    def write(self, path: str | Path, tensors: Mapping[str, Tensor], described: Mapping[str, str]) -> Path:
        """Store tensors and texts; the file appears only when it is complete."""
        path = Path(path)
        # Clones, because safetensors refuses tensors that share memory.
        own = {name: tensor.detach().cpu().as_subclass(Tensor).clone().contiguous() for name, tensor in tensors.items()}
        content = save(own, metadata={**self._mark, **described})
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, lambda stream: stream.write(content))
        except OSError as error:
            raise self.fault(f"{path}: cannot be written ({error.strerror})") from None
        return path

    def read(self, path: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
        """The tensors and texts in a file of this kind."""
        try:
            with safe_open(str(path), framework="pt") as stream:
                metadata = stream.metadata() or {}
                tensors = {key: stream.get_tensor(key) for key in stream.keys()}  # noqa: SIM118
        except FileNotFoundError:
            raise self.fault(f"{path}: no such file; check the path") from None
        # A tensor of a kind that torch does not have can raise nearly anything.
        except Exception as error:
            raise self.fault(f"{path}: damaged or not a safetensors file ({in_a_line(error)})") from None
        if any(metadata.get(key) != value for key, value in self._mark.items()):
            raise self.fault(f"{path}: not {self.written_by}")
        return tensors, metadata

    @property
    def _mark(self) -> dict[str, str]:
        return {"format": self.format, "version": "1"}


def check_suffix(path: str | Path) -> None:
    """Raise unless ``path`` is called as such files are."""
    if Path(path).suffix != ".safetensors":
        raise InputError(f"path: got {path}; give a name that ends in .safetensors")
