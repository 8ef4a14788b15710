"""From a source to a report."""

from __future__ import annotations

import os

from kiln_check.directory import Directory
from kiln_check.report import OK, UNREADABLE, Report
from kiln_check.rules.judge import judge
from kiln_check.screen import unverified
from kiln_check.source import Source, Target, open_source


def check(target: Target, *, path: str | None = None) -> Report:
    """Check a Kiln file against the rules of the layout page.

    Only the header, the directory and the names are read, whatever the size.

    Args:
        target: a path, the bytes of a file, or a file object opened in binary mode.
        path: what the report calls the file; by default its path, or "<bytes>".

    Returns:
        A Report, for any bytes. A file that can't be read has the verdict
        UNREADABLE and an error text.

    Raises:
        TypeError: `target` is none of these.

    """
    called = path if path is not None else _name_of(target)
    try:
        source = open_source(target)
    except OSError as error:
        return unreadable(called, error)
    try:
        return check_source(source, called)
    except (OSError, EOFError, MemoryError) as error:
        return unreadable(called, error)
    finally:
        source.close()


def check_source(source: Source, path: str) -> Report:
    """Check what a source holds; see `check`.

    Raises OSError when the source can't be read.
    """
    return check_directory(Directory(source), path)


def check_directory(directory: Directory, path: str) -> Report:
    """Check a directory; see `check`.

    Raises OSError when names are read on demand and can't be.
    """
    findings = tuple(judge(directory, unverified(directory)))
    verdict = findings[0].status if findings else OK
    return Report(path, verdict, directory.num_tensors, findings)


def unreadable(path: str, error: Exception) -> Report:
    """The report on a file that could not be read, because of `error`."""
    if isinstance(error, MemoryError):
        text = "its directory does not fit in memory"
    else:
        text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return Report(path, UNREADABLE, None, (), text)


def _name_of(target: Target) -> str:
    if isinstance(target, (str, os.PathLike)):
        return os.fspath(target)
    if isinstance(target, (bytes, bytearray, memoryview)):
        return "<bytes>"
    name = getattr(target, "name", None)
    return name if isinstance(name, str) else "<file>"
