"""The formats that are read: by which ending of a name, by which first bytes, and by what."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kiln_check.checkpoints.checkpoint_rules import finding
from kiln_check.checkpoints.formats.files import open_file
from kiln_check.checkpoints.formats.gguf_cursor import MAGIC as GGUF_MAGIC
from kiln_check.checkpoints.formats.header import SourceFile
from kiln_check.checkpoints.formats.not_weights import LEN_START, looks_like_safetensors, what_instead
from kiln_check.source import Source
from kiln_check.text import quote


def _read_safetensors(source: Source, path: str) -> SourceFile:
    from kiln_check.checkpoints.formats.safetensors import read_safetensors

    return read_safetensors(source, path)


def _read_gguf(source: Source, path: str) -> SourceFile:
    from kiln_check.checkpoints.formats.gguf import read_gguf

    return read_gguf(source, path)


class Format(NamedTuple):
    """A format of checkpoint files.

    Attributes:
        name: what people call it.
        suffix: how the names of its files end.
        magic: the first bytes of its files; none where they begin with a length.
        read: reads the header of one.

    """

    name: str
    suffix: str
    magic: bytes
    read: Callable[[Source, str], SourceFile]


SAFETENSORS = Format("safetensors", ".safetensors", b"", _read_safetensors)
GGUF = Format("GGUF", ".gguf", GGUF_MAGIC, _read_gguf)
FORMATS: Sequence[Format] = (SAFETENSORS, GGUF)

SUFFIXES = tuple(one.suffix for one in FORMATS)


def format_of_name(path: str) -> Format | None:
    """The format that a file's name says; None where the name has none of the endings."""
    return next((one for one in FORMATS if path.endswith(one.suffix)), None)


def format_of_bytes(start: bytes) -> Format | None:
    """The format whose magic a file begins with; None for any other."""
    return next((one for one in FORMATS if one.magic and start.startswith(one.magic)), None)


def begins_as_checkpoint(path: str) -> bool:
    """Whether a regular file begins with the magic of a format; False where it can't be read."""
    try:
        if not os.path.isfile(path):
            return False
        with open(path, "rb") as file:
            return format_of_bytes(file.read(LEN_START)) is not None
    except (OSError, ValueError):
        return False


def read_file(path: str) -> SourceFile:
    """Read the header of one file.

    Raises OSError when it can't be read, ValueError where neither its name nor its
    first bytes are those of a format.
    """
    source = open_file(path)
    try:
        return read_source(source, path)
    finally:
        source.close()


def read_source(source: Source, path: str) -> SourceFile:
    """Read the header of a file by its source; `path` is what it is called.

    A name without one of the endings leaves the format to the magic: caches name files
    by their digest. What is no weights at all is one finding.

    Raises OSError when the source can't be read, ValueError where neither the name nor
    the first bytes are those of a format.
    """
    size = source.size()
    start = source.read(0, LEN_START)
    named = format_of_name(path)
    fault = _fault(start, size, named)
    if fault is not None:
        found = finding("not-weights", fault, path, 0, len(start), field="header")
        return SourceFile(path, size, 0, (), (), (), (found,))
    chosen = named or format_of_bytes(start)
    if chosen is None:
        raise ValueError(f"{quote(path)} ends with none of {', '.join(SUFFIXES)}")
    return chosen.read(source, path)


def _fault(start: bytes, size: int, named: Format | None) -> str | None:
    """What is wrong with a file of another content than its name says, as far as its first bytes tell."""
    begun = format_of_bytes(start)
    if begun is None and looks_like_safetensors(start, size):
        begun = SAFETENSORS
    if begun is None:
        content = what_instead(start, size)
        return None if content is None else f"the file is {content.what}; {content.remedy}"
    if named is None or named is begun:
        return None
    return f"the file is {begun.name}, named {named.suffix}; give it a name that ends with {begun.suffix}"
