"""The header of a safetensors file.

Eight bytes with the length of a JSON object, the object, then the payloads. The
object names each tensor with its dtype, its shape, and where its payload begins and
ends, counted from the end of the header.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import prod
from typing import NamedTuple, TypeAlias

from kiln_check.checkpoints.checkpoint_rules import finding
from kiln_check.checkpoints.formats.extents import judge_payloads
from kiln_check.checkpoints.formats.header import SourceFile, SourceTensor, Type
from kiln_check.checkpoints.formats.json_scan import (
    SPACE,
    JsonError,
    Members,
    Sizes,
    Text,
    after_space,
    sizes,
    skip_value,
    string,
)
from kiln_check.constants import LONGEST_HEADER, MOST_FINDINGS
from kiln_check.generated.kiln_v2_records import MAX_RANK
from kiln_check.report import Finding
from kiln_check.source import Source
from kiln_check.text import plural, quote

LEN_LENGTH = 8
METADATA = "__metadata__"

TYPES = {
    "BOOL": Type("bool"),
    "U8": Type("u8"),
    "I8": Type("i8"),
    "U16": Type("u16"),
    "I16": Type("i16"),
    "U32": Type("u32"),
    "I32": Type("i32"),
    "U64": Type("u64"),
    "I64": Type("i64"),
    "F16": Type("f16"),
    "BF16": Type("bf16"),
    "F32": Type("f32"),
    "F64": Type("f64"),
    "C64": Type("c64"),
    "F8_E4M3": Type("f8e4m3"),
    "F8_E5M2": Type("f8e5m2"),
    "F8_E4M3FNUZ": Type("f8e4m3fnuz"),
    "F8_E5M2FNUZ": Type("f8e5m2fnuz"),
    "F8_E8M0": Type("e8m0"),
    "F6_E2M3": Type("e2m3"),
    "F6_E3M2": Type("e3m2"),
    "F4": Type("e2m1"),
}
"""The dtypes of the format, and what they are in Kiln."""

_NUMBER = r"(?:0|[1-9][0-9]{0,19})"
_SHAPE = rf"\[{SPACE}((?:{_NUMBER}{SPACE}(?:,{SPACE}{_NUMBER}{SPACE}){{0,{MAX_RANK - 1}}})?)\]"
_USUAL = re.compile(
    rf'\{{{SPACE}"dtype"{SPACE}:{SPACE}"(\w{{1,16}})"{SPACE},{SPACE}"shape"{SPACE}:{SPACE}{_SHAPE}{SPACE},'
    rf'{SPACE}"data_offsets"{SPACE}:{SPACE}\[{SPACE}({_NUMBER}){SPACE},{SPACE}({_NUMBER}){SPACE}\]{SPACE}\}}',
    re.ASCII,
)
"""An entry as every writer writes it. White space stands in one place between two signs, so that a match
takes time as the entry is long, whether it succeeds or fails."""

_KEYS = ("dtype", "shape", "data_offsets")


class _Entry(NamedTuple):
    """What the header says of one tensor; `fault` where it says it wrongly, by `rule`."""

    dtype: str = ""
    shape: tuple[int, ...] = ()
    begin: int = 0
    end: int = 0
    fault: str | None = None
    rule: str = "header-entry"


def read_safetensors(source: Source, path: str) -> SourceFile:
    """Read the header of a safetensors file; no payload is read.

    Raises OSError when the source can't be read.
    """
    size = source.size()
    first = source.read(0, LEN_LENGTH)
    len_json = int.from_bytes(first, "little")
    fault = _length_fault(size, len_json, path)
    if fault is not None:
        return SourceFile(path, size, 0, (), (), (), (fault,))
    len_head = LEN_LENGTH + len_json
    text = Text(source.read(LEN_LENGTH, len_json))
    findings: list[Finding] = []
    tensors: dict[str, SourceTensor] = {}
    metadata: dict[str, str] = {}
    try:
        for name, entry, place in _entries(text, path, findings, metadata):
            _add(tensors, findings, name, entry, path, len_head, place)
            if len(findings) >= MOST_FINDINGS:
                message = f"{len(findings)} faults in one header; the rest of it is not read"
                findings.append(finding("header-text", message, path, *place))
                break
    except JsonError as error:
        offset = LEN_LENGTH + text.byte_offset(error.position)
        message = f"the header is not JSON as the format has it at byte {offset}: {error}"
        length = min(1, len_head - offset)
        findings.append(finding("header-text", message, path, offset, length, field="header"))
    except UnicodeDecodeError as error:
        offset = LEN_LENGTH + error.start
        message = f"the header is not UTF-8: byte {offset} is 0x{error.object[error.start]:02x}"
        findings.append(finding("header-text", message, path, offset, 1, field="header"))
    stored, truncated, gaps, more = judge_payloads(
        list(tensors.values()), path, len_head, size, all_known=not findings
    )
    return SourceFile(path, size, len_head, stored, truncated, gaps, (*findings, *more), metadata)


def _length_fault(size: int, length: int, path: str) -> Finding | None:
    if size < LEN_LENGTH:
        message = f"the file has {plural(size, 'byte')}; a safetensors file has at least {LEN_LENGTH}"
    elif length > LONGEST_HEADER:
        message = f"the header claims {length} bytes; the format allows {LONGEST_HEADER}"
    elif LEN_LENGTH + length > size:
        message = f"the header ends at byte {LEN_LENGTH + length}; the file has {size}"
    else:
        return None
    return finding("header-length", message, path, 0, min(size, LEN_LENGTH), field="header length")


def _entries(
    text: Text, path: str, findings: list[Finding], metadata: dict[str, str]
) -> Iterator[tuple[str, _Entry, tuple[int, int]]]:
    """Name and entry of each tensor, and the place of the two in the file: offset and length.

    Raises JsonError, UnicodeDecodeError.
    """
    characters = text.decode()
    seen_metadata = False
    header = Members(characters, 0, _read_value)
    for key, value, start, end in header:
        offset = LEN_LENGTH + text.byte_offset(start)
        place = (offset, LEN_LENGTH + text.byte_offset(end) - offset)
        if key != METADATA:
            yield key, value, place
            continue
        twice, values = value
        metadata.update(values)
        if seen_metadata or twice is not None:
            what = quote(METADATA) if seen_metadata else f"the metadata's key {quote(twice)}"
            findings.append(finding("duplicate-key", f"{what} stands twice in the header", path, *place))
        seen_metadata = True
    position = after_space(characters, header.end)
    if position != len(characters):
        raise JsonError("more after the object's end", position)


_Metadata: TypeAlias = "tuple[str | None, Mapping[str, str]]"
"""The first key that stands twice, if any, and the values."""


def _read_value(text: str, position: int, key: str) -> tuple[_Entry | _Metadata, int]:
    return _read_metadata(text, position) if key == METADATA else _read_entry(text, position)


def _read_metadata(text: str, position: int) -> tuple[_Metadata, int]:
    """The values are strings. There may be null in the place of all."""
    if text.startswith("null", position):
        return (None, {}), position + len("null")
    values: dict[str, str] = {}
    twice = None
    metadata = Members(text, position, string)
    for member in metadata:
        if member.key in values and twice is None:
            twice = member.key
        values[member.key] = member.value
    return (twice, values), metadata.end


def _read_entry(text: str, position: int) -> tuple[_Entry, int]:
    usual = _USUAL.match(text, position)
    if usual is None:
        return _read_unusual_entry(text, position)
    dtype, shape, begin, end = usual.groups()
    dimensions = tuple(map(int, shape.split(","))) if shape else ()
    return _judged(_Entry(dtype, dimensions, int(begin), int(end))), usual.end()


def _read_unusual_entry(text: str, position: int) -> tuple[_Entry, int]:
    """An entry with its keys in another order, or with others, or one that is wrong.

    Raises JsonError.
    """
    if text[position : position + 1] != "{":
        return _Entry(fault="is not an object"), skip_value(text, position)
    members = Members(text, position, _read_field)
    values: dict[str, str | Sizes | None] = {}
    twice = False
    for member in members:
        if member.key in _KEYS:
            twice = twice or member.key in values
            values[member.key] = member.value
    return _of_values(values, twice), members.end


def _read_field(text: str, position: int, key: str) -> tuple[str | Sizes | None, int]:
    """A value of an entry; None where it is not of the type that its key wants, or the key is not known."""
    if key in ("shape", "data_offsets"):
        return sizes(text, position, MAX_RANK)
    if key == "dtype" and text[position : position + 1] == '"':
        return string(text, position)
    return None, skip_value(text, position)


def _of_values(values: dict[str, str | Sizes | None], twice: bool) -> _Entry:
    for key in _KEYS:
        if key not in values:
            return _Entry(fault=f"has no {key}")
    if twice:
        return _Entry(fault="has a key twice")
    dtype, shape, offsets = (values[key] for key in _KEYS)
    if not isinstance(dtype, str):
        return _Entry(fault="has a dtype that is no string")
    if not isinstance(shape, Sizes):
        return _Entry(fault="has a shape that is no list of sizes")
    if not isinstance(offsets, Sizes) or offsets.total != 2:
        return _Entry(fault="has data_offsets that are not two offsets")
    if shape.total > MAX_RANK:
        return _Entry(fault=f"has rank {shape.total}; the greatest is {MAX_RANK}", rule="source-rank")
    begin, end = offsets.first
    return _judged(_Entry(dtype, shape.first, begin, end))


def _judged(entry: _Entry) -> _Entry:
    known = TYPES.get(entry.dtype)
    if known is None:
        return entry._replace(fault=f"has the dtype {quote(entry.dtype)}, which the format has not")
    if any(number >= 1 << 64 for number in (*entry.shape, entry.begin, entry.end)):
        return entry._replace(fault="has a number of more than 64 bits")
    if entry.begin > entry.end:
        return entry._replace(
            fault=f"has data_offsets {entry.begin} to {entry.end}: it ends before it begins"
        )
    if known.bits % 8 and prod(entry.shape) * known.bits % 8:
        return entry._replace(fault=f"{entry.dtype} {list(entry.shape)} does not fill whole bytes")
    return entry


def _add(
    tensors: dict[str, SourceTensor],
    findings: list[Finding],
    name: str,
    entry: _Entry,
    path: str,
    len_head: int,
    place: tuple[int, int],
) -> None:
    """Put a tensor among `tensors`, or what is wrong with its entry among `findings`."""
    offset, length = place
    if name in tensors:
        message = f"tensor {quote(name)} stands twice in the header"
        findings.append(finding("duplicate-key", message, path, offset, length, name=name, field="name"))
    elif entry.fault is not None:
        of_entry = ": its entry" if entry.rule == "header-entry" else ""
        message = f"tensor {quote(name)}{of_entry} {entry.fault}"
        findings.append(finding(entry.rule, message, path, offset, length, name=name, field="entry"))
    else:
        begin, end = len_head + entry.begin, len_head + entry.end
        tensors[name] = SourceTensor(
            name, entry.dtype, TYPES[entry.dtype], entry.shape, path, begin, end - begin, offset, length
        )
