"""What the bytes of a case measure, for the table of boundaries in test_corpus.

Reads the generated record table and no rule of the package: a measure is a number, a
shape or a truth that the boundaries name, taken from the file as it is.
"""

from __future__ import annotations

import math
import struct
from typing import Any

from kiln_check.generated import kiln_v2_records as records

Measures = dict[str, Any]

WRAPS = (32, 64)


def _record(raw: bytes, offset: int, layout: dict[str, Any], struct_format: str) -> dict[str, Any]:
    values = struct.unpack_from(struct_format, raw, offset)
    names = layout["names"]
    fields = dict(zip(names, values[: len(names)], strict=True))
    fields[names[-1]] = values[len(names) - 1] if len(values) == len(names) else values[len(names) - 1 :]
    return fields


def measure(raw: bytes) -> tuple[Measures, list[Measures]]:
    """Measure a file: as a whole, and each of its tensors.

    A file that is too short for its directory has no tensors.
    """
    whole: Measures = {"size": len(raw)}
    if len(raw) < records.HEADER["itemsize"]:
        return whole, []
    header = _record(raw, 0, records.HEADER, records.HEADER_STRUCT)
    start = records.HEADER["itemsize"] + records.DESCRIPTOR["itemsize"] * header["num_tensors"]
    end = start + header["len_names"]
    whole.update(header)
    whole.update(
        {"size - directory": len(raw) - start, "size - names": len(raw) - end, "head mod 2^32": end % 2**32}
    )
    whole["len_file - size"] = header["len_file"] - len(raw)
    whole["head mod 2^64"] = end % 2**64
    if end > len(raw):
        return whole, []
    tensors = [
        _record(raw, records.HEADER["itemsize"] + records.DESCRIPTOR["itemsize"] * index, *_DESCRIPTOR)
        for index in range(header["num_tensors"])
    ]
    whole["size - data"] = len(raw) - max((t["ofs_data"] + t["len_data"] for t in tensors), default=end)
    for index, tensor in enumerate(tensors):
        _measure_payload(tensor, header, end, index, tensors)
        _measure_name(tensor, raw[start:end])
    for index, tensor in enumerate(tensors):
        if tensor["scheme"] in (1, 2):
            _measure_links(index, tensors)
    return whole, tensors


_DESCRIPTOR = (records.DESCRIPTOR, records.DESCRIPTOR_STRUCT)


def _measure_name(tensor: Measures, pool: bytes) -> None:
    stop = tensor["ofs_name"] + tensor["len_name"]
    tensor["name - pool"] = stop - len(pool)
    raw = pool[tensor["ofs_name"] : stop]
    try:
        tensor["code points"] = {ord(letter) for letter in raw.decode()}
    except UnicodeDecodeError:
        tensor["code points"] = None


def _measure_payload(
    tensor: Measures, header: Measures, end: int, index: int, tensors: list[Measures]
) -> None:
    tensor["type"] = records.DTYPES.get(tensor["dtype"])
    bits = tensor["dtype"] & 0xFF
    tensor["tail"] = any(tensor["shape"][tensor["rank"] :])
    tensor["dims"] = tensor["shape"][: tensor["rank"]]
    tensor["count"] = count = math.prod(tensor["dims"])
    if tensor["type"] == "foreign":
        elements = tensor["block_elements"]
        tensor["count mod block"] = count % elements if elements else None
        expected = count // elements * tensor["block_bytes"] if elements else 0
        tensor["rest"] = 0
    else:
        expected = -(-count * bits // 8)
        tensor["rest"] = count * bits % 8
    _difference(tensor, "length", tensor["len_data"], expected)
    tensor["ofs_data mod 64"] = (tensor["ofs_data"] + 32) % 64 - 32
    tensor["data - head"] = tensor["ofs_data"] - end
    tensor["end - file"] = tensor["ofs_data"] + tensor["len_data"] - header["len_file"]
    tensor["end mod 2^64"] = (tensor["ofs_data"] + tensor["len_data"]) % 2**64
    before = [
        (other["ofs_data"], other["len_data"])
        for place, other in enumerate(tensors)
        if (other["ofs_data"], place) < (tensor["ofs_data"], index)
    ]
    own = (tensor["ofs_data"], tensor["len_data"])
    tensor["tied"] = own in before and own[1] > 0
    tensor["shared bytes"] = max(
        (min(a + n, own[0] + own[1]) - own[0] for a, n in before if (a, n) != own), default=None
    )


def _difference(tensor: Measures, what: str, there: int, expected: int) -> None:
    tensor[what] = there - expected
    for wrap in WRAPS:
        tensor[f"{what} wraps {wrap}"] = there != expected and (there - expected) % 2**wrap == 0


def _measure_links(index: int, tensors: list[Measures]) -> None:
    tensor = tensors[index]
    axis, rank, group = tensor["quant_axis"], tensor["rank"], tensor["group_size"]
    tensor["axis - rank"] = axis - rank
    tensor["scale - tensors"] = tensor["scale_index"] - len(tensors)
    tensor["outer - tensors"] = tensor["outer_index"] - len(tensors)
    scale = tensors[tensor["scale_index"]] if tensor["scale_index"] < len(tensors) else None
    outer = tensors[tensor["outer_index"]] if tensor["outer_index"] < len(tensors) else None
    tensor["scale is self"] = tensor["scale_index"] == index
    tensor["outer is self"] = tensor["outer_index"] == index
    tensor["outer is scale"] = tensor["outer_index"] == tensor["scale_index"]
    tensor["scale scheme"] = scale and scale["scheme"]
    tensor["outer scheme"] = outer and outer["scheme"]
    tensor["scale cycle"] = scale is not None and scale is not tensor and scale["scale_index"] == index
    tensor["outer cycle"] = outer is not None and outer is not tensor and outer["outer_index"] == index
    others = [other for place, other in enumerate(tensors) if place != index and other["scheme"] in (1, 2)]
    tensor["scale shared"] = any(other["scale_index"] == tensor["scale_index"] for other in others)
    if outer is not None and not outer["tail"]:
        tensor["outer dims"] = outer["dims"]
        tensor["outer type"] = outer["type"]
        tensor["outer shared"] = any(other["outer_index"] == tensor["outer_index"] for other in others)
        tensor["outer is a scale"] = any(other["scale_index"] == tensor["outer_index"] for other in others)
        _difference(tensor, "outer count", outer["count"], 1)
    if scale is None or axis >= rank or rank > records.MAX_RANK or not group:
        return
    dims = tensor["dims"]
    rest = math.prod(dims[:axis] + dims[axis + 1 :])
    tensor["group - dimension"] = group - dims[axis]
    tensor["full"] = dims[axis] % group == 0
    tensor["axis is"] = _place(axis, rank)
    tensor["other is 0"] = rest == 0
    tensor["due"] = -(-dims[axis] // group) * rest
    _difference(tensor, "scales", scale["count"], tensor["due"])


def _place(axis: int, rank: int) -> str:
    if rank == 1:
        return "only"
    return "first" if axis == 0 else "last" if axis == rank - 1 else "middle"
