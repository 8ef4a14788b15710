"""The types of ggml tensors: how each is stored, and what it is in Kiln."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from math import prod

from kiln_check.checkpoints.formats.header import SourceTensor, Type
from kiln_check.constants import LARGEST_BLOCK

BIG_ENDIAN = 1 << 31
"""Set in the foreign_tag of a tensor whose numbers are big-endian, which Kiln's dtypes are not."""

MOST_BYTES = 16
"""Bytes of an element of a type that is not known, at most: twice those of the widest type."""


def _blocks(tag: int, elements: int, size: int) -> Type:
    return Type("foreign", tag, elements, size)


TYPES = {
    0: ("F32", Type("f32")),
    1: ("F16", Type("f16")),
    2: ("Q4_0", _blocks(2, 32, 18)),
    3: ("Q4_1", _blocks(3, 32, 20)),
    6: ("Q5_0", _blocks(6, 32, 22)),
    7: ("Q5_1", _blocks(7, 32, 24)),
    8: ("Q8_0", _blocks(8, 32, 34)),
    9: ("Q8_1", _blocks(9, 32, 36)),  # as ggml has it; the gguf package says 40, but no file stores it
    10: ("Q2_K", _blocks(10, 256, 84)),
    11: ("Q3_K", _blocks(11, 256, 110)),
    12: ("Q4_K", _blocks(12, 256, 144)),
    13: ("Q5_K", _blocks(13, 256, 176)),
    14: ("Q6_K", _blocks(14, 256, 210)),
    15: ("Q8_K", _blocks(15, 256, 292)),
    16: ("IQ2_XXS", _blocks(16, 256, 66)),
    17: ("IQ2_XS", _blocks(17, 256, 74)),
    18: ("IQ3_XXS", _blocks(18, 256, 98)),
    19: ("IQ1_S", _blocks(19, 256, 50)),
    20: ("IQ4_NL", _blocks(20, 32, 18)),
    21: ("IQ3_S", _blocks(21, 256, 110)),
    22: ("IQ2_S", _blocks(22, 256, 82)),
    23: ("IQ4_XS", _blocks(23, 256, 136)),
    24: ("I8", Type("i8")),
    25: ("I16", Type("i16")),
    26: ("I32", Type("i32")),
    27: ("I64", Type("i64")),
    28: ("F64", Type("f64")),
    29: ("IQ1_M", _blocks(29, 256, 56)),
    30: ("BF16", Type("bf16")),
    34: ("TQ1_0", _blocks(34, 256, 54)),
    35: ("TQ2_0", _blocks(35, 256, 66)),
    39: ("MXFP4", _blocks(39, 32, 17)),
    40: ("NVFP4", _blocks(40, 64, 36)),
    41: ("Q1_0", _blocks(41, 128, 18)),
}
"""What each is called, and what it is in Kiln, by its code. A test holds this against the gguf package."""


def type_of(code: int, *, big_endian: bool) -> tuple[str, Type]:
    """What a type is called, and what it is in Kiln; of one that is not known, the blocks have no size."""
    source_dtype, type_ = TYPES.get(code, (f"ggml type {code}", Type("foreign", code)))
    if not big_endian or type_.bits == 8:
        return source_dtype, type_
    if type_.dtype == "foreign":
        return source_dtype, type_._replace(foreign_tag=BIG_ENDIAN | code)
    return source_dtype, Type("foreign", BIG_ENDIAN | code, 1, type_.bits // 8)


def is_unknown(type_: Type) -> bool:
    """Whether the size of blocks is not known."""
    return type_.dtype == "foreign" and not type_.block_bytes


def is_known(type_: Type) -> bool:
    """Whether ggml has a foreign tensor's type, in whatever order of bytes."""
    return type_.foreign_tag & ~BIG_ENDIAN in TYPES


def about(type_: Type) -> str:
    """Why a tensor is foreign, in words that follow its type's name."""
    if type_.foreign_tag & BIG_ENDIAN:
        return "of a big-endian file, which keeps its bytes"
    if type_.foreign_tag in TYPES:
        return "whose blocks hold their own scales"
    return "which is not known and keeps its bytes"


def fills_blocks(shape: tuple[int, ...], type_: Type) -> bool:
    """Whether each row holds whole blocks."""
    if type_.block_elements <= 1:
        return True
    return bool(shape) and shape[-1] % type_.block_elements == 0


def length_of(shape: tuple[int, ...], type_: Type) -> int:
    """Size of a payload in bytes; exact. Of a type that is not known, 0."""
    count = prod(shape)
    if type_.dtype == "foreign":
        return count // type_.block_elements * type_.block_bytes if type_.block_elements else 0
    return count * type_.bits // 8


def bound(tensors: Sequence[SourceTensor], size: int) -> list[SourceTensor]:
    """Give each tensor of a type that is not known the bytes up to the next payload, or to the file's end.

    All rows of a tensor have one length, so a row is a block of Kiln's. What is left
    over is padding, or belongs to no tensor.

    Args:
        tensors: of one file.
        size: of the file in bytes.

    """
    starts = sorted({size, *(tensor.offset for tensor in tensors)})
    return [_bound(tensor, starts) if is_unknown(tensor.type) else tensor for tensor in tensors]


def _bound(tensor: SourceTensor, starts: Sequence[int]) -> SourceTensor:
    row = tensor.shape[-1] if tensor.shape else 1
    rows = prod(tensor.shape[:-1])
    if not row * rows:
        return tensor._replace(type=tensor.type._replace(block_elements=1, block_bytes=1))
    following = bisect_right(starts, tensor.offset)
    room = starts[following] - tensor.offset if following < len(starts) else 0
    row_bytes = max(1, min(room // rows, row * MOST_BYTES, LARGEST_BLOCK))
    type_ = tensor.type._replace(block_elements=row, block_bytes=row_bytes)
    return tensor._replace(type=type_, length=rows * row_bytes)
