"""What a path on the command line means: Kiln files, checkpoints of other formats, folders of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from kiln_check.checking import check
from kiln_check.errors import UsageError
from kiln_check.report import UNREADABLE, Report

if TYPE_CHECKING:
    from kiln_check.checkpoints.folder import Place
    from kiln_check.checkpoints.surroundings import Surroundings

SUFFIX = ".kiln"

CHECKPOINT_SUFFIXES = (".safetensors", ".gguf", ".index.json")
"""How the names of checkpoints end; every other file is checked as a Kiln file."""


def check_targets(paths: Sequence[str]) -> Iterator[Report]:
    """Check all that the paths mean, in their order.

    What means nothing, or can't be looked into, gets the verdict UNREADABLE.
    """
    shared = _Shared()
    for path in paths:
        if path == "-":
            yield _check_standard_input()
        else:
            yield from _check_path(path, shared)


class _Shared:
    """What the checks of several checkpoints share."""

    @cached_property
    def surroundings(self) -> Surroundings:
        """What was read of the folder that the last checkpoint was in."""
        from kiln_check.checkpoints.surroundings import Surroundings

        return Surroundings()


def _check_standard_input() -> Report:
    if sys.stdin is None:
        return _unreadable("-", "standard input is closed")
    return check(sys.stdin.buffer, path="-")


def _unreadable(path: str, error: str) -> Report:
    return Report(path, UNREADABLE, None, (), error)


def _check_path(path: str, shared: _Shared) -> Iterator[Report]:
    if os.path.isdir(path):
        yield from _check_folder(path, shared)
    elif any(sign in path for sign in "*?[") and not os.path.lexists(path):
        yield from _check_pattern(path, shared)
    elif path.endswith(CHECKPOINT_SUFFIXES):
        from kiln_check.checkpoints.check import check_checkpoint

        yield check_checkpoint(path, surroundings=shared.surroundings)
    else:
        yield check(path)


def _check_pattern(pattern: str, shared: _Shared) -> Iterator[Report]:
    from kiln_check.patterns import matches

    found = False
    failed = {}
    for path, error in matches(pattern):
        found = True
        if error is None:
            yield from _check_path(path, shared)
        else:
            failed[path] = error
    for path, error in failed.items():
        yield _unreadable(path, error)
    if not found:
        yield _unreadable(pattern, "no file matches")


def _check_folder(folder: str, shared: _Shared) -> Iterator[Report]:
    """Check what lies below a folder, folder by folder: Kiln files, then checkpoints, by name.

    Folders that are hidden, or are virtual environments of Python, are passed over.
    """
    found = False
    failed: list[OSError] = []
    for parent, folders, files in os.walk(folder, onerror=failed.append):
        folders[:] = sorted(name for name in folders if not _is_passed_over(parent, name))
        files.sort()
        for file in files:
            if file.endswith(SUFFIX):
                found = True
                yield check(os.path.join(parent, file))
        if any(file.endswith(CHECKPOINT_SUFFIXES) for file in files):
            for report in _check_checkpoints(parent, files, shared):
                found = True
                yield report
    for error in failed:
        yield _unreadable(os.fsdecode(error.filename), error.strerror or str(error))
    if not found and not failed:
        yield _unreadable(folder, f"no *{SUFFIX} file and no checkpoint in this folder")


def _is_passed_over(parent: str, name: str) -> bool:
    return name.startswith(".") or os.path.exists(os.path.join(parent, name, "pyvenv.cfg"))


def _check_checkpoints(folder: str, names: Sequence[str], shared: _Shared) -> Iterator[Report]:
    from kiln_check.checkpoints.check import check_checkpoint
    from kiln_check.checkpoints.folder import checkpoints_in

    for place in checkpoints_in(folder, names):
        yield check_checkpoint(place.path, place.shards, surroundings=shared.surroundings)


def checkpoint_at(path: str) -> Place:
    """The one checkpoint that a path means: a file, an index, or a folder with one checkpoint.

    Raises UsageError where it means none or several.
    """
    from kiln_check.checkpoints.folder import Place, checkpoints_in

    if not os.path.isdir(path):
        if not path.endswith(CHECKPOINT_SUFFIXES):
            raise UsageError(f"{path}: its name ends with none of {', '.join(CHECKPOINT_SUFFIXES)}")
        return Place(path)
    try:
        places = checkpoints_in(path, sorted(os.listdir(path)))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    if not places:
        raise UsageError(f"{path}: no checkpoint in this folder")
    if len(places) > 1:
        names = ", ".join(os.path.basename(place.path) for place in places[:5])
        more = ", …" if len(places) > 5 else ""
        raise UsageError(f"{path}: {len(places)} checkpoints in this folder; give one of {names}{more}")
    return places[0]
