"""What the predicates of the rules are asked of, many tensors at once: columns of integers.

A column has a number for each tensor. A field is as wide as it is stored, element counts
and what is made of them have 64 bits. Those may wrap; `Columns.sure` says for which
tensors none did.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kiln_check.directory import LEN_DESCRIPTOR
from kiln_check.generated.kiln_v2_records import DESCRIPTOR, DTYPES, MAX_RANK
from kiln_check.rules.measures import expected_bytes, expected_scales
from kiln_check.rules.subjects import File

Column: TypeAlias = "NDArray[Any]"

COUNT_LIMIT = 1 << 55
"""Element counts from here on are not sure. Below it, times 128 bits, nothing reaches 2^63."""

BYTES_LIMIT = 1 << 62
"""Payloads in blocks that may reach this many bytes are not sure."""

WORD = 8
"""Bytes; no field of the record crosses a multiple of it."""

TILE = 256
"""Descriptors that are turned at a time: 32 KiB, which fit the innermost cache."""

ONE = np.uint64(1)

_LISTED = np.zeros(1 << 16, np.bool_)
_LISTED[list(DTYPES)] = True


def _place(form: Any, offset: int) -> tuple[Any, int, int, int]:
    """Where a field is: its format, its word, and its first place and the step from there in such words.

    A field of several values has as many words, and their number for the step.
    """
    word, byte = divmod(offset, WORD)
    if not isinstance(form, str):
        return None, word, 0, form[1][0]
    size = np.dtype(form).itemsize
    return form, word, byte // size, WORD // size


_PLACES = {
    name: _place(form, offset)
    for name, form, offset in zip(*(DESCRIPTOR[key] for key in ("names", "formats", "offsets")), strict=True)
}


def _by_word(descriptors: bytes) -> Column:
    """The descriptors' words, those in the same place next to one another; a row a place."""
    words = np.frombuffer(descriptors, "<u8").reshape(-1, LEN_DESCRIPTOR // WORD)
    by_word: Column = np.empty(words.T.shape, np.uint64)
    for start in range(0, len(words), TILE):
        by_word[:, start : start + TILE] = words[start : start + TILE].T
    return by_word


class Columns:
    """Tensors that follow one another: their fields by name, and what is made of them as of a Row.

    Attributes:
        file: the file that they are in.
        index: the tensors' indexes.

    """

    rank: Column
    shape: Column
    dtype: Column
    quant_axis: Column
    block_elements: Column
    block_bytes: Column

    def __init__(self, file: File, descriptors: bytes, first: int) -> None:
        self._words = _by_word(descriptors)
        self.file = file
        self.index: Column = np.arange(first, first + self._words.shape[1], dtype=np.uint32)

    def __getattr__(self, name: str) -> Column:
        """A field as it is stored; one of several values has a row an entry."""
        if name not in _PLACES:
            raise AttributeError(name)
        form, word, first, step = _PLACES[name]
        column: Column
        column = (
            self._words[word : word + step] if form is None else self._words[word].view(form)[first::step]
        )
        self.__dict__[name] = column
        return column

    @cached_property
    def dtype_is_listed(self) -> Column:
        """Whether the dtype is in the layout page's table."""
        listed: Column = _LISTED[self.dtype]
        return listed

    @cached_property
    def count(self) -> Column:
        """Number of elements, where it is sure."""
        return self._counts[0]

    @cached_property
    def shape_tail(self) -> Column:
        """The greatest entry of shape from rank on; 0 where there is none."""
        return self._counts[1]

    @cached_property
    def sure(self) -> Column:
        """Which tensors have a count, and bytes in blocks, that did not wrap."""
        column: Column = self._counts[2] & self._blocks[1]
        return column

    @cached_property
    def blocks(self) -> Any:
        """Number of whole blocks, 0 where blocks have no elements; a column or one number for all."""
        return self._blocks[0]

    @cached_property
    def expected_bytes(self) -> Column:
        """The bytes that each payload takes."""
        column: Column = expected_bytes(self)
        return column

    @cached_property
    def axis_length(self) -> Column:
        """Elements along quant_axis, or of the last entry of shape where there is no such axis."""
        return self._entries(np.arange(len(self.index)))

    def _entries(self, rows: Column) -> Column:
        lengths: Column = self.shape[np.minimum(self.quant_axis[rows], MAX_RANK - 1), rows]
        return lengths

    @cached_property
    def _counts(self) -> tuple[Column, Column, Column]:
        """`count`, `shape_tail`, and for which tensors the counts did not wrap.

        None did where the product of the greatest lengths is small. Otherwise a product
        that wraps is found by the same product in floating point, which is off by less
        than one part in 2^48. One with a zero is 0 either way.
        """
        rank = self.rank
        lowest, highest = int(rank.min()), min(int(rank.max()), MAX_RANK)
        counts, tail = np.ones(len(rank), np.uint64), np.zeros(len(rank), np.uint64)
        factors, bound = [], 1
        for entry, lengths in enumerate(self.shape[:highest]):
            if entry < lowest:
                factors.append(lengths)
            else:
                inside = rank > entry
                factors.append(np.where(inside, lengths, ONE))
                np.maximum(tail, np.where(inside, 0, lengths), out=tail)
            counts *= factors[-1]
            bound *= int(factors[-1].max())
        rest = self.shape[highest:]
        if rest.size and rest.max():
            np.maximum(tail, rest.max(axis=0), out=tail)
        if bound < COUNT_LIMIT:
            return counts, tail, np.ones(len(rank), np.bool_)
        estimates = np.ones(len(rank))
        for lengths in factors:
            estimates *= lengths
        return counts, tail, estimates < COUNT_LIMIT

    @cached_property
    def _blocks(self) -> tuple[Any, Any]:
        """`blocks`, and for which tensors the bytes in them did not wrap; both may be one for all."""
        if not self.block_elements.any():
            return 0, True
        some = np.flatnonzero(self.block_elements)
        blocks, sure = np.zeros(len(self.index), np.uint64), np.ones(len(self.index), np.bool_)
        blocks[some] = self.count[some] // self.block_elements[some]
        sure[some] = blocks[some].astype(np.float64) * self.block_bytes[some] < BYTES_LIMIT
        return blocks, sure

    def only(self, rows: Column) -> Some:
        """Some of these tensors, by their place here."""
        return Some(self, rows)


class Some:
    """Some tensors of others' columns."""

    def __init__(self, whole: Columns, rows: Column) -> None:
        self._whole, self._rows = whole, rows
        self.file = whole.file

    def __getattr__(self, name: str) -> Column:
        column: Column = getattr(self._whole, name)[..., self._rows]
        self.__dict__[name] = column
        return column

    @cached_property
    def axis_length(self) -> Column:
        """Elements along quant_axis, or of the last entry of shape where there is no such axis."""
        return self._whole._entries(self._rows)

    @cached_property
    def expected_scales(self) -> Column:
        """Number of scales that each tensor needs."""
        column: Column = expected_scales(self)
        return column


class Others:
    """The tensors that some tensors point at, by what was kept of all tensors of the file.

    An index that there is not stands for the last tensor.
    """

    def __init__(self, kept: dict[str, Column], index: Column) -> None:
        self._kept = kept
        self._index = np.minimum(index, len(kept["sure"]) - 1).astype(np.intp)

    def __getattr__(self, name: str) -> Column:
        return self._kept[name][self._index]
