"""What a path means: a Kiln file, a checkpoint, or a folder of both; for the command and for Python alike."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from kiln_check.constants import PATTERN_SIGNS
from kiln_check.errors import PathError

if TYPE_CHECKING:
    from kiln_check.checkpoints.folder import Folder, Place

SUFFIX = ".kiln"

NAMES_SHOWN = 5
"""Checkpoints of a folder that a message names, so that it stays a line or two of a terminal."""


class KilnPath(NamedTuple):
    """A path that means a Kiln file: any but those of checkpoints and folders."""

    path: str


class Failed(NamedTuple):
    """A path that means nothing, or that can't be looked into."""

    path: str
    error: str


Target: TypeAlias = "KilnPath | Place | Failed"


class Folders:
    """What is known of folders; the last one that was asked for is remembered."""

    def __init__(self) -> None:
        self._last: Folder | None = None

    def get(self, path: str, names: Sequence[str] | None = None) -> Folder:
        """The folder of a path, with the names of its files where they are known."""
        if self._last is None or self._last.path != path:
            from kiln_check.checkpoints.folder import Folder

            self._last = Folder(path, names)
        return self._last


def targets(path: str, folders: Folders) -> Iterator[Target]:
    """All that a path means, in order.

    A folder means every Kiln file and every checkpoint below it, a pattern all that its
    matches mean, and a file of a checkpoint the checkpoints that it belongs to.

    Args:
        path: what the user wrote.
        folders: what is known of folders already.

    """
    if os.path.isdir(path):
        yield from _in_folder(path, folders)
    elif any(sign in path for sign in PATTERN_SIGNS) and not os.path.lexists(path):
        yield from _matching(path, folders)
    elif is_checkpoint(path):
        yield from _faulty_indexes_of(path, folders)
        yield from places_of(path, folders)
    else:
        yield KilnPath(path)


def is_checkpoint(path: str) -> bool:
    """Whether a path that is no folder's names a file of a checkpoint, or an index.

    A name that says nothing leaves it to the file's first bytes: caches name files by their digest.
    """
    if path.endswith(SUFFIX):
        return False
    from kiln_check.checkpoints.folder import is_checkpoint_name
    from kiln_check.checkpoints.formats.registry import begins_as_checkpoint

    return is_checkpoint_name(os.path.basename(path)) or begins_as_checkpoint(path)


def means_checkpoint(path: str) -> bool:
    """Whether a path names a file of a checkpoint, or a folder in which there is one."""
    if not os.path.isdir(path):
        return is_checkpoint(path)
    try:
        from kiln_check.checkpoints.folder import is_checkpoint_name

        return any(map(is_checkpoint_name, os.listdir(path)))
    except OSError:
        return False


def places_of(path: str, folders: Folders) -> list[Place]:
    """The checkpoints that a file, or an index, belongs to: more than one where several indexes name it."""
    from kiln_check.checkpoints.folder import Place, is_checkpoint_name
    from kiln_check.checkpoints.index import is_index_name

    parent, name = os.path.split(path)
    if is_index_name(name):
        return [Place(path)]
    if not os.path.lexists(path) or not is_checkpoint_name(name):
        return [Place(path, (path,))]
    return list(folders.get(parent).places_of(name))


def _faulty_indexes_of(path: str, folders: Folders) -> Sequence[Place]:
    """The indexes that ought to name a file and can't be read."""
    from kiln_check.checkpoints.folder import is_checkpoint_name

    parent, name = os.path.split(path)
    is_named = os.path.lexists(path) and is_checkpoint_name(name)
    return folders.get(parent).faulty_indexes(name) if is_named else ()


def checkpoint_at(path: str) -> Place:
    """The one checkpoint that a path means: a file of it, its index, or the folder that it is in.

    Raises PathError where it means none or several.
    """
    if os.path.isdir(path):
        places = _places_in(path)
        if not places:
            raise PathError(f"{path}: no checkpoint in this folder")
        several = f"{len(places)} checkpoints in this folder"
    elif is_checkpoint(path):
        places = places_of(path, Folders())
        several = f"is a file of {len(places)} checkpoints"
    else:
        from kiln_check.checkpoints.formats.registry import SUFFIXES
        from kiln_check.checkpoints.index import INDEX_SUFFIX

        endings = ", ".join((*SUFFIXES, INDEX_SUFFIX))
        raise PathError(f"{path}: its name ends with none of {endings}, and it begins as no format of these")
    if len(places) > 1:
        names = ", ".join(os.path.basename(place.path) for place in places[:NAMES_SHOWN])
        more = ", …" if len(places) > NAMES_SHOWN else ""
        raise PathError(f"{path}: {several}; give one of {names}{more}")
    return places[0]


def _places_in(path: str) -> list[Place]:
    """The checkpoints in a folder itself. Raises PathError where it can't be listed."""
    from kiln_check.checkpoints.folder import Folder, file_names

    try:
        names = file_names(path)
    except OSError as error:
        raise PathError(f"{path}: {error.strerror}") from error
    return list(Folder(path, names).places)


def _matching(pattern: str, folders: Folders) -> Iterator[Target]:
    from kiln_check.patterns import matches

    found = False
    failed = []
    for path, error in matches(pattern):
        found = True
        if error is None:
            yield from targets(path, folders)
        else:
            failed.append(Failed(path, error))
    yield from dict.fromkeys(failed)
    if not found:
        yield Failed(pattern, "no file matches")


def _in_folder(folder: str, folders: Folders) -> Iterator[Target]:
    """What lies below a folder, folder by folder: Kiln files, then checkpoints, by name.

    Folders that are hidden, or are virtual environments of Python, are passed over.
    """
    found = False
    failed: list[OSError] = []
    for parent, inner, files in os.walk(folder, onerror=failed.append):
        inner[:] = sorted(name for name in inner if not _is_passed_over(parent, name))
        files.sort()
        for file in files:
            if file.endswith(SUFFIX):
                found = True
                yield KilnPath(os.path.join(parent, file))
        if any(is_checkpoint(file) for file in files):
            for place in folders.get(os.path.dirname(os.path.join(parent, files[0])), files).places:
                found = True
                yield place
    for error in failed:
        yield Failed(os.fsdecode(error.filename), error.strerror or str(error))
    if not found and not failed:
        yield Failed(folder, f"no *{SUFFIX} file and no checkpoint in this folder")


def _is_passed_over(parent: str, name: str) -> bool:
    return name.startswith(".") or os.path.exists(os.path.join(parent, name, "pyvenv.cfg"))
