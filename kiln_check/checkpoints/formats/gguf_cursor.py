"""The bytes of a GGUF header one after the other, and no more of them than the file has."""

from __future__ import annotations

from typing import Literal

from kiln_check.constants import LONGEST_GGUF_KEY, LONGEST_HEADER
from kiln_check.source import Source
from kiln_check.text import plural

MAGIC = b"GGUF"
"""The first bytes of every file."""

WINDOW = 1 << 16
"""Bytes read at a time."""


class HeaderError(Exception):
    """The header can't be read on; the first argument is the finding's rule."""

    def __init__(self, rule: str, message: str, offset: int, length: int = 0) -> None:
        super().__init__(message)
        self.rule = rule
        self.offset = offset
        self.length = length


class Cursor:
    """Reads the header from front to end, a window at a time.

    Attributes:
        size: of the file in bytes.
        position: of the next byte.
        byte_order: of the numbers.

    All methods raise HeaderError where the file, or what is read of a header, ends before.

    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self.size = source.size()
        self.position = 0
        self.byte_order: Literal["little", "big"] = "little"
        self._window = b""
        self._start = 0

    def take(self, length: int) -> bytes:
        """The next bytes."""
        at = self.position - self._start
        if at + length > len(self._window):
            self._must_have(length)
            self._start, at = self.position, 0
            self._window = self._source.read(self.position, max(length, WINDOW))
            if len(self._window) < length:
                raise HeaderError("header-length", "the file became shorter while it was read", self.position)
        self.position += length
        return self._window[at : at + length]

    def skip(self, length: int) -> None:
        """Pass over the next bytes."""
        self._must_have(length)
        self.position += length

    def number(self, length: int, *, signed: bool = False) -> int:
        """A number of so many bytes."""
        return int.from_bytes(self.take(length), self.byte_order, signed=signed)

    def u32(self) -> int:
        return self.number(4)

    def u64(self) -> int:
        return self.number(8)

    def short_string(self) -> bytes:
        """The bytes of a key or a name."""
        start = self.position
        length = self.u64()
        if length > LONGEST_GGUF_KEY and self.position + length <= self.size:
            message = f"a name of {length} bytes at byte {start}; the most is {LONGEST_GGUF_KEY}"
            raise HeaderError("header-text", message, start, 8)
        return self.take(length)

    def must_hold(self, count: int, smallest: int, what: str) -> None:
        """See that the rest of the file can hold `count` things of `smallest` bytes or more."""
        if count * smallest > self.size - self.position:
            message = f"the header claims {plural(count, what)}; the file has {self.size} bytes"
            raise HeaderError("header-length", message, self.position)

    def _must_have(self, length: int) -> None:
        end = self.position + length
        if end > self.size:
            message = f"the header goes on to byte {end}; the file has {self.size}"
            raise HeaderError("header-length", message, self.position)
        if end > LONGEST_HEADER:
            message = f"the header goes on to byte {end}; {LONGEST_HEADER} are read"
            raise HeaderError("header-length", message, self.position)
