"""Header, descriptors and names of a file, parsed on demand by the generated parser.

Where the parts of the file lie is read through the header's generated record, which
is made from the same .ksy, and so are a descriptor's values: the parser itself is
loaded only for who asks for a header or a descriptor. Nothing here judges.
"""

from __future__ import annotations

import struct
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from kiln_check.constants import LONGEST_NAME
from kiln_check.generated.kiln_v2_records import (
    DESCRIPTOR,
    DESCRIPTOR_STRUCT,
    HEADER,
    HEADER_STRUCT,
    MAGIC,
    VERSION,
)
from kiln_check.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

Header: TypeAlias = Any
"""The generated parser's KilnV2.Header, which is untyped."""

Descriptor: TypeAlias = Any
"""The generated parser's KilnV2.Descriptor, which is untyped."""

LEN_HEADER: int = HEADER["itemsize"]
LEN_DESCRIPTOR: int = DESCRIPTOR["itemsize"]

FIRST_READ = 4096
"""Bytes asked for at once in the beginning: most small files need no second read."""

INTEGERS = {"<u2": "H", "<u4": "I", "<u8": "Q"}
"""NumPy's formats of the record's integers, in the struct module's letters."""

_RECORD = struct.Struct(DESCRIPTOR_STRUCT)

_LENGTHS = [1 if isinstance(form, str) else form[1][0] for form in DESCRIPTOR["formats"]]

VALUES = [name for name, length in zip(DESCRIPTOR["names"], _LENGTHS, strict=True) for _ in range(length)]
"""The field that each of a descriptor's values belongs to; one of several values is there as often."""

ARRAYS = [
    (name, VALUES.index(name), VALUES.index(name) + length)
    for name, length in zip(DESCRIPTOR["names"], _LENGTHS, strict=True)
    if length > 1
]
"""The fields of several values, with the first and the end of those."""

SHORTER = "the file became shorter while it was read"

DESCRIPTORS_KEPT = 1 << 12

NAMES_KEPT = 16
"""Enough for those that the findings of one tensor speak of."""


class Part:
    """A part of the file, read piece by piece, or whole and then kept.

    `first` is the beginning of the file, as far as it was read.
    """

    def __init__(self, source: Source, first: bytes, start: int, end: int) -> None:
        self._source = source
        self._start = start
        self._length = end - start
        if end <= len(first):
            self.all = first[start:end]

    def __len__(self) -> int:
        return self._length

    @cached_property
    def all(self) -> bytes:
        """All bytes of the part.

        Raises OSError.
        """
        return self.read(0, self._length)

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end`, counted from the start of the part; keep none.

        Raises OSError.
        """
        if "all" in self.__dict__:
            return self.all[start:end]
        piece = self._source.read(self._start + start, end - start)
        if len(piece) != end - start:
            raise OSError(SHORTER)
        return piece


class Directory:
    """What stands before the payloads of one file.

    Reads the header, then on demand the directory and the names (layout page,
    "File"), and never a payload. Nothing is allocated for a claim that the file
    can't back.

    Attributes:
        magic: the first 8 bytes, or all that there are.
        version: the header's version; None where the magic is wrong or the header
            is cut short.
        fields: the header's fields by name; None unless magic and version are right.
        end_of_names: where payloads may begin, in bytes from the start of the file.
        whole: whether the directory and the names are all there.
        descriptors: the directory's own bytes; None unless it is whole.
        names: the name pool; None unless the directory is whole, and where the pool
            is larger than all names together can be.

    Raises OSError when the source can't be read.

    """

    def __init__(self, source: Source) -> None:
        first = source.read(0, FIRST_READ)
        self._source = source
        self._header = first[:LEN_HEADER]
        self.magic = first[: len(MAGIC)]
        self.fields, self.version = _header_fields(self._header)
        self.end_of_names = self._ofs_names = 0
        if self.fields is not None:
            self._ofs_names = LEN_HEADER + LEN_DESCRIPTOR * self.fields["num_tensors"]
            self.end_of_names = self._ofs_names + self.fields["len_names"]
        self.whole = self.fields is not None and source.has(self.end_of_names)
        self.descriptors: Part | None = None
        self.names: Part | None = None
        if self.whole:
            self.descriptors = Part(source, first, LEN_HEADER, self._ofs_names)
            if self.fields["len_names"] <= LONGEST_NAME * self.fields["num_tensors"]:
                self.names = Part(source, first, self._ofs_names, self.end_of_names)
        if len(first) < LEN_HEADER and source.has(len(first) + 1):
            raise OSError(SHORTER)

    @cached_property
    def size(self) -> int:
        """Size of the whole file in bytes; a pipe is read to its end for it.

        Raises OSError.
        """
        return self._source.size()

    @cached_property
    def header(self) -> Header:
        """The parsed header; None unless magic and version are right."""
        return None if self.fields is None else _parser("Header")(self._header)

    @property
    def num_tensors(self) -> int | None:
        """The header's count of tensors; None where there is no header."""
        return None if self.fields is None else self.fields["num_tensors"]

    def head_bytes(self, offset: int, length: int) -> bytes:
        """Return bytes of the header, or of a whole directory, by their offset in the file."""
        if offset < LEN_HEADER:
            return self._header[offset : offset + length]
        assert self.descriptors is not None
        return self.descriptors.all[offset - LEN_HEADER : offset - LEN_HEADER + length]

    @cached_property
    def descriptor(self) -> Callable[[int], Descriptor]:
        """The descriptor of a tensor, by its index; those asked for last are kept."""
        return lru_cache(DESCRIPTORS_KEPT)(self._parse_descriptor)

    def _parse_descriptor(self, index: int) -> Descriptor:
        assert self.descriptors is not None
        start = index * LEN_DESCRIPTOR
        return _parser("Descriptor")(self.descriptors.all[start : start + LEN_DESCRIPTOR])

    def values(self, index: int) -> tuple[int, ...]:
        """Return the values of a tensor's descriptor, which belong to the fields `VALUES`.

        Raises OSError.
        """
        assert self.descriptors is not None
        return _RECORD.unpack_from(self.descriptors.all, index * LEN_DESCRIPTOR)

    def name_raw(self, start: int, length: int) -> bytes:
        """Return the bytes of a name that lies within the name pool, by ofs_name and len_name.

        Raises OSError.
        """
        end = start + length
        if self.names is not None:
            return self.names.all[start:end]
        raw = self._source.read(self._ofs_names + start, end - start)
        if len(raw) != end - start:
            raise OSError(SHORTER)
        return raw

    @cached_property
    def name(self) -> Callable[[int], str | None]:
        """The name of a tensor, by its index; those asked for last are kept.

        None where it passes the name pool or is not UTF-8. Raises OSError.
        """
        return lru_cache(NAMES_KEPT)(self._decode_name)

    def _decode_name(self, index: int) -> str | None:
        fields = dict(zip(VALUES, self.values(index), strict=True))
        start, length = fields["ofs_name"], fields["len_name"]
        return _decoded(self.name_raw(start, length)) if start + length <= self.fields["len_names"] else None

    def all_names(self) -> list[str | None]:
        """The names of all tensors of a whole directory, as `name` gives each.

        Raises OSError.
        """
        assert self.descriptors is not None
        if self.names is None:
            return [self.name(index) for index in range(self.fields["num_tensors"])]
        pool = self.names.all
        ranges = _struct_of("ofs_name", "len_name").iter_unpack(self.descriptors.all)
        if pool.isascii():
            text = pool.decode("ascii")
            return [text[start : start + n] if start + n <= len(text) else None for start, n in ranges]
        return [_decoded(pool[start : start + n]) if start + n <= len(pool) else None for start, n in ranges]


def _decoded(raw: bytes) -> str | None:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _struct_of(*fields: str) -> struct.Struct:
    """Reads some integers of a descriptor, in the order of the record, and passes over the rest."""
    form, end = "<", 0
    for name, kind, offset in zip(*(DESCRIPTOR[key] for key in ("names", "formats", "offsets")), strict=True):
        if name in fields:
            form += f"{offset - end}x{INTEGERS[kind]}"
            end = offset + struct.calcsize(INTEGERS[kind])
    return struct.Struct(f"{form}{LEN_DESCRIPTOR - end}x")


def _header_fields(data: bytes) -> tuple[Any, int | None]:
    """Return the header's fields and its version, each None where the parser would not reach it."""
    if len(data) < LEN_HEADER:
        return None, None
    fields = dict(zip(HEADER["names"], struct.unpack(HEADER_STRUCT, data), strict=True))
    if fields["magic"] != MAGIC:
        return None, None
    return fields if fields["version"] == VERSION else None, fields["version"]


@cache
def _parser(record: str) -> Callable[[bytes], Any]:
    """The generated parser of one record, for bytes that are all there."""
    from io import BytesIO

    from kaitaistruct import KaitaiStream

    from kiln_check.generated.kiln_v2 import KilnV2

    parse = getattr(KilnV2, record)
    return lambda data: parse(KaitaiStream(BytesIO(data)))
