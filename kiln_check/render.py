"""Reports as text for a person, and as JSON for a program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

from kiln_check.constants import BYTES_SHOWN, FINDINGS_SHOWN
from kiln_check.report import UNREADABLE, Report
from kiln_check.text import printable

if TYPE_CHECKING:
    from kiln_check.report import Finding, Weight


def text(report: Report) -> str:
    """A report as lines of text: the file with its verdict, its notes, then each finding."""
    lines = [f"{report.path}: {report.verdict}"]
    lines += [f"  {note}" for note in report.notes]
    for rule, group in groupby(report.findings, lambda finding: finding.rule):
        findings = list(group)
        for finding in findings[:FINDINGS_SHOWN]:
            lines += _finding_lines(finding)
        if len(findings) > FINDINGS_SHOWN:
            lines.append(f"  {rule}: and {len(findings) - FINDINGS_SHOWN} more; --format json has them all")
    return "\n".join(map(printable, lines))


def _finding_lines(finding: Finding) -> Iterator[str]:
    yield f"  {finding.title}"
    if finding.working:
        yield f"    {finding.working}"
    if finding.file is not None:
        value = f"  {finding.value}" if finding.value else ""
        yield f"    {finding.file}, byte {finding.offset}{value}"
    if finding.data:
        shown = finding.data[:BYTES_SHOWN].hex(" ") + (" …" if len(finding.data) > BYTES_SHOWN else "")
        yield f"    0x{finding.offset:04x}  {shown}   {finding.value or finding.field}"


def summary(verdicts: dict[str, int]) -> str:
    """One line on many files: how many there were of each verdict."""
    total = sum(verdicts.values())
    counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items(), key=_by_count))
    return f"{total} files: {counts}"


def _by_count(item: tuple[str, int]) -> tuple[bool, int, str]:
    return item[0] != "OK", -item[1], item[0]


def json_parts(reports: Iterable[Report]) -> Iterator[str]:
    """The one JSON document on all reports, in parts that can be written as they come."""
    from json import dumps

    yield '{"files": ['
    separator = "\n"
    for report in reports:
        yield separator + dumps(_without_findings(report))[:-1] + ', "findings": ['
        separator = ""
        for finding in report.findings:
            yield separator + dumps(_finding_dict(finding))
            separator = ", "
        yield "]}"
        separator = ",\n"
    yield "\n]}\n"


def as_dict(report: Report) -> dict[str, Any]:
    """A report as the layout page's JSON has it ("What a finding says, in JSON")."""
    return _without_findings(report) | {"findings": [_finding_dict(finding) for finding in report.findings]}


def _without_findings(report: Report) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "path": report.path,
        "verdict": report.verdict,
        "num_tensors": report.num_tensors,
    }
    if report.verdict == UNREADABLE:
        entry["error"] = report.error
    if report.notes:
        entry["notes"] = report.notes
    for key in ("linked", "verified", "unverified"):
        if weights := getattr(report, key):
            entry[key] = [_weight_dict(weight) for weight in weights]
    return entry


def _weight_dict(weight: Weight) -> dict[str, Any]:
    """Its values by name, without those that are not there."""
    return {key: value for key, value in weight._asdict().items() if value is not None}


def _finding_dict(finding: Finding) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "rule": finding.rule,
        "status": finding.status,
        "tensor": finding.tensor,
        "name": finding.name,
        "field": finding.field,
        "offset": finding.offset,
        "length": finding.length,
        "message": finding.message,
    }
    if finding.file is not None:
        entry["file"] = finding.file
        entry["level"] = finding.level
    return entry
