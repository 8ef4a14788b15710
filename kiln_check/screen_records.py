"""The screen in plain Python: exact integers, and nothing to load.

One function a subject, as in `screen_columns`. Each gives the indexes of the tensors
that it can't prove sound in its subject; it may give too many, never too few.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, TypeAlias

from kiln_check.constants import ALIGNMENT, ELEMENT_BITS, F32, FOREIGN, NONE, SCALES, SCALES_AND_OUTER
from kiln_check.directory import Directory, Part
from kiln_check.generated.kiln_v2_records import DESCRIPTOR, DESCRIPTOR_STRUCT, MAX_RANK, NO_AXIS, NO_INDEX

Columns: TypeAlias = "dict[str, Sequence[Any]]"
"""The values of each field, by its name in the .ksy; those of an array are tuples."""

Counts: TypeAlias = "list[int | None]"
"""The element count of each tensor; None where rank or shape is unsound."""

_RECORD = struct.Struct(DESCRIPTOR_STRUCT)

_LENGTHS = [1 if isinstance(form, str) else form[1][0] for form in DESCRIPTOR["formats"]]

_VALUES = [name for name, length in zip(DESCRIPTOR["names"], _LENGTHS, strict=True) for _ in range(length)]
"""The field that each of the values that `_RECORD` unpacks belongs to."""

_ARRAYS = [
    (name, _VALUES.index(name), _VALUES.index(name) + length)
    for name, length in zip(DESCRIPTOR["names"], _LENGTHS, strict=True)
    if length > 1
]
"""The fields of several values, with the first and the end of those."""


def unverified(directory: Directory) -> list[int]:
    """The tensors of a whole directory that are not proved sound; ascending.

    Raises OSError when the directory or the names can't be read.
    """
    if not directory.descriptors:
        return []
    columns = _columns(directory.descriptors.all)
    counts = _counts(columns)
    found: set[int] = set()
    found.update(_reserved(columns))
    found.update(_names(columns, directory.names))
    found.update(_types(columns, counts))
    found.update(_payloads(columns, directory.end_of_names, directory.fields["len_file"]))
    found.update(_overlaps(columns))
    found.update(_links(columns, counts))
    return sorted(found)


def _columns(directory: bytes) -> Columns:
    values = list(zip(*_RECORD.iter_unpack(directory), strict=True))
    columns: Columns = dict(zip(_VALUES, values, strict=True))
    for name, first, end in _ARRAYS:
        columns[name] = list(zip(*values[first:end], strict=True))
    return columns


def _counts(columns: Columns) -> Counts:
    return [
        prod(shape[:rank]) if rank <= MAX_RANK and not any(shape[rank:]) else None
        for rank, shape in zip(columns["rank"], columns["shape"], strict=True)
    ]


def _reserved(columns: Columns) -> Iterable[int]:
    if not any(columns["reserved1"]) and not any(columns["reserved2"]):
        return ()
    pairs = zip(columns["reserved1"], columns["reserved2"], strict=True)
    return (index for index, pair in enumerate(pairs) if any(pair))


def _names(columns: Columns, part: Part | None) -> Iterable[int]:
    """Names that pass the pool, have no bytes, are not printable text, or are there twice."""
    if part is None:
        return range(len(columns["ofs_name"]))
    pool = part.all
    ends = [start + length for start, length in zip(columns["ofs_name"], columns["len_name"], strict=True)]
    names = [pool[start:end] for start, end in zip(columns["ofs_name"], ends, strict=True)]
    inside = max(ends) <= len(pool) and all(names)
    if inside and pool.isascii() and pool.decode("ascii").isprintable() and len(set(names)) == len(names):
        return ()
    times = Counter(names)
    return (
        index
        for index, (end, name) in enumerate(zip(ends, names, strict=True))
        if end > len(pool) or times[name] > 1 or not _is_printable(name)
    )


def _is_printable(name: bytes) -> bool:
    """Whether a name is text that Python calls printable: no control character is."""
    try:
        return name != b"" and name.decode("utf-8").isprintable()
    except UnicodeDecodeError:
        return False


def _types(columns: Columns, counts: Counts) -> Iterable[int]:
    """Tensors whose dtype, rank, shape, block and length don't fit together."""
    fields = ("dtype", "foreign_tag", "block_elements", "block_bytes", "len_data")
    for index, (count, dtype, tag, elements, size, len_data) in enumerate(
        zip(counts, *(columns[field] for field in fields), strict=True)
    ):
        if count is None or dtype not in ELEMENT_BITS:
            yield index
        elif dtype == FOREIGN:
            if not (elements and size) or count % elements or len_data != count // elements * size:
                yield index
        elif tag or elements or size or len_data != (count * ELEMENT_BITS[dtype] + 7) // 8:
            yield index


def _payloads(columns: Columns, end_of_names: int, len_file: int) -> Iterable[int]:
    """Payloads that start at no multiple of 64, or pass the room that there is for them."""
    ranges = zip(columns["ofs_data"], columns["len_data"], strict=True)
    for index, (ofs_data, len_data) in enumerate(ranges):
        if ofs_data % ALIGNMENT or ofs_data < end_of_names or ofs_data + len_data > len_file:
            yield index


def _overlaps(columns: Columns) -> Iterable[int]:
    """Payloads that share a byte with another, on both sides; one and the same range is no overlap."""
    ranges = [
        (ofs_data, ofs_data + len_data)
        for ofs_data, len_data in zip(columns["ofs_data"], columns["len_data"], strict=True)
    ]
    overlapping: set[tuple[int, int]] = set()
    furthest = (0, 0)
    for this in sorted({(start, end) for start, end in ranges if start != end}):
        if this[0] < furthest[1]:
            overlapping |= {this, furthest}
        if this[1] > furthest[1]:
            furthest = this
    if not overlapping:
        return ()
    return (index for index, this in enumerate(ranges) if this in overlapping)


def _links(columns: Columns, counts: Counts) -> Iterable[int]:
    """Tensors whose scheme, axis, group size, scale and outer don't fit together.

    A tensor that names itself names one that has a scheme, which no scale has.
    """
    fields = ("scheme", "rank", "shape", "quant_axis", "group_size", "scale_index", "outer_index")
    for index, (scheme, rank, shape, axis, size, scale, outer) in enumerate(
        zip(*(columns[field] for field in fields), strict=True)
    ):
        if scheme == NONE:
            if size or axis != NO_AXIS or scale != NO_INDEX or outer != NO_INDEX:
                yield index
        elif (
            counts[index] is None
            or axis >= rank
            or not size
            or not _is_scale(columns, counts, scale, _expected(shape[:rank], axis, size))
            or scheme not in (SCALES, SCALES_AND_OUTER)
            or (scheme == SCALES and outer != NO_INDEX)
            or (scheme == SCALES_AND_OUTER and not _is_outer(columns, counts, outer))
            or outer == scale
        ):
            yield index


def _expected(shape: Sequence[int], axis: int, group_size: int) -> int:
    groups = -(-shape[axis] // group_size)
    return prod(shape[:axis]) * groups * prod(shape[axis + 1 :])


def _is_scale(columns: Columns, counts: Counts, index: int, expected: int) -> bool:
    return index < len(counts) and columns["scheme"][index] == NONE and counts[index] == expected


def _is_outer(columns: Columns, counts: Counts, index: int) -> bool:
    return _is_scale(columns, counts, index, 1) and columns["dtype"][index] == F32
