"""Breaks of what the JSON files beside a checkpoint say of its quantization."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from tools.breaking import breaks as kinds
from tools.breaking.breaks import Break, Setting
from tools.breaking.folder import INDEX_SUFFIX, Checkpoint

GROUP_SIZES = frozenset({"block_size", "block_structure", "group_size", "weight_block_size"})
WIDTHS = frozenset({"bits", "nbits", "num_bits", "w_bit"})
FORMATS: dict[str, tuple[str, ...]] = {
    "bnb_4bit_quant_type": ("nf4", "fp4"),
    "data_type": ("fp", "int", "nv_fp", "mx_fp"),
    "dtype": ("fp4", "int8", "fp8_e4m3", "int4", "fp6_e2m3", "uint4", "int2"),
    "fmt": ("e4m3", "e5m2"),
    "format": (
        *("nvfp4-pack-quantized", "float-quantized", "pack-quantized", "mxfp8-quantized"),
        *("int-quantized", "mxfp4-pack-quantized", "marlin-24"),
    ),
    "forward_dtype": ("mxfp4", "nvfp4"),
    "mode": ("affine", "mxfp4", "mxfp8", "nvfp4"),
    "packing_format": ("auto_round:auto_gptq", "auto_round:fp8", "auto_round:auto_awq"),
    "quant_algo": ("NVFP4", "FP8", "W4A16_AWQ", "MXFP4", "W8A8_SQ_PER_CHANNEL", "W4A8_MXFP4_FP8"),
    "quant_method": (
        *("awq", "gptq", "fp8", "compressed-tensors", "bitsandbytes", "mxfp4"),
        *("modelopt", "eetq", "fbgemm_fp8"),
    ),
    "weights": ("qfloat8_e4m3fn", "qint4", "qint8"),
    "weights_dtype": ("float4_e2m1fn", "int8", "uint4", "float8_e4m3fn", "int6"),
}
"""By key, formats in which weights are stored; one is replaced by the two that follow it in its row."""

OF_ACTIVATIONS = ("act", "input", "output", "kv_cache")
"""How keys begin below which nothing is said of weights."""


class Said(NamedTuple):
    """What a key says, wherever it says it."""

    kind: str
    key: str
    value: str


def config_breaks(checkpoint: Checkpoint) -> Iterator[Break]:
    """Each value replaced by others, everywhere it stands with its key, so that no copy contradicts."""
    found: dict[Said, Any] = {}
    for owner, key in _places(checkpoint.documents):
        kind = _kind_of(key)
        if kind is not None:
            found.setdefault(Said(kind, key, json.dumps(owner[key])), owner[key])
    for said, value in found.items():
        for other in _others(said, value):
            documents = copy.deepcopy(dict(checkpoint.documents))
            for owner, key in _places(documents):
                if key == said.key and owner[key] == value and type(owner[key]) is type(value):
                    owner[key] = other
            what = f"config: {said.key} {said.value} to {json.dumps(other)}"
            broken = checkpoint._replace(documents=documents)
            yield Break(said.kind, what, broken, frozenset(), setting=Setting(said.key, value, other))


def _kind_of(key: str) -> str | None:
    kinds_by_key = ((GROUP_SIZES, kinds.GROUP_SIZE), (WIDTHS, kinds.WIDTH), (FORMATS, kinds.FORMAT))
    return next((kind for keys, kind in kinds_by_key if key in keys), None)


def _places(documents: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Every key of an object that says how weights are quantized, with the object."""
    for file, document in documents.items():
        if not file.endswith(INDEX_SUFFIX):
            yield from _inside(document, "quant" in file)


def _inside(value: Any, inside: bool) -> Iterator[tuple[dict[str, Any], str]]:
    if isinstance(value, list):
        for item in value:
            yield from _inside(item, inside)
    if isinstance(value, dict):
        for key, item in value.items():
            if key.startswith(OF_ACTIVATIONS):
                continue
            if inside and (not isinstance(item, (dict, list)) or key in GROUP_SIZES):
                yield value, key
            else:
                yield from _inside(item, inside or "quant" in key or "compress" in key)


def _others(said: Said, value: Any) -> list[Any]:
    """What a value is replaced by; nothing where it is none that is known."""
    if said.kind == kinds.GROUP_SIZE:
        return _other_sizes(value)
    if said.kind == kinds.WIDTH:
        return [width for width in (2, 4, 8) if width != value] if value in range(1, 9) else []
    row = FORMATS[said.key]
    places = [
        place for place, one in enumerate(row) if isinstance(value, str) and one.lower() == value.lower()
    ]
    return [one for place in places for one in (row[place + 1 :] + row[:place])[:2]]


def _other_sizes(value: Any) -> list[Any]:
    if isinstance(value, list) and len(value) == 2:
        rows, columns = value
        return [[rows, 2 * columns], [2 * rows, columns], [columns, 1]]
    if isinstance(value, bool) or not isinstance(value, int):
        return []
    return [2 * value, value // 2] if value > 1 else [32]
