"""What a check makes of a weight: linked, held to a template, or neither."""

from __future__ import annotations

from typing import NamedTuple

from kiln_check.report import Finding


class AnyName:
    """Names that may be in files that are not read: all of them."""

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str)


class Link(NamedTuple):
    """A weight, its scale, and how Kiln stores them; not one byte changes.

    Attributes:
        tool: that wrote them.
        template: the format that they were held to, for people.
        weight: name of the weight.
        scale: name of the scale.
        outer: name of the outer scale, for scheme 2.
        dtype: the weight's Kiln dtype.
        shape: the weight's shape in elements.
        axis: along which groups run, counted from 0.
        group_size: elements that one scale covers.
        scale_dtype: the scale's Kiln dtype.

    """

    tool: str
    template: str
    weight: str
    scale: str
    outer: str | None
    dtype: str
    shape: tuple[int, ...]
    axis: int
    group_size: int
    scale_dtype: str


class Unlinked(NamedTuple):
    """A weight that stays as it is.

    Attributes:
        weight: its name.
        reason: why, in a few words that many weights share.
        detail: with what names and numbers.
        finding: what is wrong with it; None where it is sound or not known.
        tool: that wrote it, where that is known.
        template: that it was held to; None where it was held to none.

    """

    weight: str
    reason: str
    detail: str = ""
    finding: Finding | None = None
    tool: str | None = None
    template: str | None = None


IN_UNREAD_FILES = "a tensor of it is in another file"
FAULTY = "a finding tells of it"
COUNT = "a count that is wrong"
NOT_KNOWN = "no known format"
AMBIGUOUS = "several formats fit"
UNSAID = "nothing says how it is quantized"
TOO_LARGE = "numbers that a Kiln descriptor can't hold"
