"""A checkpoint of a model with experts in NVFP4, as ModelOpt names and safetensors orders its tensors."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from tools.benching.files import EXPERTS, PROJECTIONS, write_sparse

HIDDEN, INTERMEDIATE, GROUP = 2048, 768, 16
"""The sizes of Qwen3-30B-A3B, and the elements of a group of NVFP4."""

TENSORS_OF_MODULE = 4
"""Weight, scales, outer scale and input scale."""

DTYPE_ORDER = ("F32", "F8_E4M3", "U8")
"""safetensors writes tensors by dtype in this order, then by name."""


class Entry(NamedTuple):
    """A tensor of a header: its name, dtype, shape and size in bytes."""

    name: str
    dtype: str
    shape: list[int]
    size: int


class Checkpoint(NamedTuple):
    """A checkpoint in shards.

    Attributes:
        index_path: of model.safetensors.index.json.
        shards: paths of the shards.
        num_tensors: number of tensors in all shards.
        headers: size of the JSON headers of all shards in bytes.

    """

    index_path: Path
    shards: list[Path]
    num_tensors: int
    headers: int


def build_checkpoint(folder: Path, num_tensors: int, num_shards: int) -> Checkpoint:
    """Write shards without their payloads, the index and the config.

    Args:
        folder: where to; it is made.
        num_tensors: a multiple of TENSORS_OF_MODULE.
        num_shards: the modules are dealt out evenly, in the order of layers; at most one a module.

    """
    folder.mkdir()
    num_modules = num_tensors // TENSORS_OF_MODULE
    modules = islice(module_names(), num_modules)
    shards, weight_map, headers, total = [], {}, 0, 0
    for number in range(num_shards):
        count = num_modules * (number + 1) // num_shards - num_modules * number // num_shards
        entries = [entry for module in islice(modules, count) for entry in entries_of(*module)]
        path = folder / f"model-{number + 1:05}-of-{num_shards:05}.safetensors"
        headers += write_shard(path, entries)
        shards.append(path)
        weight_map.update(dict.fromkeys((entry.name for entry in entries), path.name))
        total += sum(entry.size for entry in entries)
    index = folder / "model.safetensors.index.json"
    index.write_text(
        json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}, indent=2, sort_keys=True)
    )
    config = {"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}}
    (folder / "config.json").write_text(json.dumps(config))
    return Checkpoint(index, shards, num_tensors, headers)


def module_names() -> Iterator[tuple[str, int, int]]:
    """The name, rows and columns of each module, layer after layer, without an end."""
    layer = 0
    while True:
        for expert in range(EXPERTS):
            for projection in PROJECTIONS:
                name = f"model.layers.{layer}.mlp.experts.{expert}.{projection}"
                is_down = projection == "down_proj"
                yield name, *((HIDDEN, INTERMEDIATE) if is_down else (INTERMEDIATE, HIDDEN))
        layer += 1


def entries_of(module: str, rows: int, columns: int) -> list[Entry]:
    """The tensors of a module whose weight has so many rows and columns of elements."""
    groups = columns // GROUP
    return [
        Entry(f"{module}.weight", "U8", [rows, columns // 2], rows * columns // 2),
        Entry(f"{module}.weight_scale", "F8_E4M3", [rows, groups], rows * groups),
        Entry(f"{module}.weight_scale_2", "F32", [], 4),
        Entry(f"{module}.input_scale", "F32", [], 4),
    ]


def write_shard(path: Path, entries: list[Entry]) -> int:
    """Write a safetensors file without its payloads; return the size of its JSON in bytes."""
    fields: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for entry in sorted(entries, key=lambda entry: (DTYPE_ORDER.index(entry.dtype), entry.name)):
        offsets = [end, end + entry.size]
        fields[entry.name] = {"dtype": entry.dtype, "shape": entry.shape, "data_offsets": offsets}
        end += entry.size
    header = json.dumps(fields, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    write_sparse(path, struct.pack("<Q", len(header)) + header, 8 + len(header) + end)
    return len(header)
