"""One file written so that it appears whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

from kiln_check.spans import OpenFiles, Span, fingerprint_of

CHUNK = 1 << 18
"""Bytes copied at a time through memory; more than fits a core's cache is slower."""

PAGE = 4096
"""Bytes. Where source and target lie alike in their pages, the kernel copies whole pages or none at
all (on file systems that share them); elsewhere it moves each page in two parts, and a copy through
memory is faster."""

KERNEL_CHUNK = 1 << 26
"""Bytes that the kernel is asked to copy at a time, and after which it is told to write them out."""

MODE = 0o666
"""The mode that a new file is asked for with; the umask takes off what it must."""

OPEN_FILES = "/proc/self/fd"
"""Where Linux shows the files of this process, which linkat(2) can name."""

KERNEL_CANT = {
    errno.EXDEV,
    errno.EINVAL,
    errno.ENOSYS,
    errno.EOPNOTSUPP,
    errno.EPERM,
    errno.EBADF,
    errno.ETXTBSY,
}


class Piece(NamedTuple):
    """What goes where in a file: a buffer, an array, or a Span of another file."""

    offset: int
    data: Any


Advance = Callable[[int], object]
"""Told after each copy how many bytes it was."""


def write_atomically(
    path: str | os.PathLike[str],
    head: bytes,
    size: int,
    pieces: Sequence[Piece],
    advance: Advance = lambda _copied: None,
) -> None:
    """Write `head`, then each piece at its offset, and zeros between, `size` bytes in all.

    The bytes are on the disk before the file takes its name; a crash at any moment
    leaves the old file or the new one. `advance` hears of every piece as it is copied.

    Raises OSError when the file can't be written, does not fit on the disk, or a
    span can't be read or its file was changed.
    """
    target = os.path.realpath(path)
    _refuse_if_no_file(target, os.fspath(path))
    _refuse_if_full(target, size)
    try:
        with _replacing(target) as file, OpenFiles(_open_raw) as sources:
            if size >= KERNEL_CHUNK and hasattr(os, "posix_fallocate"):
                _reserve(file, size)
                advance = _writing_out(file, advance)
            file.write(head)
            for piece in pieces:
                file.seek(piece.offset)
                if isinstance(piece.data, Span):
                    _copy_span(sources.get(piece.data.path), piece.data, file, advance)
                else:
                    advance(_write_all(file, memoryview(piece.data).cast("B")))
            file.truncate(size)
    except OSError as error:
        if error.filename is None:
            raise OSError(error.errno, error.strerror or str(error), os.fspath(path)) from error
        raise


@contextlib.contextmanager
def staging(folder: str) -> Iterator[str]:
    """A folder inside `folder` whose files are moved up when all went well, and removed otherwise.

    `folder` is made if it is not there. No file in it is replaced.

    Raises OSError, FileExistsError for a file that is there.
    """
    is_new = not os.path.isdir(folder)
    os.makedirs(folder, exist_ok=True)
    staged = _unused_name(folder)
    try:
        _make_folder(staged, folder)
        yield staged
        _move_up(staged, folder)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        if is_new:
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        raise
    os.rmdir(staged)
    _sync_folder(folder)


def _make_folder(staged: str, folder: str) -> None:
    try:
        os.mkdir(staged)
    except OSError as error:
        raise OSError(error.errno, error.strerror, folder) from error


def _move_up(staged: str, folder: str) -> None:
    """Move all files or, where one can't be moved, none."""
    moved: list[str] = []
    try:
        for name in sorted(os.listdir(staged)):
            target = os.path.join(folder, name)
            if os.path.lexists(target):
                raise FileExistsError(errno.EEXIST, "is there already; give another folder", target)
            os.rename(os.path.join(staged, name), target)
            moved.append(target)
    except BaseException:
        for target in moved:
            with contextlib.suppress(OSError):
                os.unlink(target)
        raise


def _open_raw(path: str) -> BinaryIO:
    return open(path, "rb", buffering=0)


def _refuse_if_no_file(target: str, path: str) -> None:
    if path.endswith(os.sep) or os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if os.path.exists(target) and not os.path.isfile(target):
        raise OSError(errno.EINVAL, "is a device or a pipe, not a file", path)


def _refuse_if_full(target: str, size: int) -> None:
    status = os.statvfs(os.path.dirname(target)) if hasattr(os, "statvfs") else None
    if status is not None and status.f_bavail * status.f_frsize < size:
        free = status.f_bavail * status.f_frsize
        raise OSError(errno.ENOSPC, f"the file needs {size} bytes, the disk has {free}", target)


def _reserve(file: BinaryIO, size: int) -> None:
    """Take the room on the disk in one piece before it is filled, where there is such a call."""
    try:
        os.posix_fallocate(file.fileno(), 0, size)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS):
            raise


def _writing_out(file: BinaryIO, advance: Advance) -> Advance:
    """Let the disk write what is copied while more is copied; the sync at the end then has little left."""
    begun = 0

    def after_copy(copied: int) -> None:
        nonlocal begun
        end = file.tell()
        if end - begun >= KERNEL_CHUNK:
            with contextlib.suppress(OSError):  # it is advice
                os.posix_fadvise(file.fileno(), begun, end - begun, os.POSIX_FADV_DONTNEED)
            begun = end
        advance(copied)

    return after_copy


@contextlib.contextmanager
def _replacing(target: str) -> Iterator[BinaryIO]:
    """A new file beside `target` that takes its place when all went well."""
    folder = os.path.dirname(target)
    fd = _open_unnamed(folder)
    temporary = None
    if fd is None:
        temporary = _unused_name(folder)
        fd = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0), MODE)
    try:
        with open(fd, "wb", buffering=0) as file:
            _keep_mode(file.fileno(), target)
            yield file
            os.fsync(file.fileno())
            if temporary is None:
                temporary = _give_name(file.fileno(), folder)
        os.replace(temporary, target)
    except BaseException:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise
    _sync_folder(folder)


def _open_unnamed(folder: str) -> int | None:
    """A file without a name, of which a crash leaves nothing; None where there are none."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir(OPEN_FILES):
        return None
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR, MODE)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT):
            raise
        return None


def _give_name(fd: int, folder: str) -> str:
    """Give an unnamed file a name that no other has; a link can't replace, a rename can."""
    open_files = os.open(OPEN_FILES, os.O_RDONLY | os.O_DIRECTORY)
    try:
        name = _unused_name(folder)
        os.link(str(fd), name, src_dir_fd=open_files, follow_symlinks=True)
        return name
    finally:
        os.close(open_files)


def _unused_name(folder: str) -> str:
    return os.path.join(folder, f".kiln-{os.urandom(8).hex()}.part")


def _keep_mode(fd: int, target: str) -> None:
    """The mode of the file that is replaced; a new one has what the umask leaves."""
    if hasattr(os, "fchmod"):
        with contextlib.suppress(FileNotFoundError):
            os.fchmod(fd, os.stat(target).st_mode & 0o777)


def _sync_folder(folder: str) -> None:
    """Make the new name durable, where folders can be synced."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(fd)


def _write_all(file: BinaryIO, data: memoryview) -> int:
    left = data
    while left:
        left = left[file.write(left) :]
    return len(data)


def _copy_span(source: BinaryIO, span: Span, file: BinaryIO, advance: Advance) -> None:
    """Copy a span to the file's position, by the kernel where that is fastest.

    Raises OSError when the source ends before the span does, or is not as its fingerprint says.
    """
    _must_be_unchanged(source, span)
    offset, left = span.offset, span.length
    by_kernel = hasattr(os, "copy_file_range") and (offset - file.tell()) % PAGE == 0
    buffer = memoryview(bytearray(0 if by_kernel else min(left, CHUNK)))
    while left:
        if by_kernel:
            try:
                copied = os.copy_file_range(
                    source.fileno(), file.fileno(), min(left, KERNEL_CHUNK), offset_src=offset
                )
            except OSError as error:
                if error.errno not in KERNEL_CANT:
                    raise
                by_kernel = False
                buffer = memoryview(bytearray(min(left, CHUNK)))
                continue
        else:
            source.seek(offset)
            read = source.readinto(buffer[:left])  # type: ignore[attr-defined]
            copied = _write_all(file, buffer[:read])
        if copied == 0:
            raise OSError(errno.EIO, f"ends {left} bytes before its tensor does", span.path)
        advance(copied)
        offset, left = offset + copied, left - copied
    _must_be_unchanged(source, span)


def _must_be_unchanged(source: BinaryIO, span: Span) -> None:
    if span.fingerprint is not None and fingerprint_of(source.fileno()) != span.fingerprint:
        raise OSError(errno.EBUSY, "was changed while it was read; nothing was written", span.path)
