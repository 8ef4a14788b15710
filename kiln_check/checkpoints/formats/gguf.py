"""The header of a GGUF file.

Magic, version, two counts, then keys with values of thirteen types, then for each
tensor its name, dimensions (innermost first), ggml type and offset. Payloads begin
at the next multiple of the alignment, and offsets count from there. All numbers are
little-endian.
"""

from __future__ import annotations

import struct
from math import prod

from kiln_check.checkpoints.checkpoint_rules import finding
from kiln_check.checkpoints.formats.extents import judge_payloads
from kiln_check.checkpoints.formats.header import SourceFile, SourceTensor, Type
from kiln_check.constants import (
    DEEPEST_GGUF_ARRAY,
    LONGEST_GGUF_KEY,
    LONGEST_HEADER,
    MOST_DIMENSIONS,
    MOST_FINDINGS,
)
from kiln_check.report import Finding
from kiln_check.source import Source
from kiln_check.text import plural, quote

MAGIC = b"GGUF"
VERSIONS = (2, 3)
LEN_FIXED = 24
"""Bytes of magic, version and the two counts."""

SMALLEST_PAIR = 8 + 4 + 1
"""Bytes of a key without characters, its type, and the smallest value."""

SMALLEST_ENTRY = 8 + 4 + 4 + 8
"""Bytes that describe a tensor without name and dimensions."""

WINDOW = 1 << 16
"""Bytes read at a time."""

ALIGNMENT_KEY = b"general.alignment"
USUAL_ALIGNMENT = 32

VALUE_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of a value by its type: u8 i8 u16 i16 u32 i32 f32 bool u64 i64 f64."""

U32, STRING, ARRAY = 4, 8, 9


def _blocks(tag: int, elements: int, size: int) -> Type:
    return Type("foreign", tag, elements, size)


TYPES = {
    0: ("F32", Type("f32")),
    1: ("F16", Type("f16")),
    2: ("Q4_0", _blocks(2, 32, 18)),
    3: ("Q4_1", _blocks(3, 32, 20)),
    6: ("Q5_0", _blocks(6, 32, 22)),
    7: ("Q5_1", _blocks(7, 32, 24)),
    8: ("Q8_0", _blocks(8, 32, 34)),
    9: ("Q8_1", _blocks(9, 32, 36)),  # as ggml has it; the gguf package says 40, but no file stores it
    10: ("Q2_K", _blocks(10, 256, 84)),
    11: ("Q3_K", _blocks(11, 256, 110)),
    12: ("Q4_K", _blocks(12, 256, 144)),
    13: ("Q5_K", _blocks(13, 256, 176)),
    14: ("Q6_K", _blocks(14, 256, 210)),
    15: ("Q8_K", _blocks(15, 256, 292)),
    16: ("IQ2_XXS", _blocks(16, 256, 66)),
    17: ("IQ2_XS", _blocks(17, 256, 74)),
    18: ("IQ3_XXS", _blocks(18, 256, 98)),
    19: ("IQ1_S", _blocks(19, 256, 50)),
    20: ("IQ4_NL", _blocks(20, 32, 18)),
    21: ("IQ3_S", _blocks(21, 256, 110)),
    22: ("IQ2_S", _blocks(22, 256, 82)),
    23: ("IQ4_XS", _blocks(23, 256, 136)),
    24: ("I8", Type("i8")),
    25: ("I16", Type("i16")),
    26: ("I32", Type("i32")),
    27: ("I64", Type("i64")),
    28: ("F64", Type("f64")),
    29: ("IQ1_M", _blocks(29, 256, 56)),
    30: ("BF16", Type("bf16")),
    34: ("TQ1_0", _blocks(34, 256, 54)),
    35: ("TQ2_0", _blocks(35, 256, 66)),
    39: ("MXFP4", _blocks(39, 32, 17)),
    40: ("NVFP4", _blocks(40, 64, 36)),
    41: ("Q1_0", _blocks(41, 128, 18)),
}
"""The ggml types: what they are called, and what they are in Kiln."""


class _HeaderError(Exception):
    """The header can't be read on; the first argument is the finding's rule."""

    def __init__(self, rule: str, message: str, offset: int, length: int = 0) -> None:
        super().__init__(message)
        self.rule = rule
        self.offset = offset
        self.length = length


class _Cursor:
    """Reads the header from front to end, a window at a time.

    Raises _HeaderError where the file, or what is read of a header, ends before.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self.size = source.size()
        self.position = 0
        self._window = b""
        self._start = 0

    def take(self, length: int) -> bytes:
        """The next bytes."""
        at = self.position - self._start
        if at + length > len(self._window):
            self._must_have(length)
            self._start, at = self.position, 0
            self._window = self._source.read(self.position, max(length, WINDOW))
            if len(self._window) < length:
                raise _HeaderError(
                    "header-length", "the file became shorter while it was read", self.position
                )
        self.position += length
        return self._window[at : at + length]

    def skip(self, length: int) -> None:
        """Pass over the next bytes."""
        self._must_have(length)
        self.position += length

    def u32(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def u64(self) -> int:
        return int.from_bytes(self.take(8), "little")

    def short_string(self) -> bytes:
        """The bytes of a key or a name."""
        start = self.position
        length = self.u64()
        if length > LONGEST_GGUF_KEY and self.position + length <= self.size:
            message = f"a name of {length} bytes at byte {start}; the most is {LONGEST_GGUF_KEY}"
            raise _HeaderError("header-text", message, start, 8)
        return self.take(length)

    def must_hold(self, count: int, smallest: int, what: str) -> None:
        """See that the rest of the file can hold `count` things of `smallest` bytes or more."""
        if count * smallest > self.size - self.position:
            message = f"the header claims {plural(count, what)}; the file has {self.size} bytes"
            raise _HeaderError("header-length", message, self.position)

    def _must_have(self, length: int) -> None:
        end = self.position + length
        if end > self.size:
            message = f"the header goes on to byte {end}; the file has {self.size}"
            raise _HeaderError("header-length", message, self.position)
        if end > LONGEST_HEADER:
            message = f"the header goes on to byte {end}; {LONGEST_HEADER} are read"
            raise _HeaderError("header-length", message, self.position)


def read_gguf(source: Source, path: str) -> SourceFile:
    """Read the header of a GGUF file; no payload is read.

    Raises OSError when the source can't be read.
    """
    cursor = _Cursor(source)
    findings: list[Finding] = []
    tensors: dict[str, SourceTensor] = {}
    alignment = USUAL_ALIGNMENT
    len_head = 0
    try:
        num_tensors, num_keys = _read_fixed(cursor)
        alignment = _read_keys(cursor, num_keys, path, findings)
        _read_entries(cursor, num_tensors, path, tensors, findings)
        len_head = -(-cursor.position // alignment) * alignment
    except _HeaderError as error:
        findings.append(finding(error.rule, str(error), path, error.offset, error.length, field="header"))
        tensors = {}
    placed = [tensor._replace(offset=len_head + tensor.offset) for tensor in tensors.values()]
    len_head = min(len_head, cursor.size)
    stored, truncated, gaps, more = judge_payloads(
        placed, path, len_head, cursor.size, alignment=alignment, all_known=not findings
    )
    return SourceFile(path, cursor.size, len_head, stored, truncated, gaps, (*findings, *more))


def _read_fixed(cursor: _Cursor) -> tuple[int, int]:
    """The counts of tensors and of keys."""
    magic = cursor.take(min(4, cursor.size))
    if magic != MAGIC:
        raise _HeaderError(
            "header-magic", f"the file starts with {magic.hex(' ')}, not with GGUF", 0, len(magic)
        )
    version = cursor.u32()
    if version not in VERSIONS:
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
        order = ", of a big-endian file" if swapped in VERSIONS else ""
        message = f"version {swapped if order else version}{order}; little-endian 2 and 3 are read"
        raise _HeaderError("header-version", message, 4, 4)
    return cursor.u64(), cursor.u64()


def _read_keys(cursor: _Cursor, num_keys: int, path: str, findings: list[Finding]) -> int:
    """Pass over the keys; return the alignment, in bytes, that they give."""
    cursor.must_hold(num_keys, SMALLEST_PAIR, "key")
    alignment = USUAL_ALIGNMENT
    keys: set[bytes] = set()
    for _ in range(num_keys):
        start = cursor.position
        key = cursor.short_string()
        kind = cursor.u32()
        value_at = cursor.position
        if key == ALIGNMENT_KEY:
            if kind != U32:
                message = f"general.alignment is of the type {kind}; it must be a u32, {U32}"
                raise _HeaderError("header-text", message, value_at - 4, 4)
            alignment = cursor.u32()
            if alignment == 0 or alignment & (alignment - 1):
                message = f"general.alignment is {alignment}, not a power of 2"
                raise _HeaderError("header-text", message, value_at, 4)
        else:
            _skip_value(cursor, kind)
        if key in keys and len(findings) < MOST_FINDINGS:
            message = f"the key {quote(key.decode('utf-8', 'replace'))} stands twice in the header"
            findings.append(finding("duplicate-key", message, path, start, cursor.position - start))
        keys.add(key)
    return alignment


def _skip_value(cursor: _Cursor, kind: int, depth: int = 0) -> None:
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
        raise _HeaderError("header-text", f"{what} at byte {cursor.position}", cursor.position)


def _read_entries(
    cursor: _Cursor,
    num_tensors: int,
    path: str,
    tensors: dict[str, SourceTensor],
    findings: list[Finding],
) -> None:
    """Put each tensor among `tensors`, its offset still counted from where payloads begin."""
    cursor.must_hold(num_tensors, SMALLEST_ENTRY, "tensor")
    for _ in range(num_tensors):
        start = cursor.position
        raw = cursor.short_string()
        rank = cursor.u32()
        if rank > MOST_DIMENSIONS:
            message = f"a tensor of {rank} dimensions at byte {start}; the most is {MOST_DIMENSIONS}"
            raise _HeaderError("header-text", message, start, cursor.position - start)
        shape = struct.unpack(f"<{rank}Q", cursor.take(8 * rank))[::-1]
        code = cursor.u32()
        offset = cursor.u64()
        place = (start, cursor.position - start)
        name = raw.decode("utf-8", "replace")
        fault = _entry_fault(raw, name, code, shape, tensors)
        if fault is None:
            source_dtype, type_ = TYPES[code]
            length = _length(shape, type_)
            tensors[name] = SourceTensor(name, source_dtype, type_, shape, path, offset, length, *place)
        elif len(findings) < MOST_FINDINGS:
            findings.append(finding(fault[0], fault[1], path, *place, name=name, field="entry"))
        else:
            message = f"{len(findings)} faults in one header; the rest of it is not read"
            raise _HeaderError("header-text", message, *place)


def _entry_fault(
    raw: bytes, name: str, code: int, shape: tuple[int, ...], tensors: dict[str, SourceTensor]
) -> tuple[str, str] | None:
    """The rule that what the header says of a tensor breaks, and how."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return (
            "source-name",
            f"the name {quote(name)} is not UTF-8: byte {error.start} is 0x{raw[error.start]:02x}",
        )
    if name in tensors:
        return "duplicate-key", f"tensor {quote(name)} stands twice in the header"
    if code not in TYPES:
        return "header-entry", f"tensor {quote(name)} has the ggml type {code}, which is not known"
    source_dtype, type_ = TYPES[code]
    if _fills_blocks(shape, type_):
        return None
    what = f"tensor {quote(name)} ({source_dtype} {list(shape)})"
    return "header-entry", f"{what} does not fill blocks of {type_.block_elements} in each row"


def _fills_blocks(shape: tuple[int, ...], type_: Type) -> bool:
    """Whether each row holds whole blocks."""
    return not type_.block_elements or (bool(shape) and shape[-1] % type_.block_elements == 0)


def _length(shape: tuple[int, ...], type_: Type) -> int:
    """Size of a payload in bytes; exact."""
    count = prod(shape)
    if type_.block_elements:
        return count // type_.block_elements * type_.block_bytes
    return count * type_.bits // 8
