"""The screen in NumPy, for large directories: machine integers, and proof that they suffice.

One function a subject, as in `screen_records`. Each gives, for a slice of the
directory that fits the cache or for all of it, which tensors it can't prove sound in
its subject; it may give too many, never too few.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kiln_check.constants import ALIGNMENT, ELEMENT_BITS, F32, FOREIGN, NONE, SCALES, SCALES_AND_OUTER
from kiln_check.directory import LEN_DESCRIPTOR, Directory
from kiln_check.generated.kiln_v2_records import (
    DESCRIPTOR,
    DESCRIPTOR_SIZES,
    MAX_RANK,
    NO_AXIS,
    NO_INDEX,
)
from kiln_check.screen_names import unverified_names

Column: TypeAlias = "NDArray[Any]"
Columns: TypeAlias = "dict[str, Column]"
"""The values of each field, by its name in the .ksy; those of an array have a row an entry."""

ROWS = 4096
"""Tensors in a slice: 512 KiB of directory, and as much again for what is made of it."""

COUNT_LIMIT = 1 << 55
"""Element counts from here on are not cleared. Below it, times 128 bits, nothing reaches 2^63."""

BYTES_LIMIT = 1 << 62
"""Foreign payloads that may reach this many bytes are not cleared."""

NO_COUNT = np.uint64((1 << 64) - 1)
"""Stands for the element count of a tensor that is no sound scale; no number of scales is it."""

WORD = 8
"""Bytes; no field of the record crosses a multiple of it."""

ONE = np.uint64(1)

UNKNOWN = 0xFF
"""Stands for the width of a dtype that is not in the table, and is the width of none."""


def _widths() -> NDArray[np.uint8]:
    widths = np.full(1 << 16, UNKNOWN, np.uint8)
    widths[list(ELEMENT_BITS)] = list(ELEMENT_BITS.values())
    return widths


_WIDTHS = _widths()


def unverified(directory: Directory, rows: int = ROWS) -> list[int]:
    """The tensors of a whole directory that are not proved sound; ascending.

    Raises OSError when the directory or the names can't be read.
    """
    if not directory.descriptors:
        return []
    count = len(directory.descriptors) // LEN_DESCRIPTOR
    if directory.names is None:
        return list(range(count))
    found = np.zeros(count, np.bool_)
    whole = _Whole(count)
    for start in range(0, count, rows):
        end = min(start + rows, count)
        columns = _columns(directory.descriptors.read(start * LEN_DESCRIPTOR, end * LEN_DESCRIPTOR))
        here = slice(start, end)
        counts, counted = _counts(columns)
        in_range = _in_range(columns, directory.end_of_names, directory.fields["len_file"])
        found[here] = _reserved(columns) | _types(columns, counts, counted) | _misplaced(columns, in_range)
        found[here] |= _links(columns, counts, counted, start, whole)
        whole.keep(here, columns, counts, counted, in_range)
    for links in whole.links:
        found[_unverified_links(whole, *links)] = True
    found[_overlaps(whole)] = True
    found[unverified_names(directory.names, whole.ofs_name, whole.len_name, rows)] = True
    indexes: list[int] = np.flatnonzero(found).tolist()
    return indexes


class _Whole:
    """What is needed of all tensors at once, gathered slice by slice.

    Attributes:
        scale_count: element count of a tensor of scheme 0 whose shape is sound, else NO_COUNT.
        is_outer: whether it is such a tensor of one f32.
        start, end: the payload's range in bytes; 0 and 0 if it is empty or out of range.
        ofs_name, len_name: the fields.
        links: for each slice, of the tensors with a scheme: index, scale_index,
            outer_index (NO_INDEX for scheme 1), number of scales due.

    """

    def __init__(self, count: int) -> None:
        self.scale_count = np.empty(count, np.uint64)
        self.is_outer = np.empty(count, np.bool_)
        self.start = np.empty(count, np.uint64)
        self.end = np.empty(count, np.uint64)
        self.ofs_name = np.empty(count, np.uint32)
        self.len_name = np.empty(count, np.uint16)
        self.links: list[tuple[Column, Column, Column, Column]] = []

    def keep(self, here: slice, columns: Columns, counts: Column, counted: Column, in_range: Column) -> None:
        """Take over one slice."""
        self.scale_count[here] = np.where(counted & (columns["scheme"] == NONE), counts, NO_COUNT)
        self.is_outer[here] = (self.scale_count[here] == 1) & (columns["dtype"] == F32)
        present = in_range & (columns["len_data"] != 0)
        self.start[here] = np.where(present, columns["ofs_data"], 0)
        self.end[here] = np.where(present, columns["ofs_data"] + columns["len_data"], 0)
        self.ofs_name[here] = columns["ofs_name"]
        self.len_name[here] = columns["len_name"]


def _columns(descriptors: bytes) -> Columns:
    """The fields of some tensors, close together in memory instead of 128 bytes apart."""
    words = np.frombuffer(descriptors, "<u8").reshape(-1, LEN_DESCRIPTOR // WORD)
    by_word = np.ascontiguousarray(words.T)
    columns = {}
    for name, form, offset in zip(
        DESCRIPTOR["names"], DESCRIPTOR["formats"], DESCRIPTOR["offsets"], strict=True
    ):
        word, within = divmod(offset, WORD)
        if isinstance(form, str):
            size = DESCRIPTOR_SIZES[name]
            columns[name] = by_word[word].view(form)[within // size :: WORD // size]
        else:
            columns[name] = by_word[word : word + form[1][0]]
    return columns


def _counts(columns: Columns) -> tuple[Column, Column]:
    """Element counts, and which of them are right: rank and shape are sound, nothing wrapped.

    A product that wraps is found by the same product in floating point, which is off
    by less than one part in 2^48. One with a zero is 0 either way.
    """
    rank, shape = columns["rank"], columns["shape"]
    counts = np.ones(len(rank), np.uint64)
    estimates = np.ones(len(rank))
    sound = rank <= MAX_RANK
    highest = int(rank.max())
    for entry, lengths in enumerate(shape):
        if entry < highest:
            inside = rank > entry
            factors = np.where(inside, lengths, ONE)
            counts *= factors
            estimates *= factors
            sound &= inside | (lengths == 0)
        elif lengths.any():
            sound &= lengths == 0
    return counts, sound & (estimates < COUNT_LIMIT)


def _reserved(columns: Columns) -> Column:
    unverified: Column = (columns["reserved1"] | columns["reserved2"]) != 0
    return unverified


def _types(columns: Columns, counts: Column, counted: Column) -> Column:
    """Tensors whose dtype, rank, shape, block and length don't fit together."""
    dtype = columns["dtype"]
    widths = _WIDTHS[dtype]
    plain = (columns["foreign_tag"] | columns["block_elements"] | columns["block_bytes"]) == 0
    expected = (counts * widths + np.uint64(7)) // np.uint64(8)
    sound = counted & (widths != UNKNOWN) & plain & (columns["len_data"] == expected)
    foreign = np.flatnonzero(dtype == FOREIGN)
    if foreign.size:
        sound[foreign] = counted[foreign] & _foreign(columns, counts, foreign)
    unverified: Column = ~sound
    return unverified


def _foreign(columns: Columns, counts: Column, foreign: Column) -> Column:
    """Which foreign tensors hold whole blocks of some size, and are as long as those."""
    elements, size = columns["block_elements"][foreign], columns["block_bytes"][foreign]
    blocks, rest = np.divmod(counts[foreign], np.maximum(elements, 1).astype(np.uint64))
    small = blocks.astype(np.float64) * size < BYTES_LIMIT
    fits = columns["len_data"][foreign] == blocks * size
    sound: Column = (elements != 0) & (size != 0) & (rest == 0) & small & fits
    return sound


def _in_range(columns: Columns, end_of_names: int, len_file: int) -> Column:
    """Which payloads lie after the names and before the end; where the end is less, it is not taken off."""
    start, length = columns["ofs_data"], columns["len_data"]
    last = np.uint64(len_file)
    in_range: Column = (start >= np.uint64(end_of_names)) & (start <= last) & (length <= last - start)
    return in_range


def _misplaced(columns: Columns, in_range: Column) -> Column:
    misplaced: Column = ~in_range | (columns["ofs_data"] % np.uint64(ALIGNMENT) != 0)
    return misplaced


def _overlaps(whole: _Whole) -> Column:
    """Payloads that share a byte with another, on both sides; one and the same range is no overlap.

    Ranges are disjoint if, starts and ends each sorted, every start is at or after the
    end before it: were two to share a byte, at least two more ranges had begun than
    ended there.
    """
    present = whole.end != 0
    start, end = whole.start, whole.end
    if not present.all():
        start, end = start[present], end[present]
    if _ascending(start, end) or _ascending(np.sort(start), np.sort(end)):
        return np.empty(0, np.int64)
    order = np.argsort(start)
    start, end = start[order], end[order]
    first = np.flatnonzero(np.concatenate(([True], start[1:] != start[:-1])))
    starts, longest = start[first], np.maximum.reduceat(end, first)
    overlapping = longest != np.minimum.reduceat(end, first)
    overlapping[1:] |= starts[1:] < np.maximum.accumulate(longest)[:-1]
    overlapping[:-1] |= longest[:-1] > starts[1:]
    of_each = np.repeat(overlapping, np.diff(first, append=len(start)))
    unverified: Column = np.flatnonzero(present)[order[of_each]]
    return unverified


def _ascending(start: Column, end: Column) -> bool:
    return bool((start[1:] >= end[:-1]).all())


def _links(columns: Columns, counts: Column, counted: Column, first: int, whole: _Whole) -> Column:
    """Tensors whose scheme, axis, group size and indexes don't fit; what they point at comes later."""
    scheme, axis = columns["scheme"], columns["quant_axis"]
    scale, outer = columns["scale_index"], columns["outer_index"]
    unverified: Column = (columns["group_size"] != 0) | (axis != NO_AXIS) | ((scale & outer) != NO_INDEX)
    linked = np.flatnonzero(scheme != NONE)
    if linked.size:
        scheme, axis, rank = scheme[linked], axis[linked], columns["rank"][linked]
        sizes, scale, outer = columns["group_size"][linked], scale[linked], outer[linked]
        sound = counted[linked] & (axis < rank) & (sizes != 0) & (scale != outer)
        without = outer == NO_INDEX
        sound &= np.where(scheme == SCALES, without, (scheme == SCALES_AND_OUTER) & ~without)
        lengths = columns["shape"][np.minimum(axis, MAX_RANK - 1), linked]
        expected = _expected(counts[linked], lengths, sizes)
        unverified[linked] = ~sound
        whole.links.append((linked + first, scale, outer, expected))
    return unverified


def _expected(counts: Column, lengths: Column, sizes: Column) -> Column:
    """Number of scales: the groups along an axis times the other dimensions; no more than the count.

    Where an axis has no elements, the count is 0, and so is the product with whatever is taken for groups.
    """
    groups = (lengths - ONE) // np.maximum(sizes, 1) + ONE
    expected: Column = counts // np.maximum(lengths, ONE) * groups
    return expected


def _unverified_links(whole: _Whole, index: Column, scale: Column, outer: Column, expected: Column) -> Column:
    """Tensors with a scheme whose scale or outer is none, has a scheme or another count."""
    last = len(whole.scale_count) - 1
    sound = (scale <= last) & (whole.scale_count[np.minimum(scale, last)] == expected)
    sound &= (outer == NO_INDEX) | ((outer <= last) & whole.is_outer[np.minimum(outer, last)])
    unverified: Column = index[~sound]
    return unverified
