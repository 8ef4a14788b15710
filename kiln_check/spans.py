"""Ranges of bytes in files, and what tells whether a file is still the one that was read."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

from kiln_check.constants import MOST_OPEN


class FileFingerprint(NamedTuple):
    """What differs, as a rule, between two states of a file."""

    device: int
    inode: int
    size: int
    modified: int


def fingerprint_of(path_or_fd: str | int) -> FileFingerprint:
    """The fingerprint of a file as it is now. Raises OSError."""
    status = os.stat(path_or_fd)
    return FileFingerprint(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


class Span(NamedTuple):
    """Bytes of a file: `length` of them from `offset` on; of the file in the fingerprint's state, if any."""

    path: str
    offset: int
    length: int
    fingerprint: FileFingerprint | None = None


class _Closable(Protocol):
    def close(self) -> None: ...


Opened = TypeVar("Opened", bound=_Closable)


class OpenFiles(Generic[Opened]):
    """Files that are open to be read, the last few that were asked for.

    A context manager; all are closed at its end.
    """

    def __init__(self, open_one: Callable[[str], Opened]) -> None:
        self._open_one = open_one
        self._open: dict[str, Opened] = {}

    def get(self, path: str) -> Opened:
        """The file, opened if need be. Raises OSError."""
        file = self._open.pop(path, None)
        if file is None:
            if len(self._open) == MOST_OPEN:
                self._open.pop(next(iter(self._open))).close()
            file = self._open_one(path)
        self._open[path] = file
        return file

    def __enter__(self) -> OpenFiles[Opened]:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._open.values():
            file.close()
