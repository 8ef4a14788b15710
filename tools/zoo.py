"""Checkpoints as the tests keep them: a zip each, its large payloads zeros, which take no room in it."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ZOO = Path(__file__).resolve().parent.parent / "tests" / "data" / "zoo"

SUFFIXES = (".gguf", ".json", ".safetensors")
"""How the names of the files end that a check may read."""

NOT_READ = ("generation_config", "special_tokens", "tokenizer", "vocab")
"""How the names of JSON files begin that no check reads."""

NOTE = "NOTE.txt"
"""Says how a checkpoint was made."""

LONGEST_LIST = 2048
"""A list of integers of up to this many bytes is kept: it may be text, a shape or an order of columns."""

LONGEST_NUMBER = 16
"""So is any other payload of up to this many bytes."""

DATE = (1980, 1, 1, 0, 0, 0)


def files_of(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The names and bytes of a checkpoint's files that are kept, by name."""
    for path in sorted(folder.iterdir()):
        read = path.suffix in SUFFIXES and not path.name.startswith(NOT_READ)
        if path.is_file() and (read or path.name == NOTE):
            raw = path.read_bytes()
            yield path.name, (without_payloads(raw) if path.suffix == ".safetensors" else raw)


def every_file(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The names and bytes of all files below a folder, by name."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.relative_to(folder).as_posix(), path.read_bytes()


def without_payloads(raw: bytes) -> bytes:
    """A safetensors file with zeros for the payloads that say nothing of its layout."""
    start = 8 + int.from_bytes(raw[:8], "little")
    header: dict[str, Any] = json.loads(raw[8:start])
    header.pop("__metadata__", None)
    blank = bytearray(raw[:start].ljust(len(raw), b"\0"))
    for entry in header.values():
        begin, end = (start + offset for offset in entry["data_offsets"])
        is_list = len(entry["shape"]) <= 1 and entry["dtype"][0] in "IU"
        if end - begin <= (LONGEST_LIST if is_list else LONGEST_NUMBER):
            blank[begin:end] = raw[begin:end]
    return bytes(blank)


def packed(files: Iterator[tuple[str, bytes]]) -> bytes:
    """A zip of files; the same files give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, raw in files:
            archive.writestr(zipfile.ZipInfo(name, DATE), raw, zipfile.ZIP_DEFLATED, 9)
    return buffer.getvalue()


def unpack(archive: Path, to: Path) -> Path:
    """Unpack a checkpoint into a folder of its name below `to`; return that folder."""
    folder = to / archive.stem
    folder.mkdir()
    with zipfile.ZipFile(archive) as packed_files:
        packed_files.extractall(folder)
    return folder
