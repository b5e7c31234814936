"""A callback that writes every epoch for TensorBoard (``pip install 'ltga[tensorboard]'``)."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from ltga.errors import InputError
from ltga.train.loop import EpochInfo


class TensorBoard:
    """Writes losses, validation accuracy, the index's gradient and every head's q to an event file.

    Scalars are called ``loss/train``, ``loss/validation``, ``accuracy/validation``, ``index/gradient_norm``
    and ``q/layer1/head1`` (the mean over edges where each edge has its own; ``q_std/...`` their spread).

    Args:
        folder: where the event file goes; look at it with ``tensorboard --logdir FOLDER``.

    ::

        with TensorBoard("runs/cora") as board:
            ltga.fit("cora", callbacks=[board])
    """

    def __init__(self, folder: str | Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise InputError(
                "tensorboard: the package is not installed; install it with pip install 'ltga[tensorboard]'"
            ) from None
        try:
            self._writer = SummaryWriter(str(folder))  # type: ignore[no-untyped-call]
        except OSError as error:
            raise InputError(f"folder: {folder} cannot be written ({error.strerror})") from None

    def __call__(self, info: EpochInfo) -> None:
        scalars = {
            "loss/train": info.train_loss,
            "loss/validation": info.val_loss,
            "accuracy/validation": info.val_accuracy,
            "index/gradient_norm": info.index_gradient_norm,
        }
        for number, layer in enumerate(info.q, start=1):
            for kind, name in (("mean", "q"), ("std", "q_std")):
                for head, value in enumerate(layer.get(kind, ()), start=1):
                    scalars[f"{name}/layer{number}/head{head}"] = value
        for name, value in scalars.items():
            self._writer.add_scalar(name, value, info.epoch)  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Write what is still in memory; leaving ``with`` does it too."""
        self._writer.close()  # type: ignore[no-untyped-call]

    def __enter__(self) -> TensorBoard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
