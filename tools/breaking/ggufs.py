"""Breaks of what a GGUF file says of its tensors, in place: their payloads stay where they are."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from tools.breaking import breaks as kinds
from tools.breaking.breaks import Break
from tools.breaking.folder import Checkpoint

MAGIC_AND_VERSION_3 = b"GGUF\3\0\0\0"

STRING, ARRAY = 8, 9

VALUE_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of a metadata value by its type, but for strings and arrays (GGUF specification, ggml)."""

F32, Q8_0 = 0, 8


class Described(NamedTuple):
    """A tensor of a GGUF file: its dimensions, type, and where in the file both are."""

    name: str
    dimensions: tuple[int, ...]
    type: int
    dimensions_at: int
    type_at: int


def gguf_breaks(checkpoint: Checkpoint) -> Iterator[Break]:
    """For one tensor of each type: each dimension one more and one less, and another type."""
    for file, raw in checkpoint.ggufs.items():
        if not raw.startswith(MAGIC_AND_VERSION_3):
            continue
        for tensor in {one.type: one for one in described(raw)}.values():
            for kind, what, at, packed in _edits(tensor):
                edited = raw[:at] + packed + raw[at + len(packed) :]
                broken = checkpoint._replace(ggufs={**checkpoint.ggufs, file: edited})
                yield Break(kind, f"{file}: {tensor.name}: {what}", broken, frozenset({tensor.name}))


def _edits(tensor: Described) -> Iterator[tuple[str, str, int, bytes]]:
    """The kind of an edit, what it is, the place in the file and the bytes to put there."""
    for axis, length in enumerate(tensor.dimensions):
        for other in (length + 1, length - 1):
            what = f"dimension {axis} from {length} to {other}"
            if other:
                yield kinds.GGUF_SHAPE, what, tensor.dimensions_at + 8 * axis, struct.pack("<Q", other)
    other = F32 if tensor.type != F32 else Q8_0
    yield kinds.GGUF_TYPE, f"type {tensor.type} to {other}", tensor.type_at, struct.pack("<I", other)


def described(raw: bytes) -> list[Described]:
    """The tensors of a little-endian GGUF file of version 3."""
    num_tensors, num_values = struct.unpack_from("<QQ", raw, 8)
    at = 24
    for _ in range(num_values):
        at = _after_string(raw, at)
        (value_type,) = struct.unpack_from("<I", raw, at)
        at = _after_value(raw, at + 4, value_type)
    found = []
    for _ in range(num_tensors):
        after_name = _after_string(raw, at)
        (rank,) = struct.unpack_from("<I", raw, after_name)
        dimensions = struct.unpack_from(f"<{rank}Q", raw, after_name + 4)
        type_at = after_name + 4 + 8 * rank
        (tensor_type,) = struct.unpack_from("<I", raw, type_at)
        name = raw[at + 8 : after_name].decode()
        found.append(Described(name, dimensions, tensor_type, after_name + 4, type_at))
        at = type_at + 12
    return found


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
