"""Checkpoints made by hand, and real ones with something changed."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from kiln_check.checkpoints.formats.safetensors import TYPES
from tests.places import CHECKPOINTS

FOLDERS = sorted(path.name for path in CHECKPOINTS.iterdir())

NOT_OF_THE_MODEL = ".npy"


class Made(NamedTuple):
    """A tensor to put into a safetensors file; its bytes count up where none are given."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes | None = None

    def payload(self) -> bytes:
        if self.data is not None:
            return self.data
        length = -(-math.prod(self.shape) * TYPES[self.dtype].bits // 8)
        return bytes(index * 7 % 251 for index in range(length))


def safetensors_bytes(tensors: dict[str, Made], metadata: dict[str, str] | None = None) -> bytes:
    """A file as the library writes it: tensors of wide elements first."""
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    body = b""
    for name in sorted(tensors, key=lambda name: (-TYPES[tensors[name].dtype].bits, name)):
        payload = tensors[name].payload()
        header[name] = {
            "dtype": tensors[name].dtype,
            "shape": list(tensors[name].shape),
            "data_offsets": [len(body), len(body) + len(payload)],
        }
        body += payload
    return with_header(json.dumps(header, separators=(",", ":")).encode(), body)


def with_header(header: bytes, body: bytes = b"", pad: bool = True) -> bytes:
    """A safetensors file of this header; padded with spaces as the library does."""
    if pad:
        header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + body


def split(path: Path) -> tuple[dict[str, Any], bytes]:
    """Header and payloads of a safetensors file."""
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    return json.loads(raw[8:start]), raw[start:]


def tensors_of(path: Path) -> dict[str, Made]:
    """All tensors of a safetensors file."""
    header, body = split(path)
    header.pop("__metadata__", None)
    return {
        name: Made(entry["dtype"], tuple(entry["shape"]), body[slice(*entry["data_offsets"])])
        for name, entry in header.items()
    }


def edit(path: Path, change: Callable[[dict[str, Made]], object]) -> None:
    """Write a file again with its tensors changed."""
    tensors = tensors_of(path)
    change(tensors)
    path.write_bytes(safetensors_bytes(tensors, {"format": "pt"}))


def without_last_row(tensor: Made) -> Made:
    """A tensor cut short by one row."""
    rows, *others = tensor.shape
    payload = tensor.payload()
    return tensor._replace(shape=(rows - 1, *others), data=payload[: len(payload) // rows * (rows - 1)])


def copy_of(folder: str, to: Path) -> Path:
    """A copy of a real checkpoint to change."""
    target = to / folder
    shutil.copytree(CHECKPOINTS / folder, target, ignore=shutil.ignore_patterns(f"*{NOT_OF_THE_MODEL}"))
    return target


def digests(folder: Path) -> dict[str, str]:
    """The sha256 of each file of a model, by its name."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.suffix != NOT_OF_THE_MODEL
    }
