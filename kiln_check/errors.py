"""The exceptions of the package."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kiln_check.report import Report


class KilnError(ValueError):
    """A file is not sound, or can't be made sound.

    Attributes:
        report: what `check` found, where it was asked; else None.

    """

    def __init__(self, message: str, report: Report | None = None) -> None:
        super().__init__(message)
        self.report = report


class UsageError(Exception):
    """A command can't be carried out as it was given; the text says why on one line."""


class PathError(UsageError, ValueError):
    """A path means no checkpoint, or several; the text says so on one line."""
