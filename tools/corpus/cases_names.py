"""Rules name-range, name-text and name-unique."""

from __future__ import annotations

from tools.corpus.cases import Fault, broken, sound
from tools.corpus.layout import File, Tensor


@sound("kiln-v2-names")
def names() -> File:
    """Two tensors whose names are one byte each, the shortest there are; they fill the pool."""
    return File(Tensor("a", "u8", (2,)), Tensor("b", "u8", (2,)))


@broken("kiln-v2-name-range", "NAME", names, Fault("name-range", 1, name=None))
def name_range(file: File) -> None:
    """The last name ends one byte behind the pool, so it can't be read."""
    file.set(1, len_name=2)


@broken("kiln-v2-name-text", "NAME", names, Fault("name-text", 1, name="\n"))
def name_text(file: File) -> None:
    """A name is a line feed, a control character."""
    file.names = b"a\n"


@broken("kiln-v2-name-unique", "NAME", names, Fault("name-unique", 1, name="a"))
def name_unique(file: File) -> None:
    """Two tensors have the same name; the finding is on the later one."""
    file.names = b"aa"
