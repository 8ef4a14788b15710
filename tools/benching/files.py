"""Directories of tensors in each format, with payloads that take no room on the disk."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kiln_check.constants import ALIGNMENT, F32, NONE, SCALES, SCALES_AND_OUTER
from kiln_check.directory import LEN_DESCRIPTOR, LEN_HEADER
from kiln_check.generated.kiln_v2_records import (
    DESCRIPTOR,
    DTYPES,
    HEADER_STRUCT,
    MAGIC,
    NO_AXIS,
    NO_INDEX,
    VERSION,
)

CODES = {name: code for code, name in DTYPES.items()}

EXPERTS = 128
PROJECTIONS = ("gate_proj", "up_proj", "down_proj")
LAYER = 1 + EXPERTS * len(PROJECTIONS) * 2
"""Tensors of a layer: one outer scale, then for each projection a weight and its scale."""

ROWS, COLUMNS, GROUP = 64, 128, 16

GGUF_MOST = 10_000
"""Tensors that the GGUF reader is measured on at most."""


def names() -> Iterator[str]:
    """The names of a model with experts, layer after layer, without an end."""
    layer = 0
    while True:
        experts = f"model.layers.{layer}.mlp.experts"
        yield f"{experts}.weight_outer_scale"
        for expert in range(EXPERTS):
            for projection in PROJECTIONS:
                yield f"{experts}.{expert}.{projection}.weight"
                yield f"{experts}.{expert}.{projection}.weight_scale"
        layer += 1


class Case(NamedTuple):
    """Files of as many tensors with the same names, in each format.

    Attributes:
        title: what the table calls it.
        num_tensors: number of tensors.
        kiln, safetensors, gguf: the files; None where there is none.
        head: size of header, directory and names of the Kiln file in bytes.

    """

    title: str
    num_tensors: int
    kiln: Path
    safetensors: Path | None
    gguf: Path | None
    head: int


def build(folder: Path, count: int, *, shuffled: bool = False) -> Case:
    """Build the files of one case; the shuffled one is in Kiln alone."""
    labels = list(islice(names(), count))
    order = np.random.default_rng(4).permutation(count) if shuffled else np.arange(count)
    table = descriptors(count, order)
    lengths = table["len_data"].tolist()
    stem = folder / f"{count}{'-shuffled' if shuffled else ''}"
    kiln, safetensors, gguf = (Path(f"{stem}.{suffix}") for suffix in ("kiln", "safetensors", "gguf"))
    head = write_kiln(kiln, table, labels)
    if shuffled:
        return Case(f"{count:,}, payloads shuffled", count, kiln, None, None, head)
    write_safetensors(safetensors, lengths, labels)
    if count <= GGUF_MOST:
        write_gguf(gguf, lengths, labels)
    return Case(f"{count:,}", count, kiln, safetensors, gguf if count <= GGUF_MOST else None, head)


def descriptors(count: int, order: NDArray[np.int64]) -> NDArray[Any]:
    """Sound descriptors whose payloads lie in the given order; half of the tensors have a scheme.

    Every other layer has scheme 2, the rest scheme 1. ofs_data starts at 0.
    """
    index = np.arange(count)
    place = index % LAYER
    is_outer = place == 0
    is_weight = (place % 2 == 1) & (index + 1 < count)
    with_outer = is_weight & (index // LAYER % 2 == 0)
    table = np.zeros(count, np.dtype(DESCRIPTOR))
    table["dtype"] = np.where(is_outer, F32, np.where(is_weight, CODES["e2m1"], CODES["f8e4m3"]))
    table["rank"] = np.where(is_outer, 0, 2)
    table["scheme"] = np.where(with_outer, SCALES_AND_OUTER, np.where(is_weight, SCALES, NONE))
    table["quant_axis"] = np.where(is_weight, 1, NO_AXIS)
    table["group_size"] = np.where(is_weight, GROUP, 0)
    table["scale_index"] = np.where(is_weight, index + 1, NO_INDEX)
    table["outer_index"] = np.where(with_outer, index - place, NO_INDEX)
    table["shape"][~is_outer, 0] = ROWS
    table["shape"][~is_outer, 1] = np.where(is_weight, COLUMNS, COLUMNS // GROUP)[~is_outer]
    lengths = np.where(is_outer, 4, np.where(is_weight, ROWS * COLUMNS // 2, ROWS * COLUMNS // GROUP))
    rooms = -(-lengths[order] // ALIGNMENT) * ALIGNMENT
    table["len_data"] = lengths
    table["ofs_data"][order] = np.cumsum(rooms) - rooms
    return table


def write_kiln(path: Path, table: NDArray[Any], labels: Sequence[str]) -> int:
    """Write a Kiln file without its payloads; return the size of its head in bytes."""
    pool = "".join(labels).encode()
    lengths = np.array([len(label) for label in labels])
    table["len_name"], table["ofs_name"] = lengths, np.cumsum(lengths) - lengths
    head = LEN_HEADER + LEN_DESCRIPTOR * len(table) + len(pool)
    table["ofs_data"] += np.uint64(-(-head // ALIGNMENT) * ALIGNMENT)
    size = int((table["ofs_data"] + table["len_data"]).max())
    header = struct.pack(HEADER_STRUCT, MAGIC, VERSION, 0, len(table), len(pool), size, b"")
    write_sparse(path, header + table.tobytes() + pool, size)
    return head


def write_safetensors(path: Path, lengths: Sequence[int], labels: Sequence[str]) -> None:
    """Write a safetensors file without its payloads."""
    entries, end = {}, 0
    for label, length in zip(labels, lengths, strict=True):
        entries[label] = {"dtype": "U8", "shape": [length], "data_offsets": [end, end + length]}
        end += length
    header = json.dumps(entries, separators=(",", ":")).encode()
    write_sparse(path, struct.pack("<Q", len(header)) + header, 8 + len(header) + end)


def write_gguf(path: Path, lengths: Sequence[int], labels: Sequence[str]) -> None:
    """Write a GGUF file without its payloads: version 3, no metadata, tensors of type I8."""
    parts, end = [struct.pack("<4sIQQ", b"GGUF", 3, len(labels), 0)], 0
    for label, length in zip(labels, lengths, strict=True):
        raw = label.encode()
        parts.append(struct.pack(f"<Q{len(raw)}sIQIQ", len(raw), raw, 1, length, 24, end))
        end += -(-length // 32) * 32
    head = b"".join(parts)
    write_sparse(path, head, -(-len(head) // 32) * 32 + end)


def write_sparse(path: Path, head: bytes, size: int) -> None:
    path.write_bytes(head)
    os.truncate(path, size)


def write_weights(path: Path, size: int) -> None:
    """A safetensors file of tensors of 1 MiB, whose bytes are there."""
    tensor = os.urandom(1 << 20)
    count = size // len(tensor)
    write_safetensors(path, [len(tensor)] * count, [f"model.layers.{index}.weight" for index in range(count)])
    with path.open("r+b") as file:
        file.seek(8 + int.from_bytes(file.read(8), "little"))
        for _ in range(count):
            file.write(tensor)


def write_small(folder: Path, count: int) -> Path:
    """Write so many Kiln files of 3 tensors, a thousand to a folder; return the first."""
    raw = build(folder, 3).kiln.read_bytes()
    many = folder / "many"
    for number in range(count):
        parent = many / f"{number // 1000:03}"
        parent.mkdir(parents=True, exist_ok=True)
        (parent / f"{number:05}.kiln").write_bytes(raw)
    return many / "000" / "00000.kiln"


def write_broken(path: Path, count: int) -> None:
    """Write a Kiln file in which every tensor breaks rules."""
    table = descriptors(count, np.arange(count))
    table["reserved1"] = 1
    table["foreign_tag"] = 1
    table["group_size"] += 1
    write_kiln(path, table, list(islice(names(), count)))
