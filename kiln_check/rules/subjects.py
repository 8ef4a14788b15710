"""What the predicates of the rules are asked of, in exact integers: the file, and one tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache

from kiln_check.constants import LONGEST_KEPT_NAME
from kiln_check.directory import ARRAYS, VALUES, Directory
from kiln_check.generated.kiln_v2_records import DTYPES
from kiln_check.rules.measures import element_count, expected_bytes, expected_scales
from kiln_check.rules.overlap import overlaps

ROWS_KEPT = 1 << 12
"""Enough for the tensors that lie near one another and for their scales."""


class File:
    """The file as a whole, and its tensors.

    Attributes:
        directory: the file's directory.
        tensors: the indexes of the tensors to judge, ascending. Every tensor that
            shares a name or a byte of payload with another must be among them.
        magic: the first 8 bytes, or all that there are.
        version: None where the magic is wrong or the header is cut short.
        len_names, len_file, num_tensors: the header's fields; 0 where there is no header.
        reserved1, reserved2: likewise, as numbers.
        end_of_names: where payloads may begin, in bytes from the start of the file.

    """

    def __init__(self, directory: Directory, tensors: Sequence[int] = ()) -> None:
        self.directory = directory
        self.tensors = tensors
        self.magic = directory.magic
        self.version = directory.version
        self.end_of_names = directory.end_of_names
        fields = directory.fields or {}
        self.num_tensors: int = fields.get("num_tensors", 0)
        self.len_names: int = fields.get("len_names", 0)
        self.len_file: int = fields.get("len_file", 0)
        self.reserved1: int = fields.get("reserved1", 0)
        self.reserved2 = int.from_bytes(fields.get("reserved2", b""), "little")
        self._first_by_name: dict[object, int] | None = None
        self._overlapped: dict[int, int] | None = None

    @property
    def size(self) -> int:
        """Size of the whole file in bytes; raises OSError."""
        return self.directory.size

    @cached_property
    def tensor(self) -> Callable[[int], Row]:
        """One tensor of a whole directory, by its index; those asked for last are kept."""
        return lru_cache(ROWS_KEPT)(self._row)

    def _row(self, index: int) -> Row:
        return Row(self, index, self.directory.values(index))

    def first_with_name(self, raw: bytes, name_in_range: Callable[[Row], bool]) -> int:
        """The lowest index among `tensors` of a tensor with this name, which one of them has.

        Names that are not `name_in_range` are left out. Raises OSError.
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


class Row:
    """One tensor: the fields of its descriptor by their names in the .ksy, and what is made of them.

    Attributes:
        file: the file that the tensor is in.
        index: the tensor's index.
        count: number of elements.
        shape_tail: the greatest entry of shape from rank on; 0 where there is none.

    """

    ofs_name: int
    len_name: int
    dtype: int
    rank: int
    scheme: int
    quant_axis: int
    reserved1: int
    group_size: int
    scale_index: int
    outer_index: int
    ofs_data: int
    len_data: int
    block_elements: int
    block_bytes: int
    shape: tuple[int, ...]

    def __init__(self, file: File, index: int, values: tuple[int, ...]) -> None:
        self.__dict__.update(zip(VALUES, values, strict=True))
        for name, first, end in ARRAYS:
            self.__dict__[name] = values[first:end]
        self.file, self.index = file, index
        self.count = element_count(self)
        self.shape_tail = max(self.shape[self.rank :], default=0)

    @property
    def dtype_is_listed(self) -> bool:
        """Whether the dtype is in the layout page's table."""
        return self.dtype in DTYPES

    @property
    def blocks(self) -> int:
        """Number of whole blocks; 0 where blocks have no elements."""
        return self.count // self.block_elements if self.block_elements else 0

    @property
    def expected_bytes(self) -> int:
        """The bytes that its payload takes."""
        return int(expected_bytes(self))

    @property
    def axis_length(self) -> int:
        """Elements along quant_axis; 0 where shape has no such entry."""
        return self.shape[self.quant_axis] if self.quant_axis < len(self.shape) else 0

    @property
    def expected_scales(self) -> int:
        """Number of scales that it needs."""
        return int(expected_scales(self))

    @property
    def scale(self) -> Row:
        """The tensor at scale_index."""
        return self.file.tensor(self.scale_index)

    @property
    def outer(self) -> Row:
        """The tensor at outer_index."""
        return self.file.tensor(self.outer_index)

    @property
    def name_raw(self) -> bytes:
        """The bytes of its name, which must lie within the name pool. Raises OSError."""
        return self.file.directory.name_raw(self.ofs_name, self.len_name)


def _name_key(raw: bytes) -> object:
    """What stands for a name: itself, or a digest of one so long that many would fill the memory."""
    if len(raw) <= LONGEST_KEPT_NAME:
        return raw
    from hashlib import blake2b

    return blake2b(raw).digest(), len(raw)
