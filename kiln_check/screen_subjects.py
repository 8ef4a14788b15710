"""What the predicates of the rules are asked of, many tensors at once: columns of 64-bit integers.

A column has a number for each tensor. Sums and products wrap at 2^64; `Columns.sure` says
for which tensors none did.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kiln_check.directory import LEN_DESCRIPTOR
from kiln_check.generated.kiln_v2_records import DESCRIPTOR, DESCRIPTOR_SIZES, DTYPES, MAX_RANK
from kiln_check.rules.measures import expected_bytes, expected_scales
from kiln_check.rules.subjects import File

Column: TypeAlias = "NDArray[Any]"

COUNT_LIMIT = 1 << 55
"""Element counts from here on are not sure. Below it, times 128 bits, nothing reaches 2^63."""

BYTES_LIMIT = 1 << 62
"""Payloads in blocks that may reach this many bytes are not sure."""

WORD = 8
"""Bytes; no field of the record crosses a multiple of it."""

ONE = np.uint64(1)

_LISTED = np.zeros(1 << 16, np.bool_)
_LISTED[list(DTYPES)] = True

_PLACES = {
    name: (form, *divmod(offset, WORD))
    for name, form, offset in zip(*(DESCRIPTOR[key] for key in ("names", "formats", "offsets")), strict=True)
}
"""Of each field its format, the word that it is in or starts with, and its byte there."""


class Columns:
    """Tensors that follow one another: their fields by name, and what is made of them as of a Row.

    Attributes:
        file: the file that they are in.
        index: the tensors' indexes.

    """

    file: File
    index: Column
    count: Column
    shape_tail: Column
    rank: Column
    axis_length: Column
    quant_axis: Column
    block_elements: Column
    block_bytes: Column
    scale_index: Column
    outer_index: Column
    sure: Column

    def __init__(self, file: File, descriptors: bytes, first: int) -> None:
        words = np.frombuffer(descriptors, "<u8").reshape(-1, LEN_DESCRIPTOR // WORD)
        self._words = np.ascontiguousarray(words.T)
        self.file = file
        self.index = np.arange(first, first + len(words), dtype=np.uint64)

    def __getattr__(self, name: str) -> Column:
        column: Column = getattr(self, f"_{name}")() if hasattr(type(self), f"_{name}") else self._field(name)
        self.__dict__[name] = column
        return column

    def _field(self, name: str) -> Column:
        return self.narrow(name).astype(np.uint64, copy=False)

    def kept(self, name: str) -> Column:
        """A field as it is stored, or what is made of the fields."""
        return self.narrow(name) if name in _PLACES else getattr(self, name)

    def narrow(self, name: str) -> Column:
        """A field as it is stored; one of several values has a row an entry."""
        if name not in _PLACES:
            raise AttributeError(name)
        form, word, byte = _PLACES[name]
        if not isinstance(form, str):
            array: Column = self._words[word : word + form[1][0]]
            return array
        size = DESCRIPTOR_SIZES[name]
        column: Column = self._words[word].view(form)[byte // size :: WORD // size]
        return column

    def _dtype_is_listed(self) -> Column:
        listed: Column = _LISTED[self.narrow("dtype")]
        return listed

    def _count(self) -> Column:
        """Element counts, and on the way `shape_tail` and for which tensors the counts are sure.

        A product that wraps is found by the same product in floating point, which is off
        by less than one part in 2^48. One with a zero is 0 either way.
        """
        rank, shape = self.narrow("rank"), self.narrow("shape")
        counts = np.ones(len(rank), np.uint64)
        estimates = np.ones(len(rank))
        tail = np.zeros(len(rank), np.uint64)
        lowest, highest = (int(rank.min()), int(rank.max())) if len(rank) else (0, 0)
        for entry, lengths in enumerate(shape):
            if entry < lowest:
                counts *= lengths
                estimates *= lengths
            elif entry < highest:
                inside = rank > entry
                factors = np.where(inside, lengths, ONE)
                counts *= factors
                estimates *= factors
                tail |= np.where(inside, 0, lengths)
            elif lengths.any():
                tail |= lengths
        self.shape_tail = tail
        self.sure = estimates < COUNT_LIMIT
        return counts

    def _shape_tail(self) -> Column:
        self.count  # noqa: B018
        return self.shape_tail

    def _axis_length(self) -> Column:
        axis = np.minimum(self.narrow("quant_axis"), MAX_RANK - 1)
        return self._entries(axis, np.arange(len(axis)))

    def _entries(self, entry: Column, rows: Column) -> Column:
        lengths: Column = self.narrow("shape")[entry, rows]
        return lengths

    def _blocks(self) -> Column:
        """Whole blocks, 0 where blocks have no elements; too many bytes in them are not sure."""
        elements = self.narrow("block_elements")
        blocks = np.zeros(len(elements), np.uint64)
        some = np.flatnonzero(elements)
        if some.size:
            blocks[some] = self.count[some] // elements[some]
            size = self.narrow("block_bytes")[some]
            self.sure[some] &= blocks[some].astype(np.float64) * size < BYTES_LIMIT
        return blocks

    def _expected_bytes(self) -> Column:
        column: Column = expected_bytes(self)
        return column

    def _expected_scales(self) -> Column:
        column: Column = expected_scales(self)
        return column

    def only(self, rows: Column) -> Columns:
        """Some of these tensors, by their place here."""
        return _Some(self, rows)


class Others:
    """The tensors that some tensors point at, by what was kept of all tensors of the file.

    An index that there is not stands for the last tensor.
    """

    def __init__(self, kept: dict[str, Column], index: Column) -> None:
        self._kept = kept
        self._index = np.minimum(index, len(kept["sure"]) - 1)

    def __getattr__(self, name: str) -> Column:
        column = self._kept[name][self._index]
        return column if column.dtype == np.bool_ else column.astype(np.uint64, copy=False)


class _Some(Columns):
    """Some tensors of others' columns."""

    def __init__(self, whole: Columns, rows: Column) -> None:
        self._whole, self._rows = whole, rows
        self.file = whole.file

    def __getattr__(self, name: str) -> Column:
        column: Column
        if name in ("index", "count", "sure", "shape_tail", "blocks"):
            column = getattr(self._whole, name)[self._rows]
            self.__dict__[name] = column
            return column
        return super().__getattr__(name)

    def narrow(self, name: str) -> Column:
        return self._whole.narrow(name)[..., self._rows]

    def _entries(self, entry: Column, rows: Column) -> Column:
        return self._whole._entries(entry, self._rows[rows])
