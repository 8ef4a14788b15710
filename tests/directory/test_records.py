"""The two things that are generated from the one .ksy agree, and agree with the layout page."""

from __future__ import annotations

import struct
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kaitaistruct import EndOfStreamError, KaitaiStream, ValidationNotEqualError

from kiln_check.directory import Directory
from kiln_check.generated import kiln_v2_records as records
from kiln_check.generated.kiln_v2 import KilnV2
from kiln_check.source import BytesSource

START = records.MAGIC + struct.pack("<H", records.VERSION)


def fields_of(parsed: Any, names: list[str]) -> dict[str, Any]:
    return {name: getattr(parsed, name) for name in names}


def as_python(row: Any, names: list[str]) -> dict[str, Any]:
    return {
        name: value.tobytes() if (value := row[name]).dtype.kind == "V" else value.tolist() for name in names
    }


@given(st.binary(min_size=records.DESCRIPTOR["itemsize"], max_size=records.DESCRIPTOR["itemsize"]))
def test_parser_dtype_and_struct_read_a_descriptor_alike(raw: bytes) -> None:
    names = records.DESCRIPTOR["names"]
    parsed = fields_of(KilnV2.Descriptor(KaitaiStream(BytesIO(raw))), names)
    (row,) = np.frombuffer(raw, np.dtype(records.DESCRIPTOR))
    assert as_python(row, names) == parsed
    *single, last = names
    values = struct.unpack(records.DESCRIPTOR_STRUCT, raw)
    assert dict(zip(single, values, strict=False)) | {last: list(values[len(single) :])} == parsed


@given(
    st.binary(
        min_size=records.HEADER["itemsize"] - len(START), max_size=records.HEADER["itemsize"] - len(START)
    )
)
def test_parser_dtype_and_struct_read_a_header_alike(rest: bytes) -> None:
    names = records.HEADER["names"]
    parsed = fields_of(KilnV2.Header(KaitaiStream(BytesIO(START + rest))), names)
    (row,) = np.frombuffer(START + rest, np.dtype(records.HEADER))
    assert as_python(row, names) == parsed
    assert dict(zip(names, struct.unpack(records.HEADER_STRUCT, START + rest), strict=True)) == parsed


HEADS = st.binary(max_size=80) | st.builds(
    lambda magic, version, rest: magic + version + rest,
    st.just(records.MAGIC),
    st.just(START[len(records.MAGIC) :]) | st.binary(max_size=2),
    st.binary(max_size=60),
)


@given(HEADS)
def test_the_directory_and_the_parser_read_a_header_alike(raw: bytes) -> None:
    directory = Directory(BytesSource(raw))
    try:
        parsed = KilnV2.Header(KaitaiStream(BytesIO(raw)))
    except (EndOfStreamError, ValidationNotEqualError):
        assert directory.fields is None
        assert directory.header is None
        return
    assert directory.version == parsed.version
    assert directory.fields == fields_of(parsed, records.HEADER["names"])
    assert directory.fields == fields_of(directory.header, records.HEADER["names"])
    assert directory.end_of_names == parsed.ofs_names + parsed.len_names


def test_the_offsets_are_those_of_the_layout_page(root: Any) -> None:
    page = (root / "docs" / "kiln-v2-layout.md").read_text("utf-8")
    for title, record in (("### Header", records.HEADER), ("### Descriptor", records.DESCRIPTOR)):
        rows = [
            line.split("|")[1:4] for line in page.split(title)[1].split("\n#")[0].splitlines() if "|" in line
        ]
        wanted = [(int(offset), name.strip()) for offset, _, name in rows if offset.strip().isdigit()]
        found = [records.PAGE_NAMES.get(name, name) for name in record["names"]]
        assert list(zip(record["offsets"], found, strict=True)) == wanted


@pytest.mark.parametrize("claim", [0, 1, 0xFFFFFFFF])
def test_a_directory_that_is_not_there_is_not_parsed(claim: int) -> None:
    head = struct.pack(records.HEADER_STRUCT, records.MAGIC, records.VERSION, 0, claim, 0, 64, b"")
    directory = Directory(BytesSource(head))
    assert directory.num_tensors == claim
    assert directory.whole == (claim == 0)
