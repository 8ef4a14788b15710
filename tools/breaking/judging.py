"""What `kiln check` says of a checkpoint, and whether it has noticed a break."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from kiln_check import Report
from kiln_check.fleet import check_paths
from tools.breaking.breaks import Break
from tools.breaking.configs import config_breaks
from tools.breaking.folder import Checkpoint, read, write
from tools.breaking.ggufs import gguf_breaks
from tools.breaking.tensors import tensor_breaks
from tools.breaking.unseeable import reason_for


class Said(NamedTuple):
    """An error of a report: the tensor that it is about, where it is about one, and its message."""

    name: str | None
    message: str


class Outcome(NamedTuple):
    """How a break of a checkpoint was judged.

    Attributes:
        checkpoint: its name.
        kind: one of KINDS.
        what: what was changed.
        noticed: whether an error names what was changed.
        reason: why headers can't show it, where it was missed and they can't.
        error: the first error, where there is one.

    """

    checkpoint: str
    kind: str
    what: str
    noticed: bool
    reason: str | None
    error: str | None


class Judged(NamedTuple):
    """The outcomes of one checkpoint's breaks.

    Attributes:
        checkpoint: its name.
        refused: the first error on it unbroken; its breaks are then left out.
        outcomes: of each break.

    """

    checkpoint: str
    refused: str | None
    outcomes: tuple[Outcome, ...]


def judge(folder: Path) -> Judged:
    """Break the checkpoint of a folder in every way, and check each."""
    checkpoint = read(folder)
    if errors := errors_of(checkpoint):
        return Judged(checkpoint.name, errors[0].message, ())
    return Judged(checkpoint.name, None, tuple(map(outcome_of, breaks_of(checkpoint))))


def breaks_of(checkpoint: Checkpoint) -> Iterator[Break]:
    """Every break of a checkpoint."""
    yield from tensor_breaks(checkpoint)
    yield from config_breaks(checkpoint)
    yield from gguf_breaks(checkpoint)


def outcome_of(broken: Break) -> Outcome:
    """Check a broken checkpoint."""
    errors = errors_of(broken.broken)
    noticed = any(names_one(error, broken.names) for error in errors) if broken.names else bool(errors)
    return Outcome(
        broken.broken.name,
        broken.kind,
        broken.what,
        noticed,
        None if noticed else reason_for(broken),
        errors[0].message if errors else None,
    )


def errors_of(checkpoint: Checkpoint) -> list[Said]:
    """The errors that a check of the checkpoint gives; what can't be read is one."""
    with TemporaryDirectory() as folder:
        write(checkpoint, Path(folder))
        return [error for report in check_paths([folder]) for error in _errors(report)]


def _errors(report: Report) -> Iterator[Said]:
    if report.error is not None:
        yield Said(None, report.error)
    for found in report.findings:
        if found.level == "error":
            yield Said(found.name, found.message)


def names_one(error: Said, names: frozenset[str]) -> bool:
    """Whether an error is about one of the names, or has one in its message, whole."""
    if error.name in names:
        return True
    return any(re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", error.message) for name in names)
