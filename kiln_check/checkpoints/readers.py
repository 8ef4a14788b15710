"""The one table of file formats: how a file's name ends, and what reads its header."""

from __future__ import annotations

from collections.abc import Callable

from kiln_check.checkpoints.formats.files import open_file
from kiln_check.checkpoints.formats.header import SourceFile
from kiln_check.checkpoints.formats.safetensors import read_safetensors
from kiln_check.source import Source
from kiln_check.text import quote

Reader = Callable[[Source, str], SourceFile]


def _read_gguf(source: Source, path: str) -> SourceFile:
    from kiln_check.checkpoints.formats.gguf import read_gguf

    return read_gguf(source, path)


READERS: dict[str, Reader] = {".safetensors": read_safetensors, ".gguf": _read_gguf}
"""By the end of a file's name."""


def reader_of(path: str) -> Reader:
    """What reads the header of a file of this name.

    Raises ValueError where the name has none of the endings.
    """
    for suffix, reader in READERS.items():
        if path.endswith(suffix):
            return reader
    raise ValueError(f"{quote(path)} ends with none of {', '.join(READERS)}")


def read_file(path: str) -> SourceFile:
    """Read the header of one file.

    Raises OSError when it can't be read, ValueError where its name has none of the
    endings.
    """
    reader = reader_of(path)
    source = open_file(path)
    try:
        return reader(source, path)
    finally:
        source.close()
