"""What a rule says of a tensor that breaks it."""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    """What a rule found wrong with one tensor, or with the file.

    Attributes:
        message: one line: what is wrong and with what numbers.
        working: the arithmetic behind it, where there is any.
        field: the field at fault, by its name in the .ksy; None for the rule's own.
        entry: index into the field where it is an array; else None.

    """

    message: str
    working: str | None = None
    field: str | None = None
    entry: int | None = None
