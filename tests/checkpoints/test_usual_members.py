"""Members that are passed over as usual are read as one by one: same tensors, same findings, same places."""

from __future__ import annotations

import json
import re
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kiln_check.checkpoints.check import check_checkpoint
from kiln_check.checkpoints.formats import safetensors
from kiln_check.checkpoints.formats.header import SourceFile
from kiln_check.checkpoints.formats.safetensors import TYPES, read_safetensors
from kiln_check.source import BytesSource
from tests.checkpoints.building import with_header
from tests.places import CHECKPOINTS

NOTHING = re.compile("(?!)")


def one_by_one(raw: bytes) -> SourceFile:
    with patch.object(safetensors, "_USUAL", NOTHING):
        return read_safetensors(BytesSource(raw), "f")


def same(raw: bytes) -> SourceFile:
    found = read_safetensors(BytesSource(raw), "f")
    assert found == one_by_one(raw)
    return found


NUMBERS = st.integers(0, 40) | st.sampled_from([2**63, 10**19 - 1, 10**19, 2**64 - 1, 2**64])
ENTRIES = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from([*TYPES, "F4", "F6_E2M3", "U8", "?", "U128"]),
        "shape": st.lists(NUMBERS, max_size=10),
        "data_offsets": st.lists(NUMBERS, min_size=2, max_size=2),
    }
)


def entry(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


SOUND = st.fixed_dictionaries(
    {"dtype": st.just("U8"), "shape": st.just([3]), "data_offsets": st.just([0, 3])}
)
MEMBERS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "a.weight", "é", '"', "\\", "", "__metadata__", "~ !#"])
        | st.text(max_size=3),
        SOUND | ENTRIES | st.dictionaries(st.sampled_from("ab"), st.text(max_size=2), max_size=2),
    ),
    max_size=6,
)
SEPARATORS = st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : "), (",\n", ":")])


def header_of(members: list[tuple[str, object]], separators: tuple[str, str], ascii_only: bool) -> bytes:
    """Members in their order, of which some may have one name."""
    comma, colon = separators
    parts = [
        json.dumps(key, ensure_ascii=ascii_only)
        + colon
        + json.dumps(value, separators=separators, ensure_ascii=ascii_only)
        for key, value in members
    ]
    return ("{" + comma.join(parts) + "}").encode("utf-8", "surrogatepass")


@given(MEMBERS, SEPARATORS, st.booleans(), st.binary(max_size=9))
@example([("a", entry("F4", [3], 0, 2)), ("b", {})], (",", ":"), True, b"")
@example([("__metadata__", entry("U8", [3], 0, 3)), ("b", {})], (",", ":"), True, b"")
@example([("a", entry("U8", [3], 3, 0)), ("b", {})], (",", ":"), True, b"")
@example([("a", entry("U8", [1] * 9, 0, 1)), ("b", {})], (",", ":"), True, b"")
@example([("a", entry("U8", [1] * 8, 0, 1)), ("b", {})], (",", ":"), True, b"")
@example([("a", entry("U8", [2**64], 0, 1)), ("b", {})], (",", ":"), True, b"")
@example([("a", entry("U8", [1], 2**64, 2**64)), ("b", {})], (",", ":"), True, b"")
def test_any_members_are_read_as_one_by_one(
    members: list[tuple[str, object]], separators: tuple[str, str], ascii_only: bool, body: bytes
) -> None:
    same(with_header(header_of(members, separators, ascii_only), body))


@given(MEMBERS, SEPARATORS, st.data())
def test_a_damaged_header_is_read_as_one_by_one(
    members: list[tuple[str, object]], separators: tuple[str, str], data: st.DataObject
) -> None:
    header = bytearray(header_of(members, separators, True))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(header) - 1))
        new = data.draw(st.sampled_from([*b' ,:{}[]"\\0159-.eE\n\x00\x7f\xc3\xa9']))
        if data.draw(st.booleans()):
            header[at] = new
        else:
            header.insert(at, new)
    same(with_header(bytes(header), bytes(9)))


@pytest.mark.parametrize(
    "path", sorted(CHECKPOINTS.glob("*/*.safetensors")), ids=lambda path: path.parent.name
)
def test_a_real_header_is_read_as_one_by_one_and_all_of_it_but_the_last_is_usual(path: Path) -> None:
    raw = path.read_bytes()
    found = same(raw)
    assert found.findings == ()
    text = raw[8 : found.len_head].decode()
    usual = {match[1] for match in safetensors._USUAL.finditer(text)}
    assert len(usual) == len(found.tensors) - 1
    assert usual < {tensor.name for tensor in found.tensors}


@given(st.text(st.characters(max_codepoint=0x17F), min_size=1, max_size=5), st.text(max_size=4))
def test_places_count_bytes(name: str, metadata: str) -> None:
    members: list[tuple[str, object]] = [("__metadata__", {"x": metadata}), (name, entry("U8", [1], 0, 1))]
    members += [("usual", entry("U8", [1], 1, 2)), ("last", entry("U8", [1], 2, 3))]
    raw = with_header(header_of(members, (",", ":"), False), b"abc")
    for tensor in same(raw).tensors:
        entry_text = raw[tensor.entry_offset : tensor.entry_offset + tensor.entry_length].decode()
        key, value = json.loads("{" + entry_text + "}").popitem()
        assert (key, value["shape"]) == (tensor.name, [1])


@pytest.mark.parametrize("key", ["__metadata__", "x"])
@pytest.mark.parametrize("value", ["1", "null", "[1]", '{"a":"b"}', "true"])
def test_a_fault_in_the_metadata_names_it_and_the_key(key: str, value: str) -> None:
    inner = f'{{"first":"1","{key}":{value}}}'
    (found,) = same(with_header(f'{{"__metadata__":{inner}}}'.encode())).findings
    assert found.message.endswith(f'the value of "{key}" in "__metadata__" must be a string')
    (found,) = same(with_header(f'{{"__metadata__":[{value}]}}'.encode())).findings
    assert found.message.endswith('"__metadata__" must be an object of strings')


def test_white_space_after_a_comma_is_no_fault(tmp_path: Path) -> None:
    for space in ("\n", "\t", "  ", "\r\n "):
        header = (
            f'{{"__metadata__":{{"by":"é"}},{space}"a":{{"dtype":"U8","shape":[2],"data_offsets":[0,2]}},{space}'
            f'"b":{{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}}}'
        )
        path = tmp_path / "model.safetensors"
        path.write_bytes(with_header(header.encode(), b"abcd"))
        assert check_checkpoint(path).findings == ()
