"""Breaks of what a GGUF file says of its tensors, in place: their payloads stay where they are."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import NamedTuple

from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from tools.breaking import breaks as kinds
from tools.breaking.breaks import Break
from tools.breaking.folder import Checkpoint

MAGIC_AND_VERSION_3 = b"GGUF\3\0\0\0"

STRING, ARRAY = 8, 9

VALUE_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of a metadata value by its type, but for strings and arrays (GGUF specification, ggml)."""

F32, Q8_0 = 0, 8

USUAL_ALIGNMENT = 32


class Described(NamedTuple):
    """A tensor of a GGUF file: its dimensions, type, and where in the file both are."""

    name: str
    dimensions: tuple[int, ...]
    type: int
    dimensions_at: int
    type_at: int

    def length(self) -> int | None:
        """Bytes of the payload; None where rows are not whole blocks."""
        elements, size = GGML_QUANT_SIZES[GGMLQuantizationType(self.type)]
        blocks, rest = divmod(self.dimensions[0], elements)
        return None if rest else blocks * size * math.prod(self.dimensions[1:])


class Edit(NamedTuple):
    """A tensor described otherwise: the kind of break, what it is, and the bytes to put at a place."""

    kind: str
    what: str
    after: Described
    at: int
    packed: bytes


def gguf_breaks(checkpoint: Checkpoint) -> Iterator[Break]:
    """For one tensor of each type: each dimension one more and one less, and another type."""
    for file, raw in checkpoint.ggufs.items():
        if not raw.startswith(MAGIC_AND_VERSION_3):
            continue
        alignment, tensors = described(raw)
        for tensor in {one.type: one for one in tensors}.values():
            for edit in _edits(tensor):
                edited = raw[: edit.at] + edit.packed + raw[edit.at + len(edit.packed) :]
                yield Break(
                    edit.kind,
                    f"{file}: {tensor.name}: {edit.what}",
                    checkpoint._replace(ggufs={**checkpoint.ggufs, file: edited}),
                    frozenset({tensor.name}),
                    padded=_takes_as_much(tensor, edit.after, alignment),
                )


def _edits(tensor: Described) -> Iterator[Edit]:
    for axis, length in enumerate(tensor.dimensions):
        for other in (length + 1, length - 1):
            what = f"dimension {axis} from {length} to {other}"
            dimensions = (*tensor.dimensions[:axis], other, *tensor.dimensions[axis + 1 :])
            at = tensor.dimensions_at + 8 * axis
            if other:
                after = tensor._replace(dimensions=dimensions)
                yield Edit(kinds.GGUF_SHAPE, what, after, at, struct.pack("<Q", other))
    other = F32 if tensor.type != F32 else Q8_0
    after = tensor._replace(type=other)
    what = f"type {tensor.type} to {other}"
    yield Edit(kinds.GGUF_TYPE, what, after, tensor.type_at, struct.pack("<I", other))


def _takes_as_much(before: Described, after: Described, alignment: int) -> bool:
    """Whether two payloads are padded to the same length."""
    old, new = before.length(), after.length()
    return old is not None and new is not None and -(-old // alignment) == -(-new // alignment)


def described(raw: bytes) -> tuple[int, list[Described]]:
    """The alignment, in bytes, and the tensors of a little-endian GGUF file of version 3."""
    num_tensors, num_values = struct.unpack_from("<QQ", raw, 8)
    at, alignment = 24, USUAL_ALIGNMENT
    for _ in range(num_values):
        start, at = at + 8, _after_string(raw, at)
        (value_type,) = struct.unpack_from("<I", raw, at)
        if raw[start:at] == b"general.alignment":
            (alignment,) = struct.unpack_from("<I", raw, at + 4)
        at = _after_value(raw, at + 4, value_type)
    found = []
    for _ in range(num_tensors):
        found.append(_described_at(raw, at))
        at = found[-1].type_at + 12
    return alignment, found


def _described_at(raw: bytes, at: int) -> Described:
    after_name = _after_string(raw, at)
    (rank,) = struct.unpack_from("<I", raw, after_name)
    dimensions = struct.unpack_from(f"<{rank}Q", raw, after_name + 4)
    type_at = after_name + 4 + 8 * rank
    (tensor_type,) = struct.unpack_from("<I", raw, type_at)
    return Described(raw[at + 8 : after_name].decode(), dimensions, tensor_type, after_name + 4, type_at)


def _after_string(raw: bytes, at: int) -> int:
    (length,) = struct.unpack_from("<Q", raw, at)
    return at + 8 + int(length)


def _after_value(raw: bytes, at: int, value_type: int) -> int:
    if value_type == STRING:
        return _after_string(raw, at)
    if value_type != ARRAY:
        return at + VALUE_SIZES[value_type]
    item_type, count = struct.unpack_from("<IQ", raw, at)
    at += 12
    for _ in range(count):
        at = _after_value(raw, at, item_type)
    return at
