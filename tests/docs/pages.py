"""The pages of the documentation, and the parts of them that tests look at."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.places import ROOT

DOCS = ROOT / "docs"
INDEX = DOCS / "README.md"
README = ROOT / "README.md"

PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(DOCS.rglob("*.md")),
    *(ROOT / "tests" / folder / "README.md" for folder in ("corpus", "data")),
]
"""Every page that a user or a contributor reads."""

_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A block of code in a page.

    Attributes:
        language: the word after the fence, or "".
        text: without the indentation of the fence.
        follows: whether nothing but a blank line stands between it and the block before.

    """

    language: str
    text: str
    follows: bool


def name_of(page: Path) -> str:
    """A page's path in the checkout."""
    return page.relative_to(ROOT).as_posix()


def blocks(text: str) -> Iterator[Block]:
    """The blocks of code of a page, in order."""
    end = 0
    for found in _BLOCK.finditer(text):
        inner = re.sub(f"^{found[1]}", "", found[3], flags=re.MULTILINE)
        yield Block(found[2], inner, not text[end : found.start()].strip())
        end = found.end()


def prose(text: str) -> str:
    """A page without its blocks of code."""
    return _BLOCK.sub("", text)


def anchors(text: str) -> set[str]:
    """What links may name after "#": the headings, in small letters with hyphens, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


def section(text: str, heading: str) -> str:
    """What stands below a heading of the second level."""
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    """The cells of the rows of all tables, without their heads."""
    tables = re.findall(r"^\|.*\|\n\|[-|: ]+\|\n((?:\|.*\|\n?)+)", text, re.MULTILINE)
    lines = [line for table in tables for line in table.splitlines()]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
