"""Header, descriptors and names of a file, parsed on demand by the generated parser.

The one place where errors of the Kaitai runtime are met. Nothing here judges.
"""

from __future__ import annotations

from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING

from kaitaistruct import EndOfStreamError, KaitaiStream, ValidationNotEqualError

from kiln_check.generated.kiln_v2 import KilnV2  # type: ignore[attr-defined]
from kiln_check.generated.kiln_v2_records import DESCRIPTOR, HEADER, MAGIC
from kiln_check.source import Source

if TYPE_CHECKING:
    from typing import Any

    # The generated classes are untyped.
    Header = Any
    Descriptor = Any
else:
    Header = KilnV2.Header
    Descriptor = KilnV2.Descriptor

LEN_HEADER: int = HEADER["itemsize"]
LEN_DESCRIPTOR: int = DESCRIPTOR["itemsize"]

FIRST_READ = 4096
"""Bytes asked for at once in the beginning: most small files need no second read."""

LONGEST_NAME = 0xFFFF
"""Bytes; len_name is a u2. More than this for each tensor can't all be names."""

DESCRIPTORS_KEPT = 1 << 12


class Directory:
    """What stands before the payloads of one file.

    Reads the header, then the directory and the names (layout page, "File"), and
    never a payload. Nothing is allocated for a claim that the file can't back.

    Attributes:
        size: size of the whole file in bytes.
        magic: the first 8 bytes, or all that there are.
        version: the header's version; None where the magic is wrong or the header
            is cut short.
        header: the parsed header; None unless magic and version are right.
        whole: whether the directory and the names are all there.

    Raises OSError when the source can't be read.

    """

    def __init__(self, source: Source) -> None:
        first = source.read(0, FIRST_READ)
        self._source = source
        self._header = first[:LEN_HEADER]
        self._directory = b""
        self._names: bytes | None = None
        self.magic = first[: len(MAGIC)]
        self.header, self.version = _parse_header(self._header)
        self.whole = self.header is not None and source.has(self.end_of_names)
        if self.whole:
            self._read_rest(first)
        self.size = source.size()
        self.descriptor = lru_cache(DESCRIPTORS_KEPT)(self._parse_descriptor)

    @property
    def num_tensors(self) -> int | None:
        """The header's count of tensors; None where there is no header."""
        return None if self.header is None else self.header.num_tensors

    @property
    def end_of_names(self) -> int:
        """Where payloads may begin, in bytes from the start of the file; exact."""
        return int(self.header.ofs_names + self.header.len_names)

    @property
    def directory_bytes(self) -> bytes:
        """The directory's own bytes; empty unless it is whole."""
        return self._directory

    def head_bytes(self, offset: int, length: int) -> bytes:
        """Return bytes of the header, or of a whole directory, by their offset in the file."""
        if offset < LEN_HEADER:
            return self._header[offset : offset + length]
        return self._directory[offset - LEN_HEADER : offset - LEN_HEADER + length]

    def _read_rest(self, first: bytes) -> None:
        header = self.header
        self._directory = _range(first, self._source, LEN_HEADER, header.ofs_names)
        if header.len_names <= LONGEST_NAME * header.num_tensors:
            self._names = _range(first, self._source, header.ofs_names, self.end_of_names)
        self._stream = KaitaiStream(BytesIO(self._directory))

    def _parse_descriptor(self, index: int) -> Descriptor:
        self._stream.seek(index * LEN_DESCRIPTOR)
        return Descriptor(self._stream)

    def name_raw(self, index: int) -> bytes | None:
        """Return the bytes of a tensor's name, None where they pass the name pool.

        Raises OSError.
        """
        descriptor = self.descriptor(index)
        start, end = descriptor.ofs_name, descriptor.ofs_name + descriptor.len_name
        if end > self.header.len_names:
            return None
        if self._names is not None:
            return self._names[start:end]
        return self._source.read(self.header.ofs_names + start, end - start)

    def name(self, index: int) -> str | None:
        """Return a tensor's name, None where it passes the name pool or is not UTF-8.

        Raises OSError.
        """
        raw = self.name_raw(index)
        try:
            return None if raw is None else raw.decode("utf-8")
        except UnicodeDecodeError:
            return None


def _parse_header(data: bytes) -> tuple[Header, int | None]:
    """Return the header and its version, each None where the parser did not reach it."""
    try:
        header = Header(KaitaiStream(BytesIO(data)))
    except ValidationNotEqualError as error:
        is_version = isinstance(error.actual, int)
        return None, error.actual if is_version and len(data) == LEN_HEADER else None
    except EndOfStreamError:
        return None, None
    return header, header.version


def _range(first: bytes, source: Source, start: int, end: int) -> bytes:
    part = first[start:end] if end <= len(first) else source.read(start, end - start)
    if len(part) != end - start:
        raise OSError("the file became shorter while it was read")
    return part
