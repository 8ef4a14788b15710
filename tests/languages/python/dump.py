"""Print what the generated Python parser sees in Kiln files, one line of JSON a file.

usage: python dump.py FILE...

Run with the folder generated/python on PYTHONPATH. Python's integers are exact.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from kaitaistruct import BytesIO, KaitaiStream, ValidationFailedError
from kiln_v2 import KilnV2

WIDE = {"len_names", "len_file", "ofs_data", "len_data", "reserved2"}
"""u8 fields; they are written as decimal text. The header's reserved2 is bytes."""

HEADER = ("magic", "version", "reserved1", "num_tensors", "len_names", "len_file", "reserved2")
DESCRIPTOR = (
    "ofs_name", "len_name", "dtype", "rank", "scheme", "quant_axis", "reserved1", "group_size",
    "scale_index", "outer_index", "foreign_tag", "ofs_data", "len_data", "block_elements", "block_bytes",
    "reserved2",
)  # fmt: skip
PLAIN = (
    "dtype_name", "has_name", "element_bits", "is_foreign", "is_quantized", "has_axis", "has_scale",
    "has_outer", "has_groups", "has_payload",
)  # fmt: skip


def main(paths: list[str]) -> None:
    for path in paths:
        data = Path(path).read_bytes()
        print(json.dumps({"file": Path(path).name, **dump(data)}, sort_keys=True, separators=(",", ":")))


def dump(data: bytes) -> dict[str, Any]:
    stream = KaitaiStream(BytesIO(data))
    try:
        file = KilnV2(stream)
    except Exception as error:
        return stop(data, stream.pos(), error)
    return {
        "header": fields(file.header, HEADER),
        "stopped": None,
        "names": file.names.hex(),
        "descriptors": [descriptor(one, file) for one in file.descriptors],
    }


def stop(data: bytes, position: int, error: Exception) -> dict[str, Any]:
    """Say in which part the parser was; the header tells the parts, if it can be read."""
    kind = "validation" if isinstance(error, ValidationFailedError) else "end"
    header, part, index = None, "header", None
    try:
        header = KilnV2.Header(KaitaiStream(BytesIO(data)))
    except Exception:  # the same one: the parser stopped there
        pass
    else:
        part = "names"
        if position < header.ofs_names:
            part, index = "descriptors", (position - header.ofs_descriptors) // header.len_descriptor
    return {
        "header": header and fields(header, HEADER),
        "stopped": {"part": part, "index": index, "error": kind},
        "names": None,
        "descriptors": None,
    }


def fields(record: Any, names: tuple[str, ...]) -> dict[str, Any]:
    values = {name: getattr(record, name) for name in names}
    return {
        name: value.hex() if isinstance(value, bytes) else str(value) if name in WIDE else value
        for name, value in values.items()
    }


def descriptor(one: KilnV2.Descriptor, file: KilnV2) -> dict[str, Any]:
    payload = one.payload
    return fields(one, DESCRIPTOR) | {
        "shape": [str(length) for length in one.shape],
        **{name: getattr(one, name) for name in PLAIN},
        "name": text(one),
        "encoded_name": None if one.encoded_name is None else one.encoded_name.hex(),
        "dtype_enum": getattr(one.dtype_enum, "name", None),
        "scheme_enum": getattr(one.scheme_enum, "name", None),
        "element_count": number(one.element_count),
        "num_groups": number(one.num_groups),
        "num_scales": number(one.num_scales),
        "scale": link(one.scale, file),
        "outer": link(one.outer, file),
        "payload": None
        if payload is None
        else {"length": str(len(payload)), "sha256": hashlib.sha256(payload).hexdigest()},
    }


def text(one: KilnV2.Descriptor) -> str | None:
    try:
        name: str | None = one.name
    except UnicodeDecodeError:
        return None
    return name


def number(value: int | None) -> str | None:
    return None if value is None else str(value)


def link(target: KilnV2.Descriptor | None, file: KilnV2) -> int | None:
    """Return the index of the very descriptor that the parser hands back."""
    return next((i for i, one in enumerate(file.descriptors) if one is target), None)


if __name__ == "__main__":
    main(sys.argv[1:])
