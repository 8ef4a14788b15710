"""Where bytes come from: a path, bytes in memory, a file object, a pipe.

Every source gives the size of the whole and the bytes of a range, and knows
nothing of Kiln.
"""

from __future__ import annotations

import io
import os
import stat
from contextlib import suppress
from typing import BinaryIO, Protocol, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview
Target: TypeAlias = "str | os.PathLike[str] | Buffer | BinaryIO"
"""What a source can be made of."""

CHUNK = 1 << 20
"""Bytes taken from a pipe at a time."""


class Source(Protocol):
    """A file of known size whose ranges can be read."""

    def size(self) -> int:
        """Return the size of the whole in bytes.

        Raises OSError.
        """

    def has(self, length: int) -> bool:
        """Return whether the whole is at least `length` bytes long.

        Raises OSError.
        """

    def read(self, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset` on, fewer where the file ends before.

        Raises OSError.
        """

    def close(self) -> None:
        """Let go of what was opened for this source, and of nothing else."""


def open_regular(path: str | os.PathLike[str]) -> tuple[int, int]:
    """Open a file by its path; return its descriptor and its size in bytes.

    Raises OSError when it can't be opened, or is a directory, a pipe or a device.
    """
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        fd = os.open(path, flags)
    except ValueError as error:
        raise OSError(f"not a path: {error}") from error
    status = os.fstat(fd)
    if stat.S_ISREG(status.st_mode) and (status.st_size or _is_empty(fd)):
        return fd, status.st_size
    os.close(fd)
    if stat.S_ISREG(status.st_mode):
        raise OSError("has bytes, but no size that says how many")
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError("is a directory")
    raise OSError("not a regular file; send its bytes through standard input instead")


def _is_empty(fd: int) -> bool:
    """Whether a file of size 0 has no bytes; those of /proc have some, or can't be read."""
    try:
        return not os.read(fd, 1)
    except OSError:
        return False


class _OfKnownSize:
    """What sources share that know their size from the start."""

    _size: int

    def size(self) -> int:
        return self._size

    def has(self, length: int) -> bool:
        return self._size >= length


class PathSource(_OfKnownSize):
    """A regular file, opened by its path.

    Raises OSError when it can't be opened, or is a directory, a pipe or a device.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._fd, self._size = open_regular(path)

    def read(self, offset: int, length: int) -> bytes:
        if offset >= self._size:
            return b""
        return _read_range(self._fd, offset, min(length, self._size - offset))

    def close(self) -> None:
        os.close(self._fd)


def _read_range(fd: int, offset: int, length: int) -> bytes:
    part = os.pread(fd, length, offset) if hasattr(os, "pread") else _seek_read(fd, length, offset)
    if len(part) == length:
        return part
    parts = [part]
    while part and length > len(part):
        offset, length = offset + len(part), length - len(part)
        part = os.pread(fd, length, offset) if hasattr(os, "pread") else _seek_read(fd, length, offset)
        parts.append(part)
    return b"".join(parts)


def _seek_read(fd: int, length: int, offset: int) -> bytes:
    os.lseek(fd, offset, os.SEEK_SET)
    return os.read(fd, length)


class BytesSource(_OfKnownSize):
    """Bytes in memory; with `size`, only the head of a larger file.

    `head` is not copied. Bytes from its end up to `size` can't be read.
    """

    def __init__(self, head: Buffer, size: int | None = None) -> None:
        view = memoryview(head)
        self._head = view.cast("B") if view.nbytes and view.c_contiguous else memoryview(view.tobytes())
        self._size = len(self._head) if size is None else size

    def read(self, offset: int, length: int) -> bytes:
        return bytes(self._head[offset : offset + length])

    def close(self) -> None:
        self._head.release()


class SeekableSource(_OfKnownSize):
    """A binary file object that can seek; its position is put back at the end."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._position = file.tell()
        self._size = file.seek(0, io.SEEK_END)

    def read(self, offset: int, length: int) -> bytes:
        if offset >= self._size:
            return b""
        self._file.seek(offset)
        return _read_fully(self._file, min(length, self._size - offset))

    def close(self) -> None:
        with suppress(OSError, EOFError):
            self._file.seek(self._position)


class PipeSource:
    """A binary file object that only goes forward.

    Bytes are kept as far as they were asked for; what comes after is counted and
    dropped by `size`, which therefore comes last.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._kept = bytearray()
        self._dropped = 0
        self._ended = False

    def size(self) -> int:
        while not self._ended:
            part = _read_some(self._file, CHUNK)
            self._ended = not part
            self._dropped += len(part)
        return len(self._kept) + self._dropped

    def has(self, length: int) -> bool:
        while not self._ended and len(self._kept) < length:
            part = _read_some(self._file, min(CHUNK, length - len(self._kept)))
            self._ended = not part
            self._kept += part
        return len(self._kept) >= length

    def read(self, offset: int, length: int) -> bytes:
        self.has(offset + length)
        return bytes(self._kept[offset : offset + length])

    def close(self) -> None:
        self._kept.clear()


def _read_some(file: BinaryIO, length: int) -> bytes:
    """At most `length` bytes, none at the end; waits for a stream that has none yet."""
    while True:
        part: bytes | None = file.read(length)
        if part is not None:
            return part
        from select import select

        select([file], [], [])


def _read_fully(file: BinaryIO, length: int) -> bytes:
    parts = []
    while length > 0:
        part = _read_some(file, length)
        if not part:
            break
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def open_source(target: Target) -> Source:
    """Return a source for a path, for bytes, or for a file object opened in binary mode.

    Raises OSError when a path can't be opened, TypeError for anything else.
    """
    if isinstance(target, (str, os.PathLike)):
        return PathSource(target)
    if isinstance(target, (bytes, bytearray, memoryview)):
        return BytesSource(target)
    if not hasattr(target, "read") or isinstance(target, io.TextIOBase):
        raise TypeError(f"expected a path, bytes or a binary file, not {type(target).__name__}")
    seekable = getattr(target, "seekable", None)
    try:
        return SeekableSource(target) if seekable is not None and seekable() else PipeSource(target)
    except (ValueError, EOFError) as error:
        raise OSError(str(error)) from error
