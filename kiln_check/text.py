"""Words for people: names in quotes, counts with their nouns, and text that can't harm a terminal."""

from __future__ import annotations

from kiln_check.constants import LONGEST_QUOTE


def quote(name: str) -> str:
    """A name in quotes on one line: what doesn't print is escaped, what is long is cut."""
    cut = name[:LONGEST_QUOTE]
    text = "".join(_printable(character) for character in cut)
    return f'"{text}"' if len(cut) == len(name) else f'"{text}…"'


def _printable(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


def plural(count: int, noun: str) -> str:
    """A count with its noun: `1 scale`, `2 scales`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def printable(text: str) -> str:
    """A text on one line: what doesn't print is escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
