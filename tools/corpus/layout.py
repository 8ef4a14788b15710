"""Lays out a Kiln v2 file, sound or not, from the generated record table.

Every offset and size comes from generated/python/kiln_v2_records.py.
"""

from __future__ import annotations

import math
import runpy
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent

RECORDS: dict[str, Any] = runpy.run_path(str(ROOT / "generated" / "python" / "kiln_v2_records.py"))
NO_AXIS: int = RECORDS["NO_AXIS"]
NO_INDEX: int = RECORDS["NO_INDEX"]
MAX_RANK: int = RECORDS["MAX_RANK"]
LEN_HEADER: int = RECORDS["HEADER"]["itemsize"]
LEN_DESCRIPTOR: int = RECORDS["DESCRIPTOR"]["itemsize"]
DTYPE_CODES: dict[str, int] = {name: code for code, name in RECORDS["DTYPES"].items()}

ALIGNMENT = 64
"""What ofs_data is a multiple of (layout page, rule data-align)."""

FILL = b"\xaa"
"""The bytes that belong to no tensor: they may hold anything."""


@dataclass(frozen=True)
class Tensor:
    """What a case says of one tensor; `File` turns it into a descriptor and a payload.

    `scale` and `outer` are directory indexes; `block` is (block_elements, block_bytes) of a
    foreign tensor. Without `payload`, a pattern of the length that dtype and shape need is made up.
    """

    name: str | bytes
    dtype: str | int
    shape: tuple[int, ...] = ()
    scheme: int = 0
    axis: int = NO_AXIS
    group_size: int = 0
    scale: int = NO_INDEX
    outer: int = NO_INDEX
    block: tuple[int, int] = (0, 0)
    tag: int = 0
    payload: bytes | None = None

    @property
    def raw_name(self) -> bytes:
        """The name as the pool holds it."""
        return self.name.encode() if isinstance(self.name, str) else self.name

    @property
    def dtype_code(self) -> int:
        """The number of the dtype."""
        return DTYPE_CODES[self.dtype] if isinstance(self.dtype, str) else self.dtype

    @property
    def due_bytes(self) -> int:
        """The payload's length that dtype, shape and block ask for."""
        count = math.prod(self.shape)
        if self.dtype == "foreign":
            return count // self.block[0] * self.block[1]
        return -(-count * (self.dtype_code & 0xFF) // 8)


def pattern(seed: int, size: int) -> bytes:
    """Give `size` bytes that no other seed gives and that are not 0."""
    return bytes(1 + (37 * (seed + 1) + 11 * place) % 255 for place in range(size))


class File:
    """A file as fields, each of which can be made wrong before the bytes are taken.

    It begins as the sound file of its tensors: names one after another in the pool, payloads in
    order at the next multiple of 64, then `slack` bytes that belong to nobody.
    """

    def __init__(self, *tensors: Tensor, slack: int = 0) -> None:
        self.labels: list[str | None] = [
            tensor.name if isinstance(tensor.name, str) else None for tensor in tensors
        ]
        self.names = b"".join(tensor.raw_name for tensor in tensors)
        self.descriptors: list[dict[str, Any]] = []
        self.patches: list[tuple[int, bytes]] = []
        self.limit: int | None = None
        self.data = b""
        ofs_name = 0
        for index, tensor in enumerate(tensors):
            payload = tensor.payload
            if payload is None:
                payload = pattern(index, tensor.due_bytes)
            start = LEN_HEADER + LEN_DESCRIPTOR * len(tensors) + len(self.names)
            self.data += FILL * (-(start + len(self.data)) % ALIGNMENT)
            self.descriptors.append(
                {
                    "ofs_name": ofs_name,
                    "len_name": len(tensor.raw_name),
                    "dtype": tensor.dtype_code,
                    "rank": len(tensor.shape),
                    "scheme": tensor.scheme,
                    "quant_axis": tensor.axis,
                    "reserved1": 0,
                    "group_size": tensor.group_size,
                    "scale_index": tensor.scale,
                    "outer_index": tensor.outer,
                    "foreign_tag": tensor.tag,
                    "ofs_data": start + len(self.data),
                    "len_data": len(payload),
                    "block_elements": tensor.block[0],
                    "block_bytes": tensor.block[1],
                    "reserved2": 0,
                    "shape": tensor.shape,
                }
            )
            ofs_name += len(tensor.raw_name)
            self.data += payload
        self.data += FILL * slack
        self.header: dict[str, Any] = {
            "magic": RECORDS["MAGIC"],
            "version": RECORDS["VERSION"],
            "reserved1": 0,
            "num_tensors": len(tensors),
            "len_names": len(self.names),
            "len_file": self.size,
            "reserved2": b"",
        }

    @property
    def size(self) -> int:
        """The number of bytes that all parts take, before any cut."""
        return LEN_HEADER + LEN_DESCRIPTOR * len(self.descriptors) + len(self.names) + len(self.data)

    def head(self, **fields: Any) -> File:
        """Set fields of the header, by their names in the .ksy."""
        self.header.update({name: fields[name] for name in fields if name in self.header or fail(name)})
        return self

    def set(self, tensor: int, **fields: Any) -> File:
        """Set fields of a descriptor, by their names in the .ksy; `shape` may have up to 8 entries."""
        record = self.descriptors[tensor]
        record.update({name: fields[name] for name in fields if name in record or fail(name)})
        return self

    def cut(self, size: int) -> File:
        """End the file after `size` bytes; len_file keeps what it says."""
        self.limit = size
        return self

    def append(self, more: bytes) -> File:
        """Put bytes behind the last payload; len_file keeps what it says."""
        self.data += more
        return self

    def honest(self) -> File:
        """Let len_file say the size that the file has now."""
        return self.head(len_file=len(bytes(self)))

    def patch(self, offset: int, raw: bytes) -> File:
        """Overwrite bytes wherever they are."""
        self.patches.append((offset, raw))
        return self

    def place(self, tensor: int, like: int) -> File:
        """Give a tensor the payload range of another."""
        other = self.descriptors[like]
        return self.set(tensor, ofs_data=other["ofs_data"], len_data=other["len_data"])

    def __bytes__(self) -> bytes:
        raw = bytearray(struct.pack(RECORDS["HEADER_STRUCT"], *self.header.values()))
        for descriptor in self.descriptors:
            *fields, shape = descriptor.values()
            raw += struct.pack(RECORDS["DESCRIPTOR_STRUCT"], *fields, *shape, *[0] * (MAX_RANK - len(shape)))
        raw += self.names + self.data
        for offset, replacement in self.patches:
            raw[offset : offset + len(replacement)] = replacement
        return bytes(raw if self.limit is None else raw[: self.limit])


def fail(name: str) -> bool:
    """Refuse a field that the record table doesn't have."""
    raise KeyError(f"no field is called {name}")


def header_span(field: str) -> tuple[int, int]:
    """Where a header field is: (offset, length) in bytes."""
    record = RECORDS["HEADER"]
    return record["offsets"][record["names"].index(field)], RECORDS["HEADER_SIZES"][field]


def descriptor_span(tensor: int, field: str, entry: int | None = None) -> tuple[int, int]:
    """Where a descriptor field is, or one entry of `shape`: (offset, length) in bytes of the file."""
    record = RECORDS["DESCRIPTOR"]
    offset = LEN_HEADER + LEN_DESCRIPTOR * tensor + record["offsets"][record["names"].index(field)]
    length = RECORDS["DESCRIPTOR_SIZES"][field]
    if entry is None:
        return offset, length
    return offset + length // MAX_RANK * entry, length // MAX_RANK
