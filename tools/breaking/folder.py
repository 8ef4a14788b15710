"""The folder of a checkpoint, as it is read, changed and written again."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

BITS = {
    "BOOL": 8,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "F8_E4M3": 8,
    "F8_E5M2": 8,
    "F8_E8M0": 8,
    "I8": 8,
    "U8": 8,
    "BF16": 16,
    "F16": 16,
    "I16": 16,
    "U16": 16,
    "F32": 32,
    "I32": 32,
    "U32": 32,
    "F64": 64,
    "I64": 64,
    "U64": 64,
}
"""Width of an element by its dtype's name in safetensors."""

LONGEST_KEPT = 2048
"""Payloads of up to this many bytes are kept; the others are written as zeros."""

INDEX_SUFFIX = ".index.json"


class Tensor(NamedTuple):
    """A tensor of a safetensors file; `payload` is None where it is written as zeros."""

    dtype: str
    shape: tuple[int, ...]
    file: str
    payload: bytes | None = None

    @property
    def num_elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def length(self) -> int:
        """Bytes of the payload."""
        return -(-self.num_elements * BITS[self.dtype] // 8)

    def text(self) -> str:
        """As in "F32 [64, 1]"."""
        return f"{self.dtype} {list(self.shape)}"


class Checkpoint(NamedTuple):
    """What a folder holds.

    Attributes:
        name: the folder's.
        metadata: the `__metadata__` of each safetensors file; None where there is none.
        tensors: all tensors of the safetensors files, by name.
        documents: the JSON files beside them, by file name.
        ggufs: the bytes of the GGUF files, by file name.

    """

    name: str
    metadata: Mapping[str, Mapping[str, str] | None]
    tensors: Mapping[str, Tensor]
    documents: Mapping[str, Any]
    ggufs: Mapping[str, bytes]


def read(folder: Path) -> Checkpoint:
    """Read a checkpoint's folder.

    Raises ValueError where two files have a tensor of the same name.
    """
    metadata: dict[str, Mapping[str, str] | None] = {}
    tensors: dict[str, Tensor] = {}
    documents: dict[str, Any] = {}
    ggufs: dict[str, bytes] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix == ".safetensors":
            metadata[path.name], found = _read_safetensors(path)
            if twice := found.keys() & tensors.keys():
                raise ValueError(f"{path}: another file of the folder has a tensor {min(twice)} too")
            tensors.update(found)
        elif path.suffix == ".json":
            documents[path.name] = json.loads(path.read_bytes())
        elif path.suffix == ".gguf":
            ggufs[path.name] = path.read_bytes()
    return Checkpoint(folder.name, metadata, tensors, documents, ggufs)


def _read_safetensors(path: Path) -> tuple[Mapping[str, str] | None, dict[str, Tensor]]:
    """The metadata of a file, and its tensors."""
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:start])
    metadata = header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        payload = raw[start + begin : start + end]
        kept = payload if len(payload) <= LONGEST_KEPT and any(payload) else None
        tensors[name] = Tensor(entry["dtype"], tuple(entry["shape"]), path.name, kept)
    return metadata, tensors


def write(checkpoint: Checkpoint, folder: Path) -> None:
    """Write a checkpoint's files; those of another that has the same file names are replaced."""
    for file, metadata in checkpoint.metadata.items():
        tensors = {name: one for name, one in checkpoint.tensors.items() if one.file == file}
        _write_safetensors(folder / file, metadata, tensors)
    for file, document in checkpoint.documents.items():
        if file.endswith(INDEX_SUFFIX):
            document = _reindexed(document, checkpoint.tensors)
        (folder / file).write_text(json.dumps(document, indent=2), encoding="utf-8")
    for file, raw in checkpoint.ggufs.items():
        (folder / file).write_bytes(raw)


def _write_safetensors(path: Path, metadata: Mapping[str, str] | None, tensors: Mapping[str, Tensor]) -> None:
    """Write a file as the library does: tensors of wide elements first, so that each is aligned."""
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    payloads = {}
    end = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: (-BITS[item[1].dtype], item[0])):
        begin, end = end, end + tensor.length
        header[name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [begin, end]}
        if tensor.payload is not None:
            payloads[begin] = tensor.payload[: tensor.length]
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        start = file.tell()
        file.truncate(start + end)
        for begin, payload in payloads.items():
            file.seek(start + begin)
            file.write(payload)


def _reindexed(index: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """An index without the tensors that are gone, so that it gives none of them away."""
    weight_map = {name: file for name, file in index["weight_map"].items() if name in tensors}
    total = {"total_size": sum(tensor.length for tensor in tensors.values())}
    return {**index, "metadata": {**index.get("metadata", {}), **total}, "weight_map": weight_map}
