"""What a rule says, and what a checker makes of it."""

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


class Finding(NamedTuple):
    """A broken rule and where it shows (layout page, "What a finding says, in JSON").

    Attributes:
        rule: name of the rule.
        status: MAGIC, VERSION, LENGTH, TYPE, NAME, ALIGN or OVERLAP.
        tensor: index of the tensor; None for the file as a whole.
        name: name of the tensor; None where there is none or it can't be read.
        field: the field at fault, as the layout page names it.
        offset: where the field starts, in bytes from the start of the file.
        length: size of the field in bytes.
        message: one line: what is wrong and with what numbers.
        working: the arithmetic behind it, where there is any.
        data: the field's bytes.
        value: the field's value as text.
        file: for a checkpoint of another format, the file that `offset` and `length`
            are in; else None.

    """

    rule: str
    status: str
    tensor: int | None
    name: str | None
    field: str
    offset: int
    length: int
    message: str
    working: str | None
    data: bytes
    value: str
    file: str | None = None
