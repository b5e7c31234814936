"""Splits as boolean masks: what every dataset that has them shares, whatever is divided."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from ltga.errors import DataError, InputError

_PARTS = ("train", "val", "test")


class HasSplits:
    """Something called `name` whose items are divided by masks `[S, N]` for train, validation and test."""

    name: str
    _masks: tuple[Tensor, ...]

    @property
    def num_splits(self) -> int:
        """How many train/validation/test splits there are."""
        return int(self._masks[0].shape[0])

    def split(self, i: int) -> tuple[Tensor, Tensor, Tensor]:
        """Split `i` as boolean masks (train, validation, test), each `[N]`."""
        if isinstance(i, bool) or not isinstance(i, int) or not 0 <= i < self.num_splits:
            raise InputError(
                f"split: got {i!r}, but {self.name} has {self.num_splits} splits, numbered 0 to {self.num_splits - 1}"
            )
        train, val, test = (mask[i] for mask in self._masks)
        return train, val, test


def stacked(train: Tensor, val: Tensor, test: Tensor) -> tuple[Tensor, ...]:
    """Masks `[S, N]` from masks of that shape, or `[N]` for a single split."""
    return tuple(mask.unsqueeze(0) if mask.dim() == 1 else mask for mask in (train, val, test))


def check_masks(masks: tuple[Tensor, ...], known: Tensor, name: str, item: str = "node") -> None:
    """Raise :class:`DataError` unless masks `[S, N]` divide items whose target is `known` `[N]`."""
    for part, mask in zip(_PARTS, masks):
        if mask.dtype != torch.bool or mask.dim() != 2 or mask.shape != (masks[0].shape[0], known.shape[0]):
            raise DataError(
                f"{name}: expected boolean {part} masks of shape [splits, {known.shape[0]}], "
                f"got {mask.dtype} {list(mask.shape)}"
            )
    if masks[0].shape[0] == 0:
        raise DataError(f"{name}: there are no splits; give at least one")
    empty = (~masks[0].any(dim=1)).nonzero()
    if empty.numel():
        raise DataError(f"{name}: split {int(empty[0])} has no training {item}s")
    twice = (sum(mask.to(torch.uint8) for mask in masks) > 1).nonzero()  # type: ignore[union-attr]
    if twice.numel():
        split, at = twice[0].tolist()
        both = " and ".join(part for part, mask in zip(_PARTS, masks) if mask[split, at])
        raise DataError(f"{name}: in split {split} {item} {at} is in {both}; a {item} may be in one part only")
    unlabelled = (masks[0] | masks[1] | masks[2])[:, ~known].nonzero()
    if unlabelled.numel():
        at = int((~known).nonzero()[int(unlabelled[0, 1])])
        raise DataError(
            f"{name}: {item} {at} is unlabelled (-1) but in split {int(unlabelled[0, 0])}; "
            f"leave unlabelled {item}s out of every split"
        )


def fingerprint_of(parts: Iterable[Tensor | None]) -> str:
    """A sha256 of tensors, their shapes and their kinds."""
    digest = hashlib.sha256()
    part: Any  # else numpy and memoryview disagree about what has a buffer
    for part in parts:
        if part is not None:
            digest.update(f"{part.dtype} {tuple(part.shape)}".encode())
            if part.numel():  # a graph may have no edges, and no bytes have no view
                digest.update(memoryview(part.detach().cpu().contiguous().numpy()).cast("B"))
    return digest.hexdigest()
