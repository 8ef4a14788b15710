"""Kiln v2: tensors and their scales in one file; read, written and checked.

import kiln_check

report = kiln_check.check("model.kiln")       # a Report: verdict and findings
with kiln_check.open("model.kiln") as file:   # names to tensors
    weights = file["blk.0.w"].bytes()
kiln_check.write("copy.kiln", {"w": kiln_check.NewTensor("u8", [3], b"abc")})
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kiln_check.checkpoints.check import check_checkpoint as check_checkpoint
    from kiln_check.checkpoints.exporter import export_checkpoint as export_checkpoint
    from kiln_check.checkpoints.importer import import_checkpoint as import_checkpoint
    from kiln_check.errors import KilnError as KilnError
    from kiln_check.fleet import check as check
    from kiln_check.reader import KilnFile as KilnFile
    from kiln_check.reader import Tensor as Tensor
    from kiln_check.reader import open as open
    from kiln_check.report import Finding as Finding
    from kiln_check.report import Report as Report
    from kiln_check.spans import Span as Span
    from kiln_check.writer import NewTensor as NewTensor
    from kiln_check.writer import write as write

__version__ = "0.1.0"

_HOMES = {
    "Finding": "report",
    "KilnError": "errors",
    "KilnFile": "reader",
    "NewTensor": "writer",
    "Report": "report",
    "Span": "spans",
    "Tensor": "reader",
    "check": "fleet",
    "check_checkpoint": "checkpoints.check",
    "export_checkpoint": "checkpoints.exporter",
    "import_checkpoint": "checkpoints.importer",
    "open": "reader",
    "write": "writer",
}

__all__ = sorted(_HOMES)


def __dir__() -> list[str]:
    return [*globals(), *__all__]


def __getattr__(name: str) -> object:
    """Load what is asked for when it is asked for; a plain check needs little of it."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
