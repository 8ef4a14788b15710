"""JSON objects member by member, with the place of each, and no more memory than the text has."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from math import isinf
from typing import Any, NamedTuple

from kiln_check.constants import DEEPEST_JSON, LONGEST_NUMBER

SPACE = r"[ \t\n\r]*"
"""JSON's own white space, which is less than a regular expression's."""

_SPACE = re.compile(SPACE)
_PLAIN = r'"([^"\\\x00-\x1f]*)"'
"""A string without escapes. No half of a surrogate pair is in it, as none is in decoded UTF-8."""

_PLAIN_STRING = re.compile(_PLAIN)
_PLAIN_KEY = re.compile(rf"{_PLAIN}{SPACE}:{SPACE}")
_AFTER_MEMBER = re.compile(rf"{SPACE}([,}}]){SPACE}")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_SIZES = re.compile(rf"(?:{SPACE}(?:0|[1-9][0-9]*){SPACE},){{1,1000}}")
_WORDS = ("true", "false", "null")
_DECODER = json.JSONDecoder()

BEYOND = 1 << 64
"""Stands for every size that takes more than 64 bits."""


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

PassOver = Callable[[int], int]
"""Takes the position of a member; gives that of another after it, or the same. Between them are members only,
each with its comma."""


class Members:
    """The members of the object at a position, one after the other.

    Args:
        text: all of it.
        position: of the object.
        read_value: reads a member's value.
        pass_over: deals with members by itself, which are not given.

    Attributes:
        end: the position after the object, once all members were read.

    Iterating raises JsonError.

    """

    def __init__(
        self, text: str, position: int, read_value: ReadValue, pass_over: PassOver | None = None
    ) -> None:
        self._text = text
        self._position = position
        self._read_value = read_value
        self._pass_over = pass_over
        self.end = position

    def __iter__(self) -> Iterator[Member]:
        text = self._text
        if text[self._position : self._position + 1] != "{":
            raise JsonError("an object must begin with {", self._position)
        position = after_space(text, self._position + 1)
        closed = text[position : position + 1] == "}"
        while not closed:
            if self._pass_over is not None:
                position = self._pass_over(position)
            start = position
            plain = _PLAIN_KEY.match(text, position)
            if plain is not None:
                key, position = plain[1], plain.end()
            else:
                key, position = string(text, position)
                position = _expect(text, position, ":")
            value, position = self._read_value(text, position, key)
            yield Member(key, value, start, position)
            after = _AFTER_MEMBER.match(text, position)
            if after is None:
                raise JsonError("there must be ,", after_space(text, position))
            closed = after[1] == "}"
            position = after.start(1) if closed else after.end()
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
    plain = _PLAIN_STRING.match(text, position)
    if plain is not None:
        return plain[1], plain.end()
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


def skip_value(text: str, position: int) -> int:
    """The position after any value; it takes time as the value is long, and no memory.

    Raises JsonError.
    """
    closers = bytearray()
    while True:
        sign = text[position : position + 1]
        if sign in ("{", "["):
            if len(closers) == DEEPEST_JSON:
                raise JsonError(f"values more than {DEEPEST_JSON} deep", position)
            closer = "}" if sign == "{" else "]"
            position = after_space(text, position + 1)
            if text[position : position + 1] != closer:
                closers += closer.encode()
                position = _after_key(text, position, closers)
                continue
            position += 1
        else:
            position = _after_scalar(text, position)
        position = _after_closers(text, position, closers)
        if not closers:
            return position
        position = _after_key(text, _expect(text, position, ","), closers)


def _after_closers(text: str, position: int, closers: bytearray) -> int:
    """Pass over what closes the innermost arrays and objects, and take it off `closers`."""
    while closers:
        closing = after_space(text, position)
        if text[closing : closing + 1] != chr(closers[-1]):
            break
        position = closing + 1
        closers.pop()
    return position


def _after_key(text: str, position: int, closers: bytearray) -> int:
    """The position of the next value: of an object, after the key and its colon."""
    return position if closers[-1:] == b"]" else _expect(text, string(text, position)[1], ":")


def _after_scalar(text: str, position: int) -> int:
    """Pass over a string, a number or one of the three words."""
    if text[position : position + 1] == '"':
        return string(text, position)[1]
    for word in _WORDS:
        if text.startswith(word, position):
            return position + len(word)
    number = _NUMBER.match(text, position)
    if number is None:
        raise JsonError("there must be a value", position)
    if number.end() - position > LONGEST_NUMBER or isinf(float(number[0])):
        raise JsonError("a number out of range", position)
    return number.end()


class Sizes(NamedTuple):
    """A list of sizes, of which only the first are kept.

    Attributes:
        first: those that are kept; BEYOND for each that takes more than 64 bits.
        total: how many there are.

    """

    first: tuple[int, ...]
    total: int


def sizes(text: str, position: int, most: int) -> tuple[Sizes | None, int]:
    """A list of whole numbers from 0 on and its end, None for any other value; keeps the first `most`.

    Raises JsonError.
    """
    end = skip_value(text, position) if text[position : position + 1] != "[" else None
    if end is not None:
        return None, end
    first: list[int] = []
    count, start = 0, position
    position = after_space(text, position + 1)
    closed = text[position : position + 1] == "]"
    while not closed:
        run = _SIZES.match(text, position) if len(first) == most else None
        if run is not None:
            count += text.count(",", position, run.end())
            position = after_space(text, run.end())
        number = _NUMBER.match(text, position)
        if number is None or number[1] or number[2] or number[0].startswith("-"):
            return None, skip_value(text, start)
        count += 1
        if len(first) < most:
            first.append(int(number[0]) if number.end() - position <= 20 else BEYOND)
        position = after_space(text, number.end())
        closed = text[position : position + 1] == "]"
        if not closed:
            position = _expect(text, position, ",")
    return Sizes(tuple(first), count), position + 1
