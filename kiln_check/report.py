"""What a check finds out about one file: the verdict, and each broken rule with its place."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Level: TypeAlias = Literal["error", "warning"]

OK = "OK"
UNREADABLE = "UNREADABLE"


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
        level: "error", which decides the verdict, or "warning": what a format allows
            and no reader refuses. The 30 rules are errors.

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
    level: Level = "error"


class Report(NamedTuple):
    """The verdict on one file, and all that led to it.

    Attributes:
        path: what the file was called by the caller.
        verdict: OK; or the status of the first rule in the table's order that is
            broken (layout page, "Rules"); or UNREADABLE, which is no verdict on the
            bytes. Warnings of a checkpoint leave it OK.
        num_tensors: the header's count; None where no header could be read.
        findings: in the table's order, then by tensor.
        error: why the file can't be read, on one line; None where it was.
        notes: of a checkpoint of another format: which weights are linked to scales,
            and which are not and why, as lines of text.

    """

    path: str
    verdict: str
    num_tensors: int | None
    findings: tuple[Finding, ...]
    error: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the file was read and every rule holds."""
        return self.verdict == OK
