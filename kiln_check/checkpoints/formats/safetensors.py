"""The header of a safetensors file.

Eight bytes with the length of a JSON object, the object, then the payloads. The
object names each tensor with its dtype, its shape, and where its payload begins and
ends, counted from the end of the header.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias

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

_NUMBER = r"(?:0|[1-9][0-9]{0,18})"
_KIND = r'\{ ?"dtype": ?"%s", ?"shape": ?\[%s\], ?'
_NAME = r'"([ !#-\[\]-~]*)": ?'
_USUAL = re.compile(
    _NAME
    + rf'({_KIND % (r"[A-Z0-9_]+", "[0-9, ]*")})"data_offsets": ?\[({_NUMBER}), ?({_NUMBER})\] ?\}}(,{SPACE})'
)
"""A member as every writer writes it, with its comma: name, dtype and shape, begin, end. A match takes time
as the member is long, whether it succeeds or fails."""

_USUAL_KIND = re.compile(_KIND % ("([A-Z0-9_]+)", rf"((?:{_NUMBER}(?:, ?{_NUMBER}){{0,{MAX_RANK - 1}}})?)"))
"""Dtype and shape of such a member: all numbers have less than 64 bits."""

_KEYS = ("dtype", "shape", "data_offsets")


class _Entry(NamedTuple):
    """What the header says of one tensor; `fault` where it says it wrongly, by `rule`."""

    dtype: str = ""
    shape: tuple[int, ...] = ()
    begin: int = 0
    end: int = 0
    fault: str | None = None
    rule: str = "header-entry"


class _Header(NamedTuple):
    """A header that is read, and what was found in it so far."""

    text: Text
    path: str
    len_head: int
    tensors: dict[str, SourceTensor]
    metadata: dict[str, str]
    findings: list[Finding]

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Offset in the file and length, in bytes, of the characters from `start` to `end`."""
        offset = LEN_LENGTH + self.text.byte_offset(start)
        return offset, LEN_LENGTH + self.text.byte_offset(end) - offset


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
    header = _Header(Text(source.read(LEN_LENGTH, len_json)), path, len_head, {}, {}, [])
    _read_header(header)
    findings = header.findings
    tensors = list(header.tensors.values())
    stored, truncated, gaps, more = judge_payloads(tensors, path, len_head, size, all_known=not findings)
    if not findings and all(tensor.shape == (0,) for tensor in tensors):
        findings.append(_empty(tensors, path, len_head))
    return SourceFile(path, size, len_head, stored, truncated, gaps, (*findings, *more), header.metadata)


def _read_header(header: _Header) -> None:
    """Read all members; where that can't be, say why."""
    findings = header.findings
    try:
        for key, value, place in _members(header):
            if key == METADATA:
                header.metadata.update(value)
            else:
                _add(header, key, value, place)
            if len(findings) >= MOST_FINDINGS:
                message = f"{len(findings)} faults in one header; the rest of it is not read"
                findings.append(finding("header-text", message, header.path, *place))
                break
    except JsonError as error:
        offset = LEN_LENGTH + header.text.byte_offset(error.position)
        message = f"the header is not JSON as the format has it at byte {offset}: {error}"
        place = (offset, min(1, header.len_head - offset))
        findings.append(finding("header-text", message, header.path, *place, field="header"))
    except UnicodeDecodeError as error:
        offset = LEN_LENGTH + error.start
        message = f"the header is not UTF-8: byte {offset} is 0x{error.object[error.start]:02x}"
        findings.append(finding("header-text", message, header.path, offset, 1, field="header"))


def _empty(tensors: Sequence[SourceTensor], path: str, len_head: int) -> Finding:
    """That a file has nothing to load; a warning."""
    holds = f"nothing but {plural(len(tensors), 'tensor')} of shape [0]" if tensors else "no tensor"
    return finding("no-element", f"the file holds {holds}", path, 0, len_head, field="header")


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


def _members(header: _Header) -> Iterator[tuple[str, Any, tuple[int, int]]]:
    """Key, value and place of the metadata and of each tensor that is not written as usual.

    All others are put among the header's tensors meanwhile. A place is offset and length in bytes.

    Raises JsonError, UnicodeDecodeError.
    """
    characters = header.text.decode()
    seen_metadata = False
    members = Members(characters, 0, _read_value, _Usual(header, characters).pass_over)
    for key, value, start, end in members:
        place = header.place(start, end)
        if key == METADATA:
            twice, value = value
            if seen_metadata or twice is not None:
                what = quote(METADATA) if seen_metadata else f"the metadata's key {quote(twice)}"
                message = f"{what} stands twice in the header"
                header.findings.append(finding("duplicate-key", message, header.path, *place))
            seen_metadata = True
        yield key, value, place
    position = after_space(characters, members.end)
    if position != len(characters):
        raise JsonError("more after the object's end", position)


class _Usual:
    """Puts members that are written as usual, and sound, among a header's tensors."""

    def __init__(self, header: _Header, characters: str) -> None:
        self._header = header
        self._characters = characters
        self._kinds: dict[str, _Kind | None] = {}

    def pass_over(self, position: int) -> int:
        """The position of the next member that is not usual, or not sound, or the last."""
        characters, kinds, tensors = self._characters, self._kinds, self._header.tensors
        path, len_head = self._header.path, self._header.len_head
        to_bytes = self._header.place(position, position)[0] - position
        while (found := _USUAL.match(characters, position)) is not None:
            name, text, begin, end, _ = found.groups()
            if text not in kinds:
                kinds[text] = _kind(text)
            kind = kinds[text]
            offset = int(begin)
            length = int(end) - offset
            if kind is None or length < 0 or name in tensors or name == METADATA:
                break
            place = (position + to_bytes, found.start(5) - position)
            tensors[name] = SourceTensor(name, *kind, path, len_head + offset, length, *place)
            position = found.end()
        return position


_Kind: TypeAlias = tuple[str, Type, tuple[int, ...]]
"""A dtype, the same in Kiln, and a shape."""


def _kind(text: str) -> _Kind | None:
    """What a usual member says of dtype and shape; None where there is anything to find in that."""
    usual = _USUAL_KIND.fullmatch(text)
    type_ = TYPES.get(usual[1]) if usual is not None else None
    if usual is None or type_ is None:
        return None
    shape = tuple(map(int, usual[2].split(","))) if usual[2] else ()
    return None if prod(shape) * type_.bits % 8 else (usual[1], type_, shape)


_Metadata: TypeAlias = "tuple[str | None, Mapping[str, str]]"
"""The first key that stands twice, if any, and the values."""


def _read_value(text: str, position: int, key: str) -> tuple[_Entry | _Metadata, int]:
    return _read_metadata(text, position) if key == METADATA else _read_entry(text, position)


def _read_metadata(text: str, position: int) -> tuple[_Metadata, int]:
    """The values are strings. There may be null in the place of all.

    Raises JsonError, which names the metadata and the key.
    """
    if text.startswith("null", position):
        return (None, {}), position + len("null")
    if text[position : position + 1] != "{":
        raise JsonError(f"{quote(METADATA)} must be an object of strings", position)
    values: dict[str, str] = {}
    twice = None
    metadata = Members(text, position, _read_metadata_value)
    for member in metadata:
        if member.key in values and twice is None:
            twice = member.key
        values[member.key] = member.value
    return (twice, values), metadata.end


def _read_metadata_value(text: str, position: int, key: str) -> tuple[str, int]:
    try:
        return string(text, position)
    except JsonError as error:
        message = f"the value of {quote(key)} in {quote(METADATA)} must be a string"
        raise JsonError(message, error.position) from error


def _read_entry(text: str, position: int) -> tuple[_Entry, int]:
    """An entry in any form that JSON has. Raises JsonError."""
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


def _add(header: _Header, name: str, entry: _Entry, place: tuple[int, int]) -> None:
    """Put a tensor among the header's, or what is wrong with its entry among the findings."""
    if name in header.tensors:
        rule, message, field = "duplicate-key", f"tensor {quote(name)} stands twice in the header", "name"
    elif entry.fault is not None:
        of_entry = ": its entry" if entry.rule == "header-entry" else ""
        rule, message, field = entry.rule, f"tensor {quote(name)}{of_entry} {entry.fault}", "entry"
    else:
        begin, length = header.len_head + entry.begin, entry.end - entry.begin
        type_ = TYPES[entry.dtype]
        header.tensors[name] = SourceTensor(
            name, entry.dtype, type_, entry.shape, header.path, begin, length, *place
        )
        return
    header.findings.append(finding(rule, message, header.path, *place, name=name, field=field))
