"""A directory as the rules look at it: tensors, counts, and how a person calls them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from kiln_check.constants import LONGEST_KEPT_NAME
from kiln_check.directory import Directory
from kiln_check.generated.kiln_v2_records import DTYPES, MAX_RANK
from kiln_check.rules.overlap import overlaps
from kiln_check.rules.subjects import File, Row
from kiln_check.text import quote

ROWS_KEPT = 1 << 12
"""Enough for the tensors that lie near one another and for their scales."""


class View:
    """What the rules ask about one file.

    Attributes:
        directory: the file's directory.
        tensors: the indexes of the tensors to judge, ascending. Every tensor that
            shares a name or a byte of payload with another must be among them.
        file: the file as a whole.
        tensor: one tensor, by its index; those asked for last are kept.

    """

    def __init__(self, directory: Directory, tensors: Sequence[int]) -> None:
        self.directory = directory
        self.tensors = tensors
        self.file = File(directory)
        self.tensor = lru_cache(ROWS_KEPT)(self._row)
        self._first_by_name: dict[object, int] | None = None
        self._overlapped: dict[int, int] | None = None

    def _row(self, index: int) -> Row:
        return Row(self, index, self.directory.values(index))

    def first_with_name(self, raw: bytes, name_in_range: Callable[[Row], bool]) -> int:
        """The lowest index among `tensors` of a tensor with this name, which one of them has.

        Names that are not `name_in_range` are left out.
        """
        if self._first_by_name is None:
            self._first_by_name = {}
            for tensor in map(self.tensor, self.tensors):
                if name_in_range(tensor):
                    self._first_by_name.setdefault(_name_key(tensor.name_raw), tensor.index)
        return self._first_by_name[_name_key(raw)]

    def overlapped(self, in_range: Callable[[Row], bool]) -> dict[int, int]:
        """For each tensor that breaks data-overlap, an earlier one whose bytes it shares.

        Payloads that are not `in_range` are left out, as are empty ones.
        """
        if self._overlapped is None:
            self._overlapped = overlaps(
                (tensor.ofs_data, tensor.index, tensor.len_data)
                for tensor in map(self.tensor, self.tensors)
                if tensor.len_data and in_range(tensor)
            )
        return self._overlapped

    def label(self, index: int) -> str:
        """A tensor as a message calls it: `tensor 0 "w" (e2m1 [32])`."""
        return f"{self.short_label(index)} ({type_text(self.tensor(index))})"

    def short_label(self, index: int) -> str:
        """A tensor as a message calls it, without its type: `tensor 0 "w"`."""
        name = self.directory.name(index)
        return f"tensor {index}" if name is None else f"tensor {index} {quote(name)}"


def _name_key(raw: bytes) -> object:
    """What stands for a name: itself, or a digest of one so long that many would fill the memory."""
    if len(raw) <= LONGEST_KEPT_NAME:
        return raw
    from hashlib import blake2b

    return blake2b(raw).digest(), len(raw)


def type_text(tensor: Row) -> str:
    """A dtype and a shape: `e2m1 [32]`."""
    dtype = DTYPES.get(tensor.dtype, f"dtype 0x{tensor.dtype:04x}")
    if tensor.rank > MAX_RANK:
        return f"{dtype}, rank {tensor.rank}"
    return f"{dtype} {list(tensor.shape[: tensor.rank])}"
