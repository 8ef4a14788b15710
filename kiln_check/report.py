"""What a check found out about one file."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kiln_check.rules.finding import Finding

OK = "OK"
UNREADABLE = "UNREADABLE"


class Report(NamedTuple):
    """The verdict on one file, and all that led to it.

    Attributes:
        path: what the file was called by the caller.
        verdict: OK; or the status of the first rule in the table's order that is
            broken (layout page, "Rules"); or UNREADABLE, which is no verdict on the
            bytes.
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
