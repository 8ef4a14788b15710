"""The files of a checkpoint given back from the Kiln file that they were imported into."""

from __future__ import annotations

import errno
import os
from collections.abc import Container, Iterator
from typing import NamedTuple

from kiln_check.atomic import Piece, staging, write_atomically
from kiln_check.checkpoints.checkpoint_rules import CHECKPOINT_RULES
from kiln_check.checkpoints.config import is_config_name
from kiln_check.checkpoints.formats.header import SourceFile, SourceTensor
from kiln_check.checkpoints.formats.registry import format_of_name, read_source
from kiln_check.checkpoints.index import is_index_name
from kiln_check.checkpoints.plan import FILE, HEAD, parts_of
from kiln_check.constants import NONE
from kiln_check.errors import KilnError
from kiln_check.reader import KilnFile, Tensor
from kiln_check.reader import open as open_kiln
from kiln_check.source import BytesSource
from kiln_check.spans import Span
from kiln_check.text import quote

CHANGED = "the Kiln file was changed after it was imported"

CONTAINERS = ("u8", "i8", "i32", "u32")
"""What conventions store packed elements and the codes of scales as."""

NOT_IN_A_NAME = "/\\:\0" if os.name == "nt" else "/\0"
"""What this system has in no file's name."""


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
        if not any(name.startswith(HEAD) for name in kiln):
            raise KilnError(f"{os.fspath(path)} was not made by kiln import: it has no tensor {HEAD}…")
        files = list(_files(kiln, os.fspath(path)))
        scales = _scales(kiln)
        for file in files:
            if file.parts[0].name.startswith(HEAD):
                _compare_with_head(file, scales, kiln)
        targets = [os.path.join(folder, file.name) for file in files]
        for target in targets:
            if os.path.lexists(target):
                raise FileExistsError(errno.EEXIST, "is there already; give another folder", target)
        with staging(os.fspath(folder)) as staged:
            for target, file in zip(targets, files, strict=True):
                _write(file, os.path.join(staged, file.name), target)
    return targets


def _write(file: _File, path: str, target: str) -> None:
    """Write a file at `path`; an error speaks of `target`, where it is to be in the end.

    Raises OSError.
    """
    try:
        write_atomically(path, b"", file.size, list(_pieces(file)))
    except OSError as error:
        if error.filename in (None, path, os.path.realpath(path)):
            raise OSError(error.errno, error.strerror or str(error), target) from error
        raise


def _files(kiln: KilnFile, path: str) -> Iterator[_File]:
    """The files in the directory's order (see `plan`).

    Raises KilnError for a name that is no file's, or that comes twice, and for a
    tensor that belongs to no file.
    """
    names: set[str] = set()
    file: _File | None = None
    for name, tensor in kiln.items():
        part = _Part(tensor, name, Span(path, tensor.offset, tensor.bytes().nbytes))
        prefix = next((prefix for prefix in (HEAD, FILE) if name.startswith(prefix)), None)
        if prefix is None:
            if file is None:
                raise KilnError(f"{quote(name)} is of none of the files; {CHANGED}")
            file.parts.append(part)
            continue
        if file is not None:
            yield file
        base = name[len(prefix) :]
        if not _is_import_name(prefix, base) or base in names:
            raise KilnError(f"{quote(name)} does not name a file that export can write")
        names.add(base)
        file = _File(base, [part])
        if prefix == FILE:
            yield file
            file = None
    if file is not None:
        yield file


def _is_import_name(prefix: str, base: str) -> bool:
    """Whether import gives a head or a companion such a name, and this system has it."""
    if any(sign in base for sign in NOT_IN_A_NAME):
        return False
    if prefix == HEAD:
        return format_of_name(base) is not None or base[:1] not in ("", ".")
    return is_config_name(base) or is_index_name(base)


def _scales(kiln: KilnFile) -> set[int]:
    """The indexes of tensors that others name as their scales."""
    return {tensor.scale.index for tensor in kiln.values() if tensor.scale is not None}


def _pieces(file: _File) -> Iterator[Piece]:
    offset = 0
    for part in file.parts:
        yield Piece(offset, part.span)
        offset += part.span.length


def _compare_with_head(file: _File, scales: set[int], names: Container[str]) -> None:
    """See that the file's own head still describes what follows it.

    `names` are those of all tensors of the Kiln file. One that the head describes and that belongs to another
    file is a copy that was left over, and was kept as bytes.

    Raises KilnError where it does not: the Kiln file was changed after the import.
    """
    described = _described(file)
    for found in described.findings:
        if found.level == "error" and CHECKPOINT_RULES[found.rule].stops_import != "never":
            raise KilnError(f"the head of {quote(file.name)} is not sound: {found.message}; {CHANGED}")
    own = {part.name for part in file.parts}
    leftover = {
        tensor.name for tensor in described.tensors if tensor.name not in own and tensor.name in names
    }
    wanted = dict(parts_of(described, leftover))
    offset = file.parts[0].span.length
    if offset != described.len_head:
        raise KilnError(
            f"the head of {quote(file.name)} has {offset} bytes, not {described.len_head}; {CHANGED}"
        )
    for part in file.parts[1:]:
        source = wanted.pop(part.name, None)
        if source is None or (source.offset, source.length) != (offset, part.span.length):
            raise KilnError(
                f"{quote(part.name)} is not where the head of {quote(file.name)} has it; {CHANGED}"
            )
        if isinstance(source, SourceTensor) and not _is_of(part.tensor, source, part.tensor.index in scales):
            tensor = f"{quote(part.name)} ({part.tensor.dtype} {list(part.tensor.shape)})"
            raise KilnError(f"{tensor} is {source.text()} in the head of {quote(file.name)}; {CHANGED}")
        offset += part.span.length
    if wanted:
        raise KilnError(f"{quote(next(iter(wanted)))} of {quote(file.name)} is gone; {CHANGED}")


def _is_of(tensor: Tensor, source: SourceTensor, is_scale: bool) -> bool:
    """Whether import makes such a tensor of the source's; their payloads have one length.

    Only bytes that hold packed elements, or the codes of scales, get another dtype,
    and only where they are linked.
    """
    dtype, *foreign = source.type
    if (tensor.dtype, tensor.shape) == (dtype, source.shape):
        return (tensor.foreign or (0, 0, 0)) == tuple(foreign)
    if dtype not in CONTAINERS:
        return False
    if is_scale:
        return tensor.shape == source.shape
    if tensor.scheme == NONE:
        return False
    rows = tensor.shape[:-1]
    is_flat = len(source.shape) == 1
    return is_flat or (source.shape[: len(rows)] == rows and len(source.shape) - len(rows) in (1, 2))


def _described(file: _File) -> SourceFile:
    """What the file's head says.

    Raises KilnError where neither its name nor its first bytes are those of a format.
    """
    try:
        return read_source(BytesSource(file.parts[0].tensor.bytes(), file.size), file.name)
    except ValueError as error:
        raise KilnError(f"{error}; {CHANGED}") from error
