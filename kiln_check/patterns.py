"""Which files a pattern means, and which folders could not be looked into for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase

from kiln_check.constants import PATTERN_SIGNS


def matches(pattern: str) -> Iterator[tuple[str, str | None]]:
    """Every path that a pattern means, in the order of the names, each with None.

    `*`, `?` and `[…]` stand for parts of a name, and `**` for any number of folders;
    none of them for a name that begins with a dot. A folder that can't be read comes
    with the reason instead, where `glob` would pass over it in silence.
    """
    drive, rest = os.path.splitdrive(pattern)
    root = drive + rest[: len(rest) - len(rest.lstrip(os.sep))]
    yield from _below(root, [part for part in rest.split(os.sep) if part])


def _below(folder: str, parts: list[str]) -> Iterator[tuple[str, str | None]]:
    part, later = parts[0], parts[1:]
    if part == "**":
        if later:
            yield from _below(folder, later)
        for name, is_folder, error in _entries(folder):
            if error is not None:
                yield name, error
            elif is_folder:
                yield from _below(os.path.join(folder, name), parts)
            elif not later:
                yield os.path.join(folder, name), None
        return
    if not any(sign in part for sign in PATTERN_SIGNS):
        path = os.path.join(folder, part)
        if later and os.path.isdir(path):
            yield from _below(path, later)
        elif not later and os.path.lexists(path):
            yield path, None
        return
    for name, is_folder, error in _entries(folder):
        if error is not None:
            yield name, error
        elif fnmatchcase(name, part):
            path = os.path.join(folder, name)
            if not later:
                yield path, None
            elif is_folder or os.path.isdir(path):
                yield from _below(path, later)


def _entries(folder: str) -> Iterator[tuple[str, bool, str | None]]:
    """(name, whether it is a folder and no link, None) of what is not hidden; or the folder and why not."""
    try:
        with os.scandir(folder or os.curdir) as entries:
            found = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
    except OSError as error:
        yield folder or os.curdir, True, error.strerror or str(error)
        return
    for name, is_folder in found:
        if not name.startswith("."):
            yield name, is_folder, None
