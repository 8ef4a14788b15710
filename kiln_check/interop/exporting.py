"""The files of a checkpoint given back from the Kiln file that they were imported into."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from typing import NamedTuple

from kiln_check.errors import KilnError
from kiln_check.interop.checkpoint import reader_of
from kiln_check.interop.described import SourceFile
from kiln_check.interop.planning import FILE, HEAD, PREFIX
from kiln_check.output import Piece, Span, write_atomically
from kiln_check.rules.view import quote
from kiln_check.source import BytesSource
from kiln_check.tensors import KilnFile, Tensor
from kiln_check.tensors import open as open_kiln


class _Part(NamedTuple):
    """A tensor's payload in the Kiln file."""

    tensor: Tensor
    name: str
    span: Span


class _File(NamedTuple):
    """A file to give back: its name, and its parts from the first byte to the last."""

    name: str
    parts: list[_Part]

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(part.span.length for part in self.parts)


def export_checkpoint(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> list[str]:
    """Give back the files that were imported into a Kiln file, byte for byte.

    Args:
        path: the Kiln file.
        folder: where to put the files; it is made if it is not there.

    Returns:
        The paths of the files.

    Raises:
        KilnError: the Kiln file is not sound, was not made by import, or was changed
            since.
        OSError: a file can't be read or written, or is there already.

    """
    with open_kiln(path) as kiln:
        files = list(_files(kiln, os.fspath(path)))
        if not files:
            raise KilnError(f"{os.fspath(path)} was not made by kiln import: it has no tensor {PREFIX}…")
        for file in files:
            _compare_with_head(file)
        os.makedirs(folder, exist_ok=True)
        targets = [os.path.join(folder, file.name) for file in files]
        for target in targets:
            if os.path.lexists(target):
                raise FileExistsError(errno.EEXIST, "is there already; give another folder", target)
        for target, file in zip(targets, files, strict=True):
            write_atomically(target, b"", file.size, list(_pieces(file)))
    return targets


def _files(kiln: KilnFile, path: str) -> Iterator[_File]:
    """The files in the directory's order (see `planning`).

    Raises KilnError for a name that is no file's, or that comes twice.
    """
    names: set[str] = set()
    file: _File | None = None
    for name, tensor in kiln.items():
        part = _Part(tensor, name, Span(path, tensor.offset, tensor.bytes().nbytes))
        prefix = next((prefix for prefix in (HEAD, FILE) if name.startswith(prefix)), None)
        if prefix is None:
            if file is not None:
                file.parts.append(part)
            continue
        if file is not None:
            yield file
        base = name[len(prefix) :]
        if base in ("", ".", "..") or any(sign in base for sign in "/\\\0:") or base in names:
            raise KilnError(f"{quote(name)} does not name a file that can be written")
        names.add(base)
        file = _File(base, [part])
        if prefix == FILE:
            yield file
            file = None
    if file is not None:
        yield file


def _pieces(file: _File) -> Iterator[Piece]:
    offset = 0
    for part in file.parts:
        yield Piece(offset, part.span)
        offset += part.span.length


def _compare_with_head(file: _File) -> None:
    """See that the file's own head still describes the tensors that follow it.

    Raises KilnError where it does not: the Kiln file was changed after the import.
    """
    if file.parts[0].name.startswith(FILE):
        return
    described = _described(file)
    offset = 0
    found = []
    for part in file.parts:
        if not part.name.startswith(PREFIX):
            found.append((part.name, offset, part.span.length))
        offset += part.span.length
    wanted = [(tensor.name, tensor.offset, tensor.length) for tensor in described.tensors]
    if sorted(found) == sorted(wanted) and not described.lost:
        return
    odd = sorted(set(found).symmetric_difference(wanted)) or [(file.name, 0, 0)]
    raise KilnError(
        f"{quote(odd[0][0])} is not where the head of {file.name} has it; "
        "the Kiln file was changed after it was imported"
    )


def _described(file: _File) -> SourceFile:
    """What the file's head says.

    Raises KilnError where the name has no ending of a checkpoint's.
    """
    try:
        reader = reader_of(file.name)
    except ValueError as error:
        raise KilnError(str(error)) from error
    return reader(BytesSource(file.parts[0].tensor.bytes(), file.size), file.name)
