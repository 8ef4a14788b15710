"""Rules dtype, rank, shape-tail and foreign-block: what the elements are and how many."""

from __future__ import annotations

from tools.corpus.cases import Fault, broken, sound
from tools.corpus.cases_file import plain
from tools.corpus.layout import DTYPE_CODES, File, Tensor

WRAPS_TO_1 = (3, 0xAAAAAAAAAAAAAAAB)
"""A shape of 2^65 + 1 elements, which modulo 2^64 is 1."""

# dtype

for name in DTYPE_CODES:
    if name == "foreign":
        continue

    @sound(f"kiln-v2-dtype-{name}", name=name)
    def dtype_sound(name: str) -> File:
        """Three elements of {name}."""
        return File(Tensor("w", name, (3,), payload=b"\x01\0\x01" if name == "bool" else None))


@broken("kiln-v2-dtype", "TYPE", plain, Fault("dtype", 0))
def dtype(file: File) -> None:
    """The code 0x0308 is of a width that exists and in no row of the table."""
    file.set(0, dtype=0x0308)


UNKNOWN = {
    "0000": "no code at all",
    "0008": "a width without the byte that says which format",
    "0801": "u8 with its bytes swapped",
    "0f08": "one more than the highest byte of any format but foreign",
    "ff08": "foreign's high byte with a width",
    "ffff": "all bits set",
}
"""Codes that are in no row of the dtype table, and what makes each worth a case."""

for code, what in UNKNOWN.items():

    @broken(f"kiln-v2-dtype-unknown-{code}", "TYPE", plain, Fault("dtype", 0), code=code, what=what)
    def dtype_unknown(file: File, code: str, what: str) -> None:
        """The code 0x{code} names no dtype: {what}."""
        file.set(0, dtype=int(code, 16))


@broken("kiln-v2-dtype-unjudged", "TYPE", plain, Fault("dtype", 0))
def dtype_unjudged(file: File) -> None:
    """Without a dtype nobody knows what the block fields and the length should be: one finding."""
    file.set(0, dtype=0x0308, block_elements=32, len_data=3)


# rank


@sound("kiln-v2-rank-0")
def rank_0() -> File:
    """No dimensions: a scalar, one element."""
    return File(Tensor("w", "f32"))


@sound("kiln-v2-rank-8")
def rank_8() -> File:
    """Eight dimensions, as many as a descriptor has room for."""
    return File(Tensor("w", "u8", (1, 2, 1, 1, 3, 1, 1, 1)))


@broken("kiln-v2-rank", "TYPE", rank_8, Fault("rank", 0))
def rank(file: File) -> None:
    """Nine dimensions, one more than there is room for; nothing that needs the shape is judged."""
    file.set(0, rank=9)


@broken("kiln-v2-rank-most", "TYPE", rank_8, Fault("rank", 0))
def rank_most(file: File) -> None:
    """65535 dimensions; a reader that walks them leaves the descriptor."""
    file.set(0, rank=65535)


@broken("kiln-v2-rank-swapped", "TYPE", plain, Fault("rank", 0))
def rank_swapped(file: File) -> None:
    """256 dimensions: the number 1 written big-endian."""
    file.set(0, rank=256)


@broken("kiln-v2-rank-unjudged", "TYPE", plain, Fault("rank", 0))
def rank_unjudged(file: File) -> None:
    """With rank 9 there is no tail, no count and no due length, so that len_data = 3 is no finding."""
    file.set(0, rank=9, shape=(4, 1), len_data=3)


# shape


for part, shape in {"0": (0,), "0-inside": (2, 0, 3), "0-eight": (0,) * 8}.items():

    @sound(f"kiln-v2-shape-{part}", shape=shape)
    def shape_zero(shape: tuple[int, ...]) -> File:
        """The shape {shape} has no elements, and the payload no bytes."""
        return File(Tensor("w", "f16", shape))


@sound("kiln-v2-shape-0-large")
def shape_zero_large() -> File:
    """A dimension of 0 between two of 2^63: the product is 0, whatever overflows on the way."""
    return File(Tensor("w", "u8", (2**63, 0, 2**63)))


@sound("kiln-v2-shape-large-0")
def shape_large_zero() -> File:
    """Dimensions whose product passes 2^64 before the last one, 0, makes it 0."""
    return File(Tensor("w", "u8", (2**63, 2**63, 0)))


@broken("kiln-v2-shape-tail", "TYPE", plain, Fault("shape-tail", 0, entry=1))
def shape_tail(file: File) -> None:
    """A tensor of one dimension whose second entry of shape is 1, not 0."""
    file.set(0, shape=(4, 1))


@broken("kiln-v2-shape-tail-last", "TYPE", plain, Fault("shape-tail", 0, entry=7))
def shape_tail_last(file: File) -> None:
    """The highest bit of the last entry of shape is set, far behind the rank."""
    file.set(0, shape=(4, 0, 0, 0, 0, 0, 0, 2**63))


@broken("kiln-v2-shape-tail-several", "TYPE", plain, Fault("shape-tail", 0, entry=3))
def shape_tail_several(file: File) -> None:
    """Entries 3 and 5 are not 0 behind rank 1: one finding, on the first of them."""
    file.set(0, shape=(4, 0, 0, 2, 0, 2))


@broken("kiln-v2-shape-tail-scalar", "TYPE", rank_0, Fault("shape-tail", 0, entry=0))
def shape_tail_scalar(file: File) -> None:
    """A scalar whose first entry of shape is 1: its count would be the same, its bytes are not."""
    file.set(0, shape=(1,))


@broken("kiln-v2-shape-tail-7", "TYPE", rank_8, Fault("shape-tail", 0, entry=7))
def shape_tail_7(file: File) -> None:
    """Rank 7 with eight entries: the last one, 1, is behind the rank."""
    file.set(0, rank=7)


@broken("kiln-v2-shape-tail-unjudged", "TYPE", plain, Fault("shape-tail", 0, entry=1))
def shape_tail_unjudged(file: File) -> None:
    """Where shape contradicts rank, neither block fields nor length are judged."""
    file.set(0, shape=(4, 2), block_bytes=1, len_data=3)


# foreign-block


@sound("kiln-v2-foreign")
def foreign() -> File:
    """Two blocks of a foreign layout, 32 elements in 18 bytes each, kept whole."""
    return File(Tensor("w", "foreign", (2, 32), block=(32, 18), tag=2))


@sound("kiln-v2-foreign-tag")
def foreign_tag() -> File:
    """The tag is the writer's own: 0xFFFFFFFF is as good as any."""
    return File(Tensor("w", "foreign", (2, 32), block=(32, 18), tag=0xFFFFFFFF))


@sound("kiln-v2-foreign-across")
def foreign_across() -> File:
    """Blocks of 32 elements in rows of 16: only the whole count must be a multiple."""
    return File(Tensor("w", "foreign", (4, 16), block=(32, 18)))


@sound("kiln-v2-foreign-scalar")
def foreign_scalar() -> File:
    """A foreign tensor of rank 0: one element, one block of one."""
    return File(Tensor("w", "foreign", block=(1, 5)))


@sound("kiln-v2-foreign-0")
def foreign_zero() -> File:
    """A foreign tensor of no elements: no blocks, no bytes."""
    return File(Tensor("w", "foreign", (0, 7), block=(32, 18)))


@sound("kiln-v2-foreign-large")
def foreign_large() -> File:
    """2^32 elements in two blocks of 2^31: 16 bytes; a count modulo 2^32 would be 0."""
    return File(Tensor("w", "foreign", (2**16, 2**16), block=(2**31, 8)))


@broken("kiln-v2-foreign-block", "TYPE", foreign, Fault("foreign-block", 0))
def foreign_block(file: File) -> None:
    """64 elements are no whole number of blocks of 33."""
    file.set(0, block_elements=33)


@broken("kiln-v2-foreign-block-over", "TYPE", foreign, Fault("foreign-block", 0))
def foreign_block_over(file: File) -> None:
    """One block of 65 elements for a tensor of 64."""
    file.set(0, block_elements=65)


@broken("kiln-v2-foreign-block-less", "TYPE", foreign, Fault("foreign-block", 0))
def foreign_block_less(file: File) -> None:
    """Blocks of 32 for 2 · 31 elements: one less a row than the blocks hold."""
    file.set(0, shape=(2, 31))


@broken("kiln-v2-foreign-elements-0", "TYPE", foreign, Fault("foreign-block", 0))
def foreign_elements_zero(file: File) -> None:
    """Blocks of no elements: nothing to divide by."""
    file.set(0, block_elements=0)


@broken("kiln-v2-foreign-bytes-0", "TYPE", foreign, Fault("foreign-block", 0))
def foreign_bytes_zero(file: File) -> None:
    """Blocks of no bytes; the finding is on block_elements all the same."""
    file.set(0, block_bytes=0)


@broken("kiln-v2-foreign-0-elements-0", "TYPE", foreign_zero, Fault("foreign-block", 0))
def foreign_zero_elements_zero(file: File) -> None:
    """Blocks of no elements are wrong in a tensor of no elements too."""
    file.set(0, block_elements=0)


@broken("kiln-v2-foreign-unjudged", "TYPE", foreign, Fault("foreign-block", 0))
def foreign_unjudged(file: File) -> None:
    """Where the blocks are wrong the length is not judged."""
    file.set(0, block_elements=33, len_data=35)


@sound("kiln-v2-foreign-0-large")
def foreign_zero_large() -> File:
    """2^32 · 0 foreign elements in blocks of three."""
    return File(Tensor("w", "foreign", (2**32, 0), block=(3, 1)))


@broken("kiln-v2-foreign-block-wrap", "TYPE", foreign_zero_large, Fault("foreign-block", 0))
def foreign_block_wrap(file: File) -> None:
    """2^64 elements are no multiple of 3; modulo 2^64 they are 0, which is one."""
    file.set(0, shape=(2**32, 2**32))


@sound("kiln-v2-foreign-one")
def foreign_one() -> File:
    """Three foreign elements in one block of three, one byte."""
    return File(Tensor("w", "foreign", (3, 1), block=(3, 1)))


@broken("kiln-v2-foreign-block-exact", "LENGTH", foreign_one, Fault("data-length", 0))
def foreign_block_exact(file: File) -> None:
    """2^65 + 1 elements are a multiple of 3, though 1, which is that modulo 2^64, is none."""
    file.set(0, shape=WRAPS_TO_1)


for field in ("block_elements", "block_bytes", "foreign_tag"):

    @broken(f"kiln-v2-plain-{field.replace('_', '-')}", "TYPE", plain, Fault("foreign-block", 0), field=field)
    def plain_block(file: File, field: str) -> None:
        """{field} is 1 in a tensor of u8; whichever field it is, the finding is on block_elements."""
        file.set(0, **{field: 1})
