#!/usr/bin/env python3
"""Make everything under generated/ from ksy/kiln_v2.ksy.

    tools/generate.py                            write generated/
    tools/generate.py --check                    say what is out of date; exit 1 if anything is
    tools/generate.py --language X --out DIR     any target of the compiler, somewhere else

Needs Node.js with npm: the compiler is the npm package kaitai-struct-compiler at
the version that tools/package-lock.json pins. It is installed into
tools/node_modules the first time.
"""

from __future__ import annotations

import argparse
import json
import pprint
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / "tools"
KSY = ROOT / "ksy" / "kiln_v2.ksy"
GENERATED = ROOT / "generated"

LANGUAGES = ("go", "java", "javascript", "python")
"""The targets whose output is committed: those whose runtime the tests can install and run."""

TARGETS = (
    "construct",
    "cpp_stl",
    "csharp",
    "go",
    "graphviz",
    "html",
    "java",
    "javascript",
    "lua",
    "nim",
    "perl",
    "php",
    "python",
    "ruby",
    "rust",
)
"""The targets that the compiler has."""

PACKAGES = {"go": "package kiln", "java": "package kiln;"}
"""The package line that the npm build of the compiler leaves out, by target.

Go needs one. Java does without, but classes of the unnamed package can't be
imported from any other.
"""

FOLDERS = {"java": "kiln"}
"""Where under generated/LANGUAGE the files stand, where the language wants it in a folder of its own."""

NOTICE = "# Made from ksy/kiln_v2.ksy by tools/generate.py; edit the .ksy, not this file.\n"


class GenerateError(Exception):
    """Nothing could be generated; the text says why in one line."""


def install_compiler() -> None:
    """Install the pinned compiler unless it is there already.

    Raises GenerateError without Node.js or npm, or when npm fails.
    """
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise GenerateError(f"{program} is needed and was not found on PATH")
    lock = json.loads((TOOLS / "package-lock.json").read_text())
    wanted = lock["packages"]["node_modules/kaitai-struct-compiler"]["version"]
    installed = TOOLS / "node_modules" / "kaitai-struct-compiler" / "package.json"
    if installed.exists() and json.loads(installed.read_text())["version"] == wanted:
        return
    done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=TOOLS, capture_output=True, text=True)
    if done.returncode != 0:
        raise GenerateError("npm ci failed: " + " ".join(done.stderr.split())[:400])


def compile_ksy(languages: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, dict[str, str]]]:
    """Return the .ksy as a dict, and for each language its files (path: text).

    Raises GenerateError when the compiler refuses the .ksy.
    """
    install_compiler()
    command = ["node", str(TOOLS / "compile.mjs"), str(KSY), *languages]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise GenerateError("the compiler refused the .ksy: " + done.stderr.strip())
    answer = json.loads(done.stdout)
    files = {
        language: {
            (Path(FOLDERS.get(language, "")) / path.lstrip("/")).as_posix(): with_package(language, text)
            for path, text in outputs.items()
        }
        for language, outputs in answer["files"].items()
    }
    return answer["spec"], files


def with_package(language: str, text: str) -> str:
    """Return the text with its package line, which stands before the imports."""
    if language not in PACKAGES:
        return text
    return text.replace("\nimport ", f"\n{PACKAGES[language]}\n\nimport ", 1)


class Record:
    """A type of the .ksy whose seq has a fixed size, as columns."""

    def __init__(self, seq: list[dict[str, Any]]) -> None:
        self.names: list[str] = []
        self.formats: list[Any] = []
        self.offsets: list[int] = []
        self.sizes: list[int] = []
        self.struct = "<"
        for attribute in seq:
            self._add(attribute)

    @property
    def itemsize(self) -> int:
        return self.offsets[-1] + self.sizes[-1]

    def _add(self, attribute: dict[str, Any]) -> None:
        kind = attribute.get("type")
        repeat = attribute.get("repeat-expr", 1)
        if kind is None:
            size = len(contents(attribute)) if "contents" in attribute else attribute["size"]
            numpy_format, struct_format = f"V{size}", f"{size}s"
        elif kind in ("u1", "u2", "u4", "u8"):
            size = int(kind[1])
            numpy_format = f"<u{size}"
            struct_format = {1: "B", 2: "H", 4: "I", 8: "Q"}[size]
        else:
            raise GenerateError(f"{attribute['id']}: a record has no place for the type {kind}")
        self.offsets.append(self.itemsize if self.names else 0)
        self.names.append(attribute["id"])
        self.sizes.append(size * repeat)
        self.formats.append(numpy_format if repeat == 1 else (numpy_format, (repeat,)))
        self.struct += struct_format if repeat == 1 else f"{repeat}{struct_format}"


def contents(attribute: dict[str, Any]) -> bytes:
    """The bytes of a `contents` key."""
    return b"".join(
        part.encode() if isinstance(part, str) else bytes([part]) for part in attribute["contents"]
    )


def records_module(spec: dict[str, Any]) -> str:
    """The text of generated/python/kiln_v2_records.py."""
    header_seq = spec["types"]["header"]["seq"]
    descriptor = spec["types"]["descriptor"]
    by_id = {attribute["id"]: attribute for attribute in header_seq}
    page_names = {
        attribute["id"]: attribute["-orig-id"]
        for attribute in header_seq + descriptor["seq"]
        if "-orig-id" in attribute
    }
    constants: list[tuple[str, Any, str]] = [
        ("MAGIC", contents(by_id["magic"]), "The first bytes of every file."),
        ("VERSION", by_id["version"]["valid"], "The version of the layout."),
    ]
    for name in ("no_axis", "no_index", "max_rank"):
        instance = descriptor["instances"][name]
        value = instance["value"]
        number = value if isinstance(value, int) else int(value.split(".")[0], 0)
        constants.append((name.upper(), number, instance["doc"].strip()))
    constants.append(
        ("PAGE_NAMES", page_names, "What the layout page calls a field, where the .ksy had to differ.")
    )
    for name in ("dtype", "scheme"):
        table = {int(code): entry["id"] for code, entry in spec["enums"][name].items()}
        constants.append((name.upper() + "S", table, f"The name of each {name}, by code."))
    for name, seq in (("HEADER", header_seq), ("DESCRIPTOR", descriptor["seq"])):
        record = Record(seq)
        columns = {
            "names": record.names,
            "formats": record.formats,
            "offsets": record.offsets,
            "itemsize": record.itemsize,
        }
        constants.append(
            (name, columns, "A record as numpy.dtype takes it: names, formats, offsets in bytes.")
        )
        sizes = dict(zip(record.names, record.sizes, strict=True))
        constants.append((name + "_SIZES", sizes, "Size of each field in bytes."))
        constants.append((name + "_STRUCT", record.struct, "The record as struct.Struct takes it."))

    title = '"""The fixed-size records and the constants of Kiln v2, as plain data."""\n'
    lines = [NOTICE, title, "from typing import Any\n"]
    for name, value, doc in constants:
        text = pprint.pformat(value, width=96, sort_dicts=False)
        annotation = ": Any" if name in ("HEADER", "DESCRIPTOR") else ""
        lines.append(f'{name}{annotation} = {text}\n"""{doc}"""\n')
    return "\n".join(lines)


def everything() -> dict[Path, str]:
    """What generated/ must hold: path relative to it, text."""
    spec, files = compile_ksy(LANGUAGES)
    files["python"]["kiln_v2_records.py"] = records_module(spec)
    files["python"]["__init__.py"] = NOTICE
    return {
        Path(language) / path: text for language, outputs in files.items() for path, text in outputs.items()
    }


def out_of_date(wanted: dict[Path, str]) -> list[str]:
    """One line for each file under generated/ that is not as it should be."""
    present = {
        path.relative_to(GENERATED)
        for path in GENERATED.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    lines = [
        f"generated/{path.as_posix()}: not made from the .ksy" for path in sorted(present - wanted.keys())
    ]
    for path, text in sorted(wanted.items()):
        if path not in present:
            lines.append(f"generated/{path.as_posix()}: missing")
        elif (GENERATED / path).read_bytes() != text.encode():
            lines.append(f"generated/{path.as_posix()}: out of date")
    return lines


def write_files(files: dict[Path, str], out: Path) -> None:
    for path, text in files.items():
        target = out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode())


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Make everything under generated/ from ksy/kiln_v2.ksy.")
    parser.add_argument("--check", action="store_true", help="say what is out of date and write nothing")
    parser.add_argument("--language", choices=TARGETS, help="make this target only, into --out")
    parser.add_argument("--out", type=Path, help="the folder for --language")
    options = parser.parse_args(arguments)
    if (options.language is None) != (options.out is None) or (options.language and options.check):
        parser.error("--language and --out go together, and without --check")
    try:
        if options.language:
            _, files = compile_ksy((options.language,))
            write_files({Path(path): text for path, text in files[options.language].items()}, options.out)
            return 0
        wanted = everything()
    except GenerateError as error:
        print(f"generate.py: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"generate.py: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    if options.check:
        lines = out_of_date(wanted)
        print("\n".join(lines) if lines else "generated/ is up to date")
        return 1 if lines else 0
    write_files(wanted, GENERATED)
    for path in GENERATED.rglob("*"):
        if path.is_file() and path.relative_to(GENERATED) not in wanted and "__pycache__" not in path.parts:
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
