"""Where the data files lie that the package carries: the corpus, the layout page, the .ksy.

Each is a package of its own, which `package-dir` in pyproject.toml takes from its folder
of the checkout; so they are found in a wheel and in an editable install alike.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from kiln_check.errors import UsageError


def corpus() -> Path:
    """The folder of the conformance corpus; raises UsageError where it is no folder on a disk."""
    return _folder("corpus")


def layout_page() -> Path:
    """The file of the layout page, in Markdown; raises UsageError where it is no file on a disk."""
    return _folder("docs") / "kiln-v2-layout.md"


def ksy() -> Path:
    """The layout for the Kaitai compiler; raises UsageError where it is no file on a disk."""
    return _folder("ksy") / "kiln_v2.ksy"


def _folder(name: str) -> Path:
    folder = files(f"kiln_check.{name}")
    if not isinstance(folder, Path):
        raise UsageError(f"kiln_check.{name} lies in an archive ({folder}): install the package unpacked")
    return folder
