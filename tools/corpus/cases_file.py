"""Rules magic, version, file-length and reserved: the header and the file's size."""

from __future__ import annotations

from tools.corpus.cases import Fault, broken, sound
from tools.corpus.layout import File, Tensor


@sound("kiln-v2-plain")
def plain() -> File:
    """One tensor, four bytes, nothing quantized: the smallest file that has every part."""
    return File(Tensor("weight", "u8", (4,)))


@broken("kiln-v2-magic", "MAGIC", plain, Fault("magic"))
def magic(file: File) -> None:
    """The magic's first byte lost its high bit, as in a transfer of seven-bit text."""
    file.patch(0, b"\x09")


@broken("kiln-v2-version", "VERSION", plain, Fault("version"))
def version(file: File) -> None:
    """Version 3, one more than this layout; nothing behind the version is read."""
    file.head(version=3)


@broken("kiln-v2-file-length", "LENGTH", plain, Fault("file-length"))
def file_length(file: File) -> None:
    """len_file says one byte more than the file has; every payload is inside all the same."""
    file.head(len_file=file.size + 1)


@broken("kiln-v2-reserved", "TYPE", plain, Fault("reserved", field="reserved1"))
def reserved(file: File) -> None:
    """The header's first reserved field is 1."""
    file.head(reserved1=1)
