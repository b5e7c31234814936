"""Where dataset files lie on this machine, and how the missing ones are obtained."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import platformdirs

from ltga.data.archive_download import download_members
from ltga.data.catalogue import IMPOSTORS, Facts, KnownFile, known_by_sha256
from ltga.data.download import download
from ltga.errors import DataError, InputError

ENVIRONMENT = "LTGA_DATA"

Verify = Callable[[Path], object]


def data_folders(root: str | Path | None = None) -> list[Path]:
    """The folders looked in, first to last: `root`, `$LTGA_DATA`, the user cache directory."""
    named = [root, os.environ.get(ENVIRONMENT)]
    folders = [Path(folder).expanduser() for folder in named if folder]
    folders.append(platformdirs.user_cache_path("ltga") / "data")
    if root is not None and folders[0].exists() and not folders[0].is_dir():
        raise InputError(f"root: {root} is a file; give the folder that holds the datasets")
    return folders


def obtain(facts: Facts, root: str | Path | None = None, verify: Verify | None = None) -> tuple[Path, list[Path]]:
    """The folder that holds a dataset, and its checked files (the packed one, or all raw ones).

    `verify` is asked about a downloaded packed file whose sha256 nobody knows.
    """
    folders = data_folders(root)
    for folder in folders:
        files = _complete(facts, folder)
        if files:
            return folder, [check_file(folder / file.path, file, facts) for file in files]
    wanted = facts.raw or ((facts.packed,) if facts.packed else ())
    folder = _first_writable(folders)
    paths = []
    for file in wanted:
        path = folder / file.path
        if path.exists():
            paths.append(check_file(path, file, facts))
        else:
            paths.append(_fetch(facts, file, folder, folders, verify))
    return folder, paths


def is_here(facts: Facts, root: str | Path | None = None) -> bool:
    """Whether a dataset can be had without the network: its files lie on this machine, or it is generated.

    >>> from ltga.data import CATALOGUE
    >>> is_here(CATALOGUE["csbm"])
    True
    """
    return facts.reader == "generated" or locate(facts, root) is not None


def check_file(path: Path, known: KnownFile, facts: Facts) -> Path:
    """`path` if it is the known file, else an error that says what is wrong with it."""
    if known.sha256 is None:
        return path
    found = sha256_of(path)
    if found == known.sha256:
        return path
    remedy = f"Remove it, or replace it by the file with sha256 {known.sha256}"
    if found in IMPOSTORS:
        raise DataError(f"{path}: this is not {facts.name} but {IMPOSTORS[found]}. {remedy}")
    if found in known_by_sha256():
        other, file = known_by_sha256()[found]
        texas = facts.name == "cornell" and other.name == "texas"
        hint = "; a widely mirrored copy of Cornell carries the words and labels of Texas" if texas else ""
        raise DataError(
            f"{path}: swapped file: this is {Path(file.path).name} of {other.name}, not of {facts.name}{hint}. {remedy}"
        )
    size = path.stat().st_size
    if known.size is not None and size < known.size:
        fault = f"truncated or not the file it claims to be: {size:,} of {known.size:,} bytes"
    else:
        fault = f"corrupt or not the file it claims to be (sha256 {found})"
    raise DataError(f"{path}: {fault}. {remedy}; to load a file of your own give its path as the dataset")


def sha256_of(path: Path) -> str:
    """The sha256 of a file's bytes, in hexadecimal."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None


def locate(facts: Facts, root: str | Path | None = None) -> Path | None:
    """The folder that holds a dataset in full, by the names of its files; None if it would be downloaded."""
    return next((folder for folder in data_folders(root) if _complete(facts, folder)), None)


def _complete(facts: Facts, folder: Path) -> tuple[KnownFile, ...]:
    """The files of a dataset that `folder` holds in full: packed if there, else raw, else none."""
    if facts.packed is not None and (folder / facts.packed.path).exists():
        return (facts.packed,)
    if facts.raw and all((folder / file.path).exists() for file in facts.raw):
        return facts.raw
    return ()


def _fetch(facts: Facts, file: KnownFile, folder: Path, folders: list[Path], verify: Verify | None) -> Path:
    if file.url is None:
        raise DataError(
            f"{facts.name}: {file.path} is in none of {', '.join(map(str, folders))}, and it cannot be "
            f"downloaded because this project built it. Put the file with sha256 {file.sha256} into "
            f"{folder}, or set {ENVIRONMENT} to the folder that has it"
        )
    try:
        if file.archive is not None:
            absent = [other for other in facts.raw if not (folder / other.path).exists()]
            download_members(file.archive, [other for other in absent if other.archive == file.archive], folder)
            return folder / file.path
        return download(
            file.url,
            folder / file.path,
            sha256=file.sha256,
            size=file.size,
            verify=verify if file.sha256 is None else None,
        )
    except DataError as error:
        raise DataError(f"{facts.name}: download failed: {error}. {_by_hand(facts, file, folder)}") from None


def _by_hand(facts: Facts, file: KnownFile, folder: Path) -> str:
    """What to put where when the network is of no use."""
    target = folder / file.path
    advice = f"To do without: put {target.name} (sha256 {file.sha256 or 'not known'}) into {target.parent}"
    missing = [other for other in facts.raw if not (folder / other.path).exists()]
    if len(missing) > 1:
        advice += f", likewise the {len(missing) - 1} other files of {facts.name}"
    if facts.packed is not None and facts.packed != file:
        advice += f"; or the single file {facts.packed.path} (sha256 {facts.packed.sha256}) into {folder}"
    return advice


def _first_writable(folders: list[Path]) -> Path:
    for folder in folders:
        existing = next((path for path in (folder, *folder.parents) if path.exists()), Path("/"))
        # The mode counts beside access(): a folder marked read-only is meant so for root too.
        if existing.is_dir() and existing.stat().st_mode & 0o222 and os.access(existing, os.W_OK):
            return folder
    return folders[-1]
