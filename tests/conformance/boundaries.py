"""The boundaries that the corpus must pin, as data.

A boundary asks for a case whose file measures as it says (see corpus_measures) in a tensor, or
in the file as a whole. With a rule, that very tensor must be a finding of it, and no finding of
the case may be of another rule unless `alone` is False; without one the case must be sound.
`elsewhere` is for measures of another tensor than the one that is at fault.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Boundary:
    """Measures, and the rule that they break or None."""

    rule: str | None
    values: dict[str, Any] = field(default_factory=dict)
    alone: bool = True
    in_unread_files: bool = False

    def __str__(self) -> str:
        text = ", ".join(f"{name} {value}" for name, value in self.values.items())
        return f"{self.rule or 'sound'}: {text}" + ("" if self.alone else ", with others")


def rows(rule: str | None, name: str, *numbers: Any, alone: bool = True, **more: Any) -> list[Boundary]:
    return [Boundary(rule, {name: number, **more}, alone) for number in numbers]


WHOLE = [
    *rows("file-length", "size", 0, 7, 8, 63, 64),
    *rows("magic", "size", 1, 7),
    *rows("version", "version", 1, 3, 512),
    *rows(None, "size - directory", 0),
    *rows("file-length", "size - directory", -1, -64, 0),
    *rows("file-length", "size - names", -1, 0),
    *rows(None, "size - names", 0, num_tensors=0),
    *rows("file-length", "size - data", -1, 1),
    *rows(None, "size - data", 0, 1),
    *rows("file-length", "len_file - size", -1, 0, 1),
    *rows("file-length", "head mod 2^32", 64, num_tensors=2**25),
    *rows("file-length", "head mod 2^64", 0),
    *rows("file-length", "num_tensors", 2**32 - 1),
    *rows(None, "num_tensors", 0, 1, 2, 3),
    *rows("reserved", "reserved1", 1),
    *rows("reserved", "reserved2", b"\x01" + bytes(31), bytes(31) + b"\x80"),
]
"""Of the header and the file's size."""

NAMES = [
    *rows(None, "len_name", 1, 65535),
    *rows("name-text", "len_name", 0),
    *rows("name-range", "len_name", 65535),
    *rows(None, "name - pool", 0, -1),
    *rows("name-range", "name - pool", 1, 2**32 - 2),
    *[
        Boundary(None, {"code points": {97, 98, code}})
        for code in (0x20, 0x7E, 0xA0, 0xD7FF, 0xE000, 0x10FFFF)
    ],
    *[Boundary("name-text", {"code points": {97, 98, code}}) for code in (0, 0x1F, 0x7F, 0x80, 0x9F)],
    *rows("name-text", "code points", None),
]

TYPES = [
    *rows("dtype", "dtype", 0, 0x0308, 0xFFFF),
    *rows(None, "rank", 0, 1, 7 + 1),
    *rows("rank", "rank", 9, 65535),
    *rows("shape-tail", "rank", 0, 1, 7),
    *rows(None, "dims", (0,), (0,) * 8, (2, 0, 3)),
    *rows(None, "count mod block", 0, type="foreign"),
    *rows("foreign-block", "count mod block", 31, 64, None),
    *rows("foreign-block", "block_bytes", 0, 1),
    *rows("foreign-block", "foreign_tag", 1),
]

PAYLOADS = [
    *rows("data-length", "length", -1, 1, type="u8"),
    *rows("data-length", "length", -1, 1, type="foreign"),
    *[
        Boundary(rule, {"length": length, "type": dtype, "rest": 4})
        for dtype in ("e2m1", "i4")
        for rule, length in ((None, 0), ("data-length", -1), ("data-length", 1))
    ],
    *[
        Boundary(rule, {"length": length, "type": "e2m3", "rest": rest})
        for rest in (0, 2, 4, 6)
        for rule, length in ((None, 0), ("data-length", -1), ("data-length", 1))
    ],
    *rows("data-length", "length wraps 32", True),
    *rows("data-length", "length wraps 64", True),
    *rows("data-length", "length wraps 64", True, type="foreign"),
    *rows("data-align", "ofs_data mod 64", -1, 1, -32),
    *rows(None, "ofs_data mod 64", 0),
    *rows(None, "data - head", 0),
    *rows("data-range", "data - head", -1, -64),
    *rows(None, "end - file", 0, -1),
    *rows("data-range", "end - file", 1),
    *rows("data-range", "end mod 2^64", 0),
    *rows("data-range", "len_data", 0),
    *rows(None, "shared bytes", 0),
    Boundary(None, {"len_data": 0, "shared bytes": 0}),
    *rows("data-overlap", "shared bytes", 1, 64),
    *rows(None, "tied", True),
]

SCALES = [
    *rows("scheme", "scheme", 3, 256, 65535),
    *rows("scheme-none", "group_size", 1),
    *rows("scheme-none", "quant_axis", 0, 0xFFFE),
    *rows("scheme-none", "scale_index", 0xFFFFFFFE),
    *rows("scheme-none", "outer_index", 0),
    *[Boundary("quant-rank", {"rank": 0, "scheme": scheme}) for scheme in (1, 2)],
    *[Boundary(None, {"rank": 1, "scheme": scheme}) for scheme in (1, 2)],
    *rows(None, "axis - rank", -1, rank=1),
    *rows(None, "axis - rank", -1, rank=8),
    *rows("quant-axis", "axis - rank", 0, rank=1),
    *rows("quant-axis", "axis - rank", 0, rank=8),
    *rows("quant-axis", "quant_axis", 0xFFFF),
    *[Boundary("group-size", {"group_size": 0, "scheme": scheme}) for scheme in (1, 2)],
    *rows(None, "group_size", 1, 2**32 - 1),
    *rows(None, "group - dimension", -1, 0, 1),
    *rows("scale-count", "group - dimension", -1, 0, 1),
    *rows("scale-count", "group_size", 1, 2**32 - 1),
    *rows(None, "scale - tensors", -1),
    *rows(None, "scale_index", 0),
    *rows("scale-index", "scale - tensors", 0),
    *rows("scale-index", "scale_index", 0xFFFFFFFE, 0xFFFFFFFF),
    *[Boundary("scale-self", {"scale is self": True, "scheme": scheme}) for scheme in (1, 2)],
    *rows("scale-chain", "scale scheme", 1, 2),
    *rows("scale-chain", "scale scheme", 3, alone=False),
    *rows("scale-chain", "scale cycle", True),
    *rows(None, "scale shared", True),
]

COUNTS = [
    *[
        Boundary(None if scales == 0 else "scale-count", {"scales": scales, **where})
        for scales in (-1, 0, 1)
        for where in (
            {"axis is": "only", "full": True},
            {"axis is": "only", "full": False},
            {"axis is": "first", "full": False},
            {"axis is": "middle", "full": False},
            {"axis is": "last", "full": False},
        )
    ],
    *[
        Boundary(None if scales == 0 else "scale-count", {"scales": scales, **where})
        for scales in (0, 1)
        for where in ({"other is 0": True}, {"other is 0": False, "due": 0})
    ],
    *rows("scale-count", "scales wraps 32", True),
    *rows("scale-count", "scales wraps 64", True, alone=False),
    *rows("scale-count", "scales", -1, alone=False, due=2**53 + 1),
    Boundary("data-length", {"scales": 0, "due": 2**65}),
]

OUTERS = [
    *rows("outer-absent", "outer_index", 0, 0xFFFFFFFE),
    *rows(None, "outer - tensors", -1),
    *rows(None, "outer_index", 0, scheme=2),
    *rows("outer-index", "outer - tensors", 0),
    *rows("outer-index", "outer_index", 0xFFFFFFFE, 0xFFFFFFFF),
    *rows("outer-distinct", "outer is self", True),
    *rows("outer-distinct", "outer is scale", True),
    *rows("outer-chain", "outer scheme", 1, 2),
    *rows("outer-chain", "outer scheme", 3, alone=False),
    *rows("outer-chain", "outer cycle", True),
    *rows("outer-dtype", "outer type", "u32", "f16", "bf16", "f64", "foreign"),
    *rows(None, "outer dims", (), (1,), (1, 1, 1)),
    *rows("outer-count", "outer dims", (0,), (2,), (1, 2, 1)),
    *rows("outer-count", "outer count wraps 32", True, alone=False),
    *rows("outer-count", "outer count wraps 64", True, alone=False),
    *rows(None, "outer shared", True),
    *rows(None, "outer is a scale", True),
]

BOUNDARIES = [*NAMES, *TYPES, *PAYLOADS, *SCALES, *COUNTS, *OUTERS]
"""Of tensors."""
