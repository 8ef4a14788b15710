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
            and no reader refuses. The layout page's rules are errors.

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

    @property
    def title(self) -> str:
        """The rule, the level where it is no error, and the message, as a line of text."""
        level = "" if self.level == "error" else f" ({self.level})"
        return f"{self.rule}{level}: {self.message}"


class Weight(NamedTuple):
    """What became of a quantized weight of a checkpoint of another format.

    Attributes:
        name: of the tensor.
        tool: that wrote it; None where that is not known.
        template: the format that its module was held to, or that it may have; None where there is none.
        reason: why Kiln does not link it with a scale, or why it was held to no template; None where it
            is linked.
        scale: name of the scale that it is linked with.
        outer: name of the outer scale, for scheme 2.

    """

    name: str
    tool: str | None
    template: str | None
    reason: str | None = None
    scale: str | None = None
    outer: str | None = None


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
        linked: of a checkpoint of another format: the weights whose modules fit a template, and that Kiln
            links with their scales.
        verified: those whose modules fit a template, and that Kiln keeps as they are.
        unverified: those that could be held to no template. A weight that a finding tells of is in none of
            the three.

    """

    path: str
    verdict: str
    num_tensors: int | None
    findings: tuple[Finding, ...]
    error: str | None = None
    notes: tuple[str, ...] = ()
    linked: tuple[Weight, ...] = ()
    verified: tuple[Weight, ...] = ()
    unverified: tuple[Weight, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the file was read and every rule holds."""
        return self.verdict == OK
