"""Rules dtype, rank, shape-tail and foreign-block: what the elements are and how many."""

from __future__ import annotations

from tools.corpus.cases import Fault, broken, sound
from tools.corpus.cases_file import plain
from tools.corpus.layout import File, Tensor


@broken("kiln-v2-dtype", "TYPE", plain, Fault("dtype", 0))
def dtype(file: File) -> None:
    """The code 0x0308 is of a width that exists and in no row of the table."""
    file.set(0, dtype=0x0308)


@sound("kiln-v2-rank-8")
def rank_8() -> File:
    """Eight dimensions, as many as a descriptor has room for."""
    return File(Tensor("w", "u8", (1, 2, 1, 1, 3, 1, 1, 1)))


@broken("kiln-v2-rank", "TYPE", rank_8, Fault("rank", 0))
def rank(file: File) -> None:
    """Nine dimensions, one more than there is room for; nothing that needs the shape is judged."""
    file.set(0, rank=9)


@broken("kiln-v2-shape-tail", "TYPE", plain, Fault("shape-tail", 0, entry=1))
def shape_tail(file: File) -> None:
    """A tensor of one dimension whose second entry of shape is 1, not 0."""
    file.set(0, shape=(4, 1))


@sound("kiln-v2-foreign")
def foreign() -> File:
    """Two blocks of a foreign layout, 32 elements in 18 bytes each, kept whole."""
    return File(Tensor("w", "foreign", (2, 32), block=(32, 18), tag=2))


@broken("kiln-v2-foreign-block", "TYPE", foreign, Fault("foreign-block", 0))
def foreign_block(file: File) -> None:
    """64 elements are no whole number of blocks of 33."""
    file.set(0, block_elements=33)
