"""What a parser must see in a file, worked out from docs/kiln-v2-layout.md and nothing else.

The tables of the page are read as they stand, so this shares no offset with the .ksy: a field that
moves in the .ksy alone no longer agrees with the page.
"""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[2] / "docs" / "kiln-v2-layout.md"

NO_AXIS = 0xFFFF
NO_INDEX = 0xFFFFFFFF

Dump = dict[str, Any]


@dataclass(frozen=True)
class Field:
    """A row of a table of the page: `count` integers of `width` bytes, or `width` raw bytes."""

    name: str
    offset: int
    width: int
    count: int
    is_integer: bool

    def read(self, record: bytes) -> Any:
        """Return what the dumps hold: integers (u8 as decimal text), or hexadecimal text."""
        values = [
            record[at : at + self.width]
            for at in range(self.offset, self.offset + self.width * self.count, self.width)
        ]
        if not self.is_integer:
            return values[0].hex()
        numbers = [int.from_bytes(value, "little") for value in values]
        dumped = [str(number) for number in numbers] if self.width == 8 else numbers
        return dumped if self.count > 1 else dumped[0]


def _section(title: str) -> list[list[str]]:
    """Return the cells of the rows of the first table below a heading."""
    text = PAGE.read_text(encoding="utf-8").split(f"### {title}\n", 1)[1]
    table = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert table is not None
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.group().splitlines()]
    return rows[2:]


def _fields(title: str) -> list[Field]:
    fields: list[Field] = []
    for offset, kind, name, *_ in _section(title):
        match = re.fullmatch(r"(?:(\d+) × )?u(\d)|(\d+) bytes", kind)
        assert match is not None, kind
        count, width, size = match.groups()
        if name == "reserved":
            name += str(1 + sum(field.name.startswith("reserved") for field in fields))
        fields.append(
            Field(name, int(offset), int(width or size), int(count or 1), is_integer=width is not None)
        )
    return fields


HEADER = _fields("Header, 64 bytes")
DESCRIPTOR = _fields("Descriptor, 128 bytes")
LEN_HEADER, LEN_DESCRIPTOR = 64, 128
MAGIC = bytes.fromhex(next(row[3] for row in _section("Header, 64 bytes") if row[2] == "magic"))
DTYPES = {
    int(code, 16): name
    for row in _section("dtype")
    for code, name in zip(row[::3], row[1::3], strict=True)
    if code
}
SCHEMES = {0: "none", 1: "scales", 2: "scales_and_outer"}


def expected(data: bytes) -> Dump:
    """Return the dump of a file's bytes, every integer exact."""
    stopped = _header_fault(data)
    if stopped:
        return {"header": None, "stopped": stopped, "names": None, "descriptors": None}
    header = {field.name: field.read(data) for field in HEADER}
    num_tensors, len_names = header["num_tensors"], int(header["len_names"])
    ofs_names = LEN_HEADER + LEN_DESCRIPTOR * num_tensors
    if len(data) < ofs_names:
        index = (len(data) - LEN_HEADER) // LEN_DESCRIPTOR
        stopped = {"part": "descriptors", "index": index, "error": "end"}
    elif len(data) < ofs_names + len_names:
        stopped = {"part": "names", "index": None, "error": "end"}
    if stopped:
        return {"header": header, "stopped": stopped, "names": None, "descriptors": None}
    records = [data[at : at + LEN_DESCRIPTOR] for at in range(LEN_HEADER, ofs_names, LEN_DESCRIPTOR)]
    fields = [{field.name: field.read(record) for field in DESCRIPTOR} for record in records]
    names = data[ofs_names : ofs_names + len_names]
    return {
        "header": header,
        "stopped": None,
        "names": names.hex(),
        "descriptors": [one | _derived(one, fields, names, data) for one in fields],
    }


def _header_fault(data: bytes) -> Dump | None:
    wrong_magic = len(data) >= 8 and data[:8] != MAGIC
    wrong_version = len(data) >= 10 and data[8:10] != b"\x02\x00"
    if not (wrong_magic or wrong_version or len(data) < LEN_HEADER):
        return None
    return {"part": "header", "index": None, "error": "validation" if wrong_magic or wrong_version else "end"}


def _derived(one: Dump, all_fields: list[Dump], names: bytes, data: bytes) -> Dump:
    rank, axis, group_size = one["rank"], one["quant_axis"], one["group_size"]
    shape = [int(length) for length in one["shape"]]
    is_quantized = one["scheme"] in (1, 2)
    has_groups = is_quantized and rank <= 8 and axis < rank and group_size > 0
    num_groups = -(-shape[axis] // group_size) if has_groups else None
    num_scales = (
        num_groups * math.prod(n for i, n in enumerate(shape[:rank]) if i != axis)
        if num_groups is not None
        else None
    )
    has_name = one["ofs_name"] + one["len_name"] <= len(names)
    name = names[one["ofs_name"] : one["ofs_name"] + one["len_name"]] if has_name else None
    start, end = int(one["ofs_data"]), int(one["ofs_data"]) + int(one["len_data"])
    payload = data[start:end] if end <= len(data) else None
    return {
        "name": _text(name),
        "encoded_name": None if name is None else name.hex(),
        "has_name": has_name,
        "dtype_enum": DTYPES.get(one["dtype"]),
        "scheme_enum": SCHEMES.get(one["scheme"]),
        "dtype_name": DTYPES.get(one["dtype"], "unknown"),
        "element_bits": one["dtype"] & 0xFF,
        "element_count": str(math.prod(shape[:rank])),
        "is_foreign": DTYPES.get(one["dtype"]) == "foreign",
        "is_quantized": is_quantized,
        "has_axis": axis != NO_AXIS,
        "has_scale": one["scale_index"] != NO_INDEX,
        "has_outer": one["outer_index"] != NO_INDEX,
        "has_groups": has_groups,
        "num_groups": None if num_groups is None else str(num_groups),
        "num_scales": None if num_scales is None else str(num_scales),
        "scale": _link(one["scale_index"], all_fields),
        "outer": _link(one["outer_index"], all_fields),
        "has_payload": payload is not None,
        "payload": None
        if payload is None
        else {"length": str(len(payload)), "sha256": hashlib.sha256(payload).hexdigest()},
    }


def _text(name: bytes | None) -> str | None:
    try:
        return None if name is None else name.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _link(index: int, all_fields: list[Dump]) -> int | None:
    """Return the index where it leads to a tensor that names no scale or outer itself."""
    if index >= len(all_fields):
        return None
    target = all_fields[index]
    return index if target["scale_index"] == target["outer_index"] == NO_INDEX else None
