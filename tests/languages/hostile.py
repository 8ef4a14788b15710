"""Files whose integers stand where a language's own integers end.

The corpus pins the rules; these pin that no target reads such an integer as another one, allocates
what it claims, seeks to a negative position or follows links in a circle. Made from the tables of
the layout page.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.languages.layout_page import (
    DESCRIPTOR,
    HEADER,
    LEN_DESCRIPTOR,
    LEN_HEADER,
    MAGIC,
    NO_AXIS,
    NO_INDEX,
    Field,
)

EDGES = (2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**40, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1)
"""Where int32, uint32, double, int64 and uint64 end."""

TEXTS = (
    b"\xef\xbb\xbfbyte order mark",
    b"\xff",
    b"\xed\xa0\x80",
    b"\xc0\x80",
    '\x00\x1f\x7f\u2028\U0001f525"\\'.encode(),
)
"""Names: what a decoder may drop, three that are no UTF-8, what JSON must escape."""

E2M1 = 0x0C04


def files() -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of each file."""
    yield "empty", b""
    whole = file()
    for size in (1, 7, 8, 9, 10, 63, 64, 65, 64 + 127, 64 + 128, 64 + 129, len(whole) - 1):
        yield f"cut-at-{size}", whole[:size]
    for size in (64 + 128 + 6, 64 + 128 + 127, 64 + 256):
        yield f"cut-in-a-directory-at-{size}", file(tensor(), tensor(), tensor(), names=b"abc")[:size]
    linked = tensor(scale_index=2, outer_index=1)
    yield "cut-before-the-scale", file(linked, tensor(), tensor())[: 64 + 128 + 64]
    for count in (2, 2**31, 2**32 - 1):
        yield f"num_tensors-{count}", file(header={"num_tensors": count})
    for edge in EDGES:
        yield f"len_names-{edge}", file(header={"len_names": edge})
        yield f"len_file-{edge}", file(header={"len_file": edge})
        yield f"ofs_data-{edge}", file(tensor(ofs_data=edge))
        yield f"len_data-{edge}", file(tensor(len_data=edge))
        yield f"both-{edge}", file(tensor(ofs_data=edge, len_data=2**64 - edge))
        yield f"reserved2-{edge}", file(tensor(reserved2=edge))
        yield f"dimension-{edge}", file(tensor(shape=[edge]))
        yield f"dimensions-{edge}", file(tensor(rank=3, shape=[edge, 3, edge]))
        yield f"dimension-and-0-{edge}", file(tensor(rank=3, shape=[edge, edge, 0]))
        for group_size in (1, 2, 2**32 - 1):
            yield (
                f"groups-of-{group_size}-{edge}",
                file(tensor(rank=2, shape=[edge, 3], scheme=1, quant_axis=0, group_size=group_size)),
            )
    for axis in range(9):
        quantized = {"scheme": 2, "quant_axis": axis, "group_size": 4}
        yield f"axis-{axis}", file(tensor(rank=8, shape=[9, 8, 7, 6, 5, 4, 3, 2], **quantized))
        yield f"axis-{axis}-rank-9", file(tensor(rank=9, shape=[9, 8, 7, 6, 5, 4, 3, 2], **quantized))
    for ofs_name, len_name in ((0, 3), (1, 3), (2**32 - 1, 65535), (3, 0), (4, 0)):
        yield f"name-{ofs_name}-{len_name}", file(tensor(ofs_name=ofs_name, len_name=len_name), names=b"abc")
    for text in TEXTS:
        yield f"text-{text.hex()}", file(tensor(len_name=len(text)), names=text)
    yield from _links()


def _links() -> Iterator[tuple[str, bytes]]:
    def linked(*links: tuple[int, int]) -> bytes:
        return file(*(tensor(scale_index=scale, outer_index=outer) for scale, outer in links), names=b"n")

    none = (NO_INDEX, NO_INDEX)
    yield "to-the-next", linked((1, 2), none, none)
    yield "to-one-before", linked(none, (0, 0), (0, NO_INDEX))
    yield "to-itself", linked((0, 0))
    yield "in-a-circle", linked((1, 1), (2, 0), (0, 1))
    yield "past-the-end", linked((2, NO_INDEX - 1), (NO_INDEX, 2**31))
    yield "a-long-chain", linked(*((index + 1, index + 1) for index in range(5000)))


def tensor(**fields: Any) -> dict[str, Any]:
    """Return a descriptor: one e2m1 element with no payload, changed as asked."""
    plain = {
        "len_name": 1,
        "dtype": E2M1,
        "rank": 1,
        "quant_axis": NO_AXIS,
        "scale_index": NO_INDEX,
        "outer_index": NO_INDEX,
        "shape": [1],
    }
    return plain | fields


def file(*tensors: dict[str, Any], header: dict[str, int] | None = None, names: bytes = b"w") -> bytes:
    """Return a file of these tensors (one if none is given), its header changed as asked."""
    tensors = tensors or (tensor(),)
    size = LEN_HEADER + LEN_DESCRIPTOR * len(tensors) + len(names)
    sound = {"version": 2, "num_tensors": len(tensors), "len_names": len(names), "len_file": size}
    head = MAGIC + _record(HEADER, LEN_HEADER, sound | (header or {}))[len(MAGIC) :]
    return head + b"".join(_record(DESCRIPTOR, LEN_DESCRIPTOR, one) for one in tensors) + names


def _record(fields: list[Field], size: int, values: dict[str, Any]) -> bytes:
    record = bytearray(size)
    for field in fields:
        value = values.get(field.name, 0)
        for place, number in enumerate(value if isinstance(value, list) else [value]):
            at = field.offset + place * field.width
            record[at : at + field.width] = number.to_bytes(field.width, "little")
    return bytes(record)
