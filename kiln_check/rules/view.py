"""A directory as the rules look at it: tensors, counts, and how a person calls them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod

from kiln_check.constants import LONGEST_KEPT_NAME, SCALES, SCALES_AND_OUTER
from kiln_check.directory import Descriptor, Directory, Header
from kiln_check.generated.kiln_v2_records import DTYPES, MAX_RANK
from kiln_check.text import quote


class View:
    """What the rules ask about one file.

    Attributes:
        directory: the file's directory.
        tensors: the indexes of the tensors to judge, ascending. Every tensor that
            shares a name or a byte of payload with another must be among them.

    """

    def __init__(self, directory: Directory, tensors: Sequence[int]) -> None:
        self.directory = directory
        self.tensors = tensors

    @property
    def header(self) -> Header:
        """The header, for rules that need one."""
        return self.directory.header

    def tensor(self, index: int) -> Descriptor:
        """The descriptor of a tensor."""
        return self.directory.descriptor(index)

    def scale_of(self, index: int) -> int | None:
        """The index that scheme 1 or 2 gives as the scale's, sound or not; else None."""
        tensor = self.tensor(index)
        return tensor.scale_index if tensor.scheme in (SCALES, SCALES_AND_OUTER) else None

    def outer_of(self, index: int) -> int | None:
        """The index that scheme 2 gives as the outer scale's, sound or not; else None."""
        tensor = self.tensor(index)
        return tensor.outer_index if tensor.scheme == SCALES_AND_OUTER else None

    def first_with_name_of(self, index: int) -> int:
        """The lowest index among `tensors` of a tensor with the same name."""
        raw = self.directory.name_raw(index)
        return index if raw is None else self._first_by_name.get(_name_key(raw), index)

    @cached_property
    def _first_by_name(self) -> dict[object, int]:
        first: dict[object, int] = {}
        for index in self.tensors:
            raw = self.directory.name_raw(index)
            if raw is not None:
                first.setdefault(_name_key(raw), index)
        return first

    @cached_property
    def overlapped(self) -> dict[int, int]:
        """For each tensor that breaks data-overlap, an earlier one whose bytes it shares.

        Earlier is meant in the order (ofs_data, index). Of payloads that start at
        the same byte, those of one length are one payload (layout page, "Rules").
        """
        found: dict[int, int] = {}
        reach, reacher = 0, -1  # the furthest end of payloads that start at an earlier byte
        start, start_reach, start_reacher = -1, 0, -1
        first_length, first, unlike_first = 0, -1, -1
        for ofs_data, index, len_data in sorted(self._payloads()):
            if ofs_data != start:
                if start_reach > reach:
                    reach, reacher = start_reach, start_reacher
                start, start_reach, start_reacher = ofs_data, 0, -1
                first_length, first, unlike_first = len_data, index, -1
            if reach > ofs_data:
                found[index] = reacher
            elif len_data != first_length:
                found[index] = first
            elif unlike_first >= 0:
                found[index] = unlike_first
            if len_data != first_length and unlike_first < 0:
                unlike_first = index
            if ofs_data + len_data > start_reach:
                start_reach, start_reacher = ofs_data + len_data, index
        return found

    def _payloads(self) -> list[tuple[int, int, int]]:
        """(ofs_data, index, len_data) of each payload that has bytes and is in range."""
        payloads = []
        for index in self.tensors:
            tensor = self.tensor(index)
            if tensor.len_data and self.in_range(tensor):
                payloads.append((tensor.ofs_data, index, tensor.len_data))
        return payloads

    def in_range(self, tensor: Descriptor) -> bool:
        """Whether a payload lies between the names and the end that the header gives."""
        begins_after_head = tensor.ofs_data >= self.directory.end_of_names
        return bool(begins_after_head and tensor.ofs_data + tensor.len_data <= self.header.len_file)

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


def element_count(tensor: Descriptor) -> int:
    """Number of elements: the product of the dimensions, 1 where there are none; exact."""
    return prod(tensor.shape[: tensor.rank])


def type_text(tensor: Descriptor) -> str:
    """A dtype and a shape: `e2m1 [32]`."""
    dtype = DTYPES.get(tensor.dtype, f"dtype 0x{tensor.dtype:04x}")
    if tensor.rank > MAX_RANK:
        return f"{dtype}, rank {tensor.rank}"
    return f"{dtype} {tensor.shape[: tensor.rank]}"
