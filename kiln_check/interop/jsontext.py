"""JSON objects member by member, with the place of each, and no more memory than the text has."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()
_PAIRS_DECODER = json.JSONDecoder(object_pairs_hook=list)

LONGEST_SMALL = 1 << 16
"""Characters of a value that `small_value` reads."""


class JsonError(Exception):
    """The text is not what it should be.

    Attributes:
        position: where, in characters.

    """

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


class Text:
    """Characters, and where each stands in bytes.

    Places are found fast when they are asked for in ascending order.
    """

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._ascii = raw.isascii()
        self._known = (0, 0)

    def decode(self) -> str:
        """The text. Raises UnicodeDecodeError."""
        self._text = self._raw.decode("utf-8")
        return self._text

    def byte_offset(self, position: int) -> int:
        """The place in bytes of the character at `position`."""
        if self._ascii:
            return position
        characters, place = self._known if self._known[0] <= position else (0, 0)
        place += len(self._text[characters:position].encode())
        self._known = (position, place)
        return place


class Member(NamedTuple):
    """A key, its value, and the characters from the key's first to the value's last."""

    key: str
    value: Any
    start: int
    end: int


ReadValue = Callable[[str, int, str], "tuple[Any, int]"]
"""Takes the text, the value's position and its key; gives the value and its end."""


class Members:
    """The members of the object at a position, one after the other.

    Attributes:
        end: the position after the object, once all members were read.

    Iterating raises JsonError.

    """

    def __init__(self, text: str, position: int, read_value: ReadValue) -> None:
        self._text = text
        self._position = position
        self._read_value = read_value
        self.end = position

    def __iter__(self) -> Iterator[Member]:
        text = self._text
        if text[self._position : self._position + 1] != "{":
            raise JsonError("an object must begin with {", self._position)
        position = after_space(text, self._position + 1)
        closed = text[position : position + 1] == "}"
        while not closed:
            start = position
            key, position = string(text, position)
            position = _expect(text, position, ":")
            value, position = self._read_value(text, position, key)
            yield Member(key, value, start, position)
            position = after_space(text, position)
            closed = text[position : position + 1] == "}"
            if not closed:
                position = _expect(text, position, ",")
        self.end = position + 1


def after_space(text: str, position: int) -> int:
    """The position of the next character that is no white space."""
    found = _SPACE.match(text, position)
    return position if found is None else found.end()


def _expect(text: str, position: int, sign: str) -> int:
    position = after_space(text, position)
    if text[position : position + 1] != sign:
        raise JsonError(f"there must be {sign}", position)
    return after_space(text, position + 1)


def string(text: str, position: int, _key: str = "") -> tuple[str, int]:
    """The string at a position, and the position after it.

    Raises JsonError, also for half of a surrogate pair, which no UTF-8 can hold.
    """
    if text[position : position + 1] != '"':
        raise JsonError("there must be a string", position)
    try:
        value, end = _DECODER.raw_decode(text, position)
    except ValueError as error:
        raise JsonError("a string that JSON does not allow", position) from error
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise JsonError("half of a surrogate pair", position) from error
    return str(value), end


def small_value(text: str, position: int, _key: str = "") -> tuple[Any, int]:
    """Any value of at most 64 Ki characters and its end; objects as lists of pairs.

    Raises JsonError.
    """
    part = text[position : position + LONGEST_SMALL]
    try:
        value, length = _PAIRS_DECODER.raw_decode(part)
    except (ValueError, RecursionError) as error:
        raise JsonError("a value that JSON does not allow, or a very long one", position) from error
    return value, position + length
