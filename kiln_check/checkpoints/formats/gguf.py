"""The header of a GGUF file.

Magic, version, two counts, then keys with values of thirteen types, then for each
tensor its name, dimensions (innermost first), ggml type and offset. Payloads begin
at the next multiple of the alignment, and offsets count from there. Numbers are
little-endian, or from version 3 on big-endian, those of the payloads too.

What readers refuse beside this is as in llama.cpp, ggml/src/gguf.cpp.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod
from typing import NamedTuple

from kiln_check.checkpoints.checkpoint_rules import finding
from kiln_check.checkpoints.formats.extents import judge_payloads
from kiln_check.checkpoints.formats.ggml_types import bound, fills_blocks, is_unknown, length_of, type_of
from kiln_check.checkpoints.formats.gguf_cursor import MAGIC, Cursor, HeaderError
from kiln_check.checkpoints.formats.header import SourceFile, SourceTensor, SplitKey
from kiln_check.constants import (
    DEEPEST_GGUF_ARRAY,
    LARGEST_BLOCK,
    LONGEST_GGML_NAME,
    MOST_DIMENSIONS,
    MOST_FINDINGS,
    MOST_GGML_DIMENSIONS,
)
from kiln_check.report import Finding
from kiln_check.source import Source
from kiln_check.text import plural, quote

VERSIONS = (2, 3)
BIG_ENDIAN_VERSIONS = (3,)

SMALLEST_PAIR = 8 + 4 + 1
"""Bytes of a key without characters, its type, and the smallest value."""

SMALLEST_ENTRY = 8 + 4 + 4 + 8
"""Bytes that describe a tensor without name and dimensions."""

ALIGNMENT_KEY = b"general.alignment"
USUAL_ALIGNMENT = 32

VALUE_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of a value by its type: u8 i8 u16 i16 u32 i32 f32 bool u64 i64 f64."""

U16, U32, I32, STRING, ARRAY = 2, 4, 5, 8, 9

SPLIT_KEYS = {b"split.no": U16, b"split.count": U16, b"split.tensors.count": I32}
"""What says which of how many files one is, and how many tensors all have, with the types of the values."""


HIDE_NOTHING = ("reader-limit", "split-count")
"""Rules whose findings leave all tensors known."""


class _Faults:
    """What was found in one header, up to a number that ends it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.found: list[Finding] = []

    def add(self, rule: str, message: str, place: tuple[int, int], name: str | None = None) -> None:
        """Put one more among them. Raises HeaderError where there are too many."""
        if len(self.found) >= MOST_FINDINGS:
            message = f"{len(self.found)} faults in one header; the rest of it is not read"
            raise HeaderError("header-text", message, *place)
        field = "header" if name is None else "entry"
        self.found.append(finding(rule, message, self._path, *place, name=name, field=field))


class _Keys(NamedTuple):
    """The values of the keys that are looked at."""

    alignment: int
    split: dict[str, SplitKey]


def read_gguf(source: Source, path: str) -> SourceFile:
    """Read the header of a GGUF file; no payload is read.

    Raises OSError when the source can't be read.
    """
    cursor = Cursor(source)
    faults = _Faults(path)
    tensors: dict[str, SourceTensor] = {}
    keys = _Keys(USUAL_ALIGNMENT, {})
    len_head = 0
    try:
        num_tensors, num_keys = _read_fixed(cursor)
        keys = _read_keys(cursor, num_keys, faults)
        _read_entries(cursor, num_tensors, path, tensors, faults)
        len_head = -(-cursor.position // keys.alignment) * keys.alignment
    except HeaderError as error:
        place = (error.offset, error.length)
        faults.found.append(finding(error.rule, str(error), path, *place, field="header"))
        tensors = {}
    placed = [tensor._replace(offset=len_head + tensor.offset) for tensor in tensors.values()]
    len_head = min(len_head, cursor.size)
    stored, truncated, gaps, more = judge_payloads(
        bound(placed, cursor.size),
        path,
        len_head,
        cursor.size,
        alignment=keys.alignment,
        all_known=all(one.rule in HIDE_NOTHING for one in faults.found),
    )
    findings = (*faults.found, *_out_of_order(placed), *more)
    return SourceFile(path, cursor.size, len_head, stored, truncated, gaps, findings, split=keys.split)


def _read_fixed(cursor: Cursor) -> tuple[int, int]:
    """The counts of tensors and of keys; the cursor learns the order of bytes."""
    magic = cursor.take(min(4, cursor.size))
    if magic != MAGIC:
        raise HeaderError(
            "header-magic", f"the file starts with {magic.hex(' ')}, not with GGUF", 0, len(magic)
        )
    version = cursor.u32()
    swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
    if swapped in BIG_ENDIAN_VERSIONS:
        cursor.byte_order = "big"
    elif version not in VERSIONS:
        order = ", of a big-endian file" if swapped in VERSIONS else ""
        message = f"version {swapped if order else version}{order}; 2 and 3 are read, of big-endian files 3"
        raise HeaderError("header-version", message, 4, 4)
    return cursor.u64(), cursor.u64()


def _read_keys(cursor: Cursor, num_keys: int, faults: _Faults) -> _Keys:
    """Pass over the keys but for those that are looked at."""
    cursor.must_hold(num_keys, SMALLEST_PAIR, "key")
    alignment = USUAL_ALIGNMENT
    split: dict[str, SplitKey] = {}
    keys: set[bytes] = set()
    for _ in range(num_keys):
        start = cursor.position
        key = cursor.short_string()
        kind = cursor.u32()
        if key == ALIGNMENT_KEY:
            alignment = _read_alignment(cursor, kind)
        elif key in SPLIT_KEYS and kind == SPLIT_KEYS[key]:
            value = cursor.number(VALUE_SIZES[kind], signed=kind == I32)
            split[key.decode()] = SplitKey(value, start, cursor.position - start)
        else:
            _skip_value(cursor, kind)
        place = (start, cursor.position - start)
        if key in keys:
            text = quote(key.decode("utf-8", "replace"))
            faults.add("duplicate-key", f"the key {text} stands twice in the header", place)
        for rule, fault in _key_faults(key, kind, start):
            faults.add(rule, fault, place)
        keys.add(key)
    return _Keys(alignment, split)


def _read_alignment(cursor: Cursor, kind: int) -> int:
    """In bytes."""
    value_at = cursor.position
    if kind != U32:
        message = f"general.alignment is of the type {kind}; it must be a u32, {U32}"
        raise HeaderError("header-text", message, value_at - 4, 4)
    alignment = cursor.u32()
    if alignment == 0 or alignment & (alignment - 1):
        message = f"general.alignment is {alignment}, not a power of 2"
        raise HeaderError("header-text", message, value_at, 4)
    return alignment


def _key_faults(key: bytes, kind: int, start: int) -> Iterator[tuple[str, str]]:
    """The rules that a key with a value of a type breaks, and how."""
    if not key:
        yield "reader-limit", f"the key at byte {start} is empty; llama.cpp refuses it"
    elif key in SPLIT_KEYS and kind != SPLIT_KEYS[key]:
        yield "split-count", f"{key.decode()} has a value of the type {kind}; readers take {SPLIT_KEYS[key]}"


def _skip_value(cursor: Cursor, kind: int, depth: int = 0) -> None:
    if kind in VALUE_SIZES:
        cursor.skip(VALUE_SIZES[kind])
    elif kind == STRING:
        cursor.skip(cursor.u64())
    elif kind == ARRAY and depth < DEEPEST_GGUF_ARRAY:
        element = cursor.u32()
        count = cursor.u64()
        if element in VALUE_SIZES:
            cursor.skip(count * VALUE_SIZES[element])
            return
        cursor.must_hold(count, 8, "element")
        for _ in range(count):
            _skip_value(cursor, element, depth + 1)
    else:
        what = (
            "arrays nested too deeply" if kind == ARRAY else f"a value of the type {kind}, which GGUF has not"
        )
        raise HeaderError("header-text", f"{what} at byte {cursor.position}", cursor.position)


def _read_entries(
    cursor: Cursor, num_tensors: int, path: str, tensors: dict[str, SourceTensor], faults: _Faults
) -> None:
    """Put each tensor among `tensors`, its offset still counted from where payloads begin."""
    cursor.must_hold(num_tensors, SMALLEST_ENTRY, "tensor")
    order = "<" if cursor.byte_order == "little" else ">"
    for _ in range(num_tensors):
        start = cursor.position
        raw = cursor.short_string()
        rank = cursor.u32()
        if rank > MOST_DIMENSIONS:
            message = f"a tensor of {rank} dimensions at byte {start}; the most is {MOST_DIMENSIONS}"
            raise HeaderError("header-text", message, start, cursor.position - start)
        shape = struct.unpack(f"{order}{rank}Q", cursor.take(8 * rank))[::-1]
        code = cursor.u32()
        offset = cursor.u64()
        place = (start, cursor.position - start)
        name = raw.decode("utf-8", "replace")
        source_dtype, type_ = type_of(code, big_endian=cursor.byte_order == "big")
        length = length_of(shape, type_)
        tensor = SourceTensor(name, source_dtype, type_, shape, path, offset, length, *place)
        fault = _entry_fault(raw, code, tensor, tensors)
        if fault is None:
            tensors[name] = tensor
            for limit in _over_limits(tensor, len(raw)):
                faults.add("reader-limit", f"tensor {quote(name)} {limit}; llama.cpp refuses it", place, name)
        else:
            faults.add(*fault, place, name)


def _entry_fault(
    raw: bytes, code: int, tensor: SourceTensor, tensors: dict[str, SourceTensor]
) -> tuple[str, str] | None:
    """The rule that what the header says of a tensor breaks, and how, where it can't be brought in."""
    name, type_, shape = quote(tensor.name), tensor.type, tensor.shape
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return "source-name", f"the name {name} is not UTF-8: byte {error.start} is 0x{raw[error.start]:02x}"
    if tensor.name in tensors:
        return "duplicate-key", f"tensor {name} stands twice in the header"
    if code >= 1 << 31:
        return "header-entry", f"tensor {name} has the ggml type {code - (1 << 32)}; none is negative"
    if not fills_blocks(shape, type_):
        what = f"tensor {name} ({tensor.text()})"
        return "header-entry", f"{what} does not fill blocks of {type_.block_elements} in each row"
    if is_unknown(type_) and shape and shape[-1] > LARGEST_BLOCK:
        return "header-entry", f"tensor {name} ({tensor.text()}) has rows that no block of Kiln's can hold"
    return None


def _over_limits(tensor: SourceTensor, len_name: int) -> Iterator[str]:
    """What of a tensor readers do not take."""
    if len_name > LONGEST_GGML_NAME:
        yield f"has a name of {len_name} bytes, more than {LONGEST_GGML_NAME}"
    if len(tensor.shape) > MOST_GGML_DIMENSIONS:
        yield f"has {plural(len(tensor.shape), 'dimension')}, more than {MOST_GGML_DIMENSIONS}"
    if not prod(tensor.shape):
        yield f"has a dimension of 0: {list(tensor.shape)}"


def _out_of_order(tensors: Sequence[SourceTensor]) -> Iterator[Finding]:
    """One finding for all payloads that lie before that of the tensor that the header has before."""
    pairs = [(one, after) for one, after in pairwise(tensors) if after.offset < one.offset]
    if not pairs:
        return
    one, after = pairs[0]
    message = (
        f"the payload of {quote(after.name)} starts at {after.offset}, before that of {quote(one.name)} at "
        f"{one.offset}, which the header has first; llama.cpp refuses this"
    )
    if len(pairs) > 1:
        message += f"; {len(pairs) - 1} more are out of order"
    place = (after.entry_offset, after.entry_length)
    yield finding("payload-order", message, after.path, *place, name=after.name, field="offset")
