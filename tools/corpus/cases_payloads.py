"""Rules data-length, data-align, data-range and data-overlap: where the payloads are."""

from __future__ import annotations

from tools.corpus.cases import Fault, broken, sound
from tools.corpus.layout import File, Tensor


@sound("kiln-v2-payload")
def payload() -> File:
    """A payload of 16 bytes with unused bytes behind it, which may hold anything."""
    return File(Tensor("w", "u8", (16,)), slack=8)


@broken("kiln-v2-data-length", "LENGTH", payload, Fault("data-length", 0))
def data_length(file: File) -> None:
    """len_data is 15 for 16 elements of one byte."""
    file.set(0, len_data=15)


@broken("kiln-v2-data-align", "ALIGN", payload, Fault("data-align", 0))
def data_align(file: File) -> None:
    """The payload starts one byte behind a multiple of 64."""
    file.set(0, ofs_data=257)


@broken("kiln-v2-data-range", "LENGTH", payload, Fault("data-range", 0))
def data_range(file: File) -> None:
    """The payload starts at the next multiple of 64, behind the end of the file."""
    file.set(0, ofs_data=320)


@sound("kiln-v2-touching")
def touching() -> File:
    """Two payloads of 64 and 128 bytes that touch: the second starts where the first ends."""
    return File(Tensor("a", "u8", (64,)), Tensor("b", "u8", (128,)))


@broken("kiln-v2-data-overlap", "OVERLAP", touching, Fault("data-overlap", 1))
def data_overlap(file: File) -> None:
    """The second payload starts where the first does and is longer, so they share 64 bytes."""
    file.set(1, ofs_data=file.descriptors[0]["ofs_data"])
