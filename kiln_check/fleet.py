"""Whatever has a path into reports: Kiln files and checkpoints, one or many."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence

from kiln_check import checking
from kiln_check.paths import Failed, Folders, KilnPath, Target, means_checkpoint, targets
from kiln_check.report import UNREADABLE, Report
from kiln_check.source import Target as FileTarget


def check(target: FileTarget, *, path: str | None = None) -> Report:
    """Check a Kiln file against the rules of the layout page, or a checkpoint as `check_checkpoint` does.

    Only the header, the directory and the names are read, whatever the size.

    Args:
        target: a path, the bytes of a Kiln file, or a file object opened in binary mode.
            The path of a checkpoint's file, or of the folder that a checkpoint is in,
            means that checkpoint.
        path: what the report calls the file; by default its path, or "<bytes>".

    Returns:
        A Report, for any bytes. A file that can't be read has the verdict
        UNREADABLE and an error text.

    Raises:
        TypeError: `target` is none of these.

    """
    if isinstance(target, (str, os.PathLike)) and means_checkpoint(os.fspath(target)):
        from kiln_check.checkpoints.check import check_checkpoint

        report = check_checkpoint(target)
        return report if path is None else report._replace(path=path)
    return checking.check(target, path=path)


def check_paths(paths: Sequence[str], *, strict: bool = False) -> Iterator[Report]:
    """Check all that the paths mean, in their order, and each checkpoint once.

    What means nothing, or can't be looked into, gets the verdict UNREADABLE.

    Args:
        paths: of Kiln files, checkpoints and folders; "-" for standard input.
        strict: whether, of checkpoints, warnings count, and weights that could not be
            held to any template.

    """
    folders = Folders()
    checked: set[str] = set()
    for path in paths:
        if path == "-":
            yield _check_standard_input()
            continue
        for target in targets(path, folders):
            whole = os.path.abspath(target.path)
            if isinstance(target, (KilnPath, Failed)) or whole not in checked:
                yield _check_target(target, folders, strict)
            if not isinstance(target, (KilnPath, Failed)):
                checked.add(whole)


def _check_target(target: Target, folders: Folders, strict: bool) -> Report:
    if isinstance(target, KilnPath):
        return checking.check(target.path)
    if isinstance(target, Failed):
        return _unreadable(target.path, target.error)
    from kiln_check.checkpoints.check import check_place

    return check_place(target, folders.get(os.path.dirname(target.path)), strict=strict)


def _check_standard_input() -> Report:
    if sys.stdin is None:
        return _unreadable("-", "standard input is closed")
    return checking.check(sys.stdin.buffer, path="-")


def _unreadable(path: str, error: str) -> Report:
    return Report(path, UNREADABLE, None, (), error)
