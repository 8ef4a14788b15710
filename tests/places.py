"""Where things lie in the checkout."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests" / "corpus"
CHECKPOINTS = ROOT / "tests" / "data" / "checkpoints"
ZOO = ROOT / "tests" / "data" / "zoo"
REPORTS = ROOT / "tests" / "data" / "reports"
