#!/usr/bin/env python3
"""Make tests/corpus: one .kiln file a case, and manifest.json.

    tools/build_corpus.py            write what differs, remove .kiln files that no case makes
    tools/build_corpus.py --check    write nothing; say what drifted; exit 1 if anything did

The cases are the functions of tools/corpus/cases_*.py.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.corpus.cases import CASES, RETIRED, CaseError  # noqa: E402

CORPUS = ROOT / "tests" / "corpus"

VERSION = "1.0.0"
"""Of the corpus: see its README for what each part of the number promises."""

SUBJECTS = ("file", "names", "types", "payloads", "scales", "outers", "order")
"""The modules of cases, in the order of the manifest."""


def everything() -> dict[str, bytes]:
    """Make what the corpus folder must hold of generated files: name, bytes."""
    for subject in SUBJECTS:
        importlib.import_module(f"tools.corpus.cases_{subject}")
    files: dict[str, bytes] = {}
    entries = []
    for case in CASES.values():
        raw, entry = case.entry()
        files[entry["file"]] = raw
        entries.append(entry)
    manifest = {
        "$schema": "manifest.schema.json",
        "version": VERSION,
        "retired": list(RETIRED),
        "cases": entries,
    }
    files["manifest.json"] = (json.dumps(manifest, indent=1) + "\n").encode()
    return files


def drift(wanted: dict[str, bytes], folder: Path) -> list[str]:
    """One line for each file of the corpus that is not as the cases make it."""
    present = {path.name for path in folder.glob("*.kiln")}
    lines = [f"{name}: no case makes it" for name in sorted(present - wanted.keys())]
    for name, raw in wanted.items():
        path = folder / name
        if not path.is_file():
            lines.append(f"{name}: missing")
        elif path.read_bytes() != raw:
            lines.append(f"{name}: changed")
    return lines


def write(wanted: dict[str, bytes], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("kiln-v2-*.kiln"):
        if path.name not in wanted:
            path.unlink()
    for name, raw in wanted.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != raw:
            path.write_bytes(raw)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Make the conformance cases of tests/corpus.")
    parser.add_argument("--check", action="store_true", help="say what drifted and write nothing")
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="another folder than tests/corpus")
    options = parser.parse_args(arguments)
    try:
        wanted = everything()
    except CaseError as error:
        print(f"build_corpus.py: {error}", file=sys.stderr)
        return 2
    if options.check:
        lines = drift(wanted, options.corpus)
        print("\n".join(lines) if lines else f"the corpus is as its {len(CASES)} cases make it")
        return 1 if lines else 0
    try:
        write(wanted, options.corpus)
    except OSError as error:
        print(f"build_corpus.py: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    print(f"{len(CASES)} cases, {sum(map(len, wanted.values()))} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
