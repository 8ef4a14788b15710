"""A checkpoint written as one Kiln file."""

from __future__ import annotations

import errno
import os
from math import prod
from typing import NamedTuple

from kiln_check.checkpoints.check import report_on
from kiln_check.checkpoints.checkpoint import Checkpoint, read_checkpoint
from kiln_check.checkpoints.checkpoint_rules import CHECKPOINT_RULES
from kiln_check.checkpoints.links import COUNT, Link, Unlinked
from kiln_check.checkpoints.plan import Plan, plan, unlink
from kiln_check.checkpoints.summary import file_lines, foreign_lines, link_lines
from kiln_check.constants import FINDINGS_SHOWN
from kiln_check.errors import KilnError
from kiln_check.report import Finding, Report
from kiln_check.rules.table import RULES
from kiln_check.text import plural, printable
from kiln_check.writer import lay_out, write_layout

LINK_RULES = frozenset(rule.name for rule in RULES[[rule.name for rule in RULES].index("scheme") :])
"""The rules about how a tensor names its scale: those from `scheme` on."""


class Imported(NamedTuple):
    """What an import did.

    Attributes:
        plan: what was written, and what was linked.
        path: the Kiln file.
        size: of the Kiln file in bytes.
        findings: what is odd with the source and did not stop the import.

    """

    plan: Plan
    path: str
    size: int
    findings: tuple[Finding, ...]


def import_checkpoint(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    allow_unlinked: bool = False,
    progress: bool = False,
) -> Imported:
    """Write a checkpoint as one Kiln file; payloads are copied and never loaded.

    Args:
        path: what `kiln import` takes: a .safetensors or .gguf file, an index, or a folder
            with one checkpoint. A shard means all that it belongs to. The configs beside
            an index, and those in a folder, are kept too.
        output: the Kiln file; one that is there is replaced.
        allow_unlinked: bring in apart what a convention pairs but can't be linked,
            because a count is wrong or one of the two is missing.
        progress: show a bar while payloads are copied, if standard error is a terminal.

    Raises:
        KilnError: the checkpoint is not sound; `report` says why.
        OSError: a file can't be read or written, or `output` is one of them.
        ValueError: the path means no checkpoint, or several.

    """
    checkpoint = read_checkpoint(path)
    _refuse_own_source(checkpoint, output)
    made = plan(checkpoint)
    layout = lay_out(made.tensors)
    report = report_on(made, layout, checkpoint.path)
    if allow_unlinked and _unlink_faulty(made, report):
        layout = lay_out(made.tensors)
        report = report_on(made, layout, checkpoint.path)
    stopping = [one for one in report.findings if _stops(one, allow_unlinked)]
    if stopping:
        first = stopping[0]
        raise KilnError(f"not imported, {first.rule}: {first.message}", report)
    write_layout(output, layout, progress=progress)
    return Imported(made, os.fspath(output), layout.size, report.findings)


def _refuse_own_source(checkpoint: Checkpoint, output: str | os.PathLike[str]) -> None:
    for path in (*checkpoint.fingerprints, *checkpoint.consulted):
        if os.path.exists(output) and os.path.exists(path) and os.path.samefile(path, output):
            raise OSError(errno.EINVAL, "is one of the files to be imported", os.fspath(output))


def _stops(found: Finding, allow_unlinked: bool) -> bool:
    if found.level == "warning":
        return False
    rule = CHECKPOINT_RULES.get(found.rule)
    if rule is None or rule.stops_import == "always":
        return True
    return rule.stops_import == "link" and not allow_unlinked


def _unlink_faulty(made: Plan, report: Report) -> bool:
    """Take back each link that a rule finds fault with; tell whether there was one."""
    names = list(made.tensors)
    faulty = {
        names[one.tensor]: one for one in report.findings if one.tensor is not None and one.rule in LINK_RULES
    }
    sources = made.checkpoint.tensors()
    kept = []
    for link in made.links:
        if link.weight not in faulty:
            kept.append(link)
            continue
        off = sources[link.scale].num_elements - _expected_count(link)
        detail = f"off by {off:+d}" if off else faulty[link.weight].message
        unlink(made, link, sources, Unlinked(link.weight, COUNT, detail))
    made.links[:] = kept
    return bool(faulty)


def _expected_count(link: Link) -> int:
    groups = -(-link.shape[link.axis] // link.group_size)
    return prod(link.shape[: link.axis]) * groups * prod(link.shape[link.axis + 1 :])


def closing_report(done: Imported) -> str:
    """The files, what was linked by which template, and what was not and why, as lines of text."""
    files = plural(len(done.plan.checkpoint.files), "file")
    sources = plural(len(done.plan.checkpoint.tensors()), "tensor")
    lines = [f"{done.path}: {sources} of {files}, {plural(done.size, 'byte')}"]
    lines += [f"  {line}" for line in file_lines(done.plan.checkpoint.files)]
    lines += [f"  {line}" for line in link_lines(done.plan.links, done.plan.unlinked)]
    lines += [f"  {line}" for line in foreign_lines(done.plan.checkpoint.tensors().values())]
    lines += [f"  {found.title}" for found in done.findings[:FINDINGS_SHOWN]]
    if len(done.findings) > FINDINGS_SHOWN:
        lines.append(f"  and {len(done.findings) - FINDINGS_SHOWN} more findings; kiln check has them all")
    return "\n".join(map(printable, lines))
