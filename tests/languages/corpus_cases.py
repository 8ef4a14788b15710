"""The cases of tests/corpus, and the folder they are in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
CASES: dict[str, dict[str, Any]] = {
    case["file"]: case for case in json.loads((CORPUS / "manifest.json").read_text(encoding="utf-8"))["cases"]
}
"""What the manifest says, by file."""

SOUND = [name for name, case in CASES.items() if case["verdict"] == "OK"]
