"""Headers and indexes are the JSON that the safetensors package reads, in time and memory of their length."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import SafetensorError, safe_open

from kiln_check.checkpoints.check import check_checkpoint
from kiln_check.checkpoints.formats.json_scan import JsonError, sizes, skip_value
from kiln_check.constants import DEEPEST_JSON
from tests.checkpoints.building import with_header

ENTRY = '{"dtype":"U8","shape":[3],"data_offsets":[0,3]%s}'


def package_reads(path: Path) -> bool:
    try:
        with safe_open(path, framework="numpy") as file:
            return list(file.keys()) == ["a"]
    except SafetensorError:
        return False


def verdict(path: Path, header: str) -> str:
    path.write_bytes(with_header(header.encode(), b"abc"))
    return check_checkpoint(str(path)).verdict


VALUES = (
    *("1", "-0", "1e5", "-1.5E-3", "true", "false", "null", '""', '"a}b"', "{}", "[]", "[ 1 , {} ]"),
    *('{"x":"}"}', '{"x":{"y":[[],{}]}}', '{"a":1,"a":2}', '"\\ud83d\\ude00"', "[" * 100 + "]" * 100),
    *(
        "01",
        "1.",
        ".5",
        "+1",
        "1e",
        "1e999",
        "-1e999",
        "9" * 400,
        "NaN",
        "Infinity",
        "-Infinity",
        "tru",
        "truex",
    ),
    *('"\\ud800"', '"\\udc00x"', '"\\x"', '"\t"', "[1,]", "[1 2]", '{"a"}', '{"a":1,}', "{1:2}", "[}", "'a'"),
    *("[" * 200 + "]" * 200, "[", '{"a":', "1\f", "\v1", "1\u00a0", "", "]", "1]"),
)


@pytest.mark.parametrize("value", VALUES)
def test_a_key_that_is_not_known_may_hold_what_the_package_takes(value: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    is_ok = verdict(path, '{"a":' + ENTRY % f',"other":{value}' + "}") == "OK"
    assert is_ok == package_reads(path)


HEADERS = (
    '{"__metadata__":null,"a":%s}',
    '{"__metadata__":{},"a":%s}',
    '{"__metadata__":{"x":"}"},"a":%s}',
    '{"__metadata__":{"x":null},"a":%s}',
    '{"__metadata__":nul,"a":%s}',
    '{"__metadata__":{"x":"\\ud800"},"a":%s}',
    '{"a":%s}\f',
    '{"a":%s}\v',
    '{"a":%s}\n\t\r ',
    '{\f"a":%s}',
)


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_is_what_the_package_takes(header: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    assert (verdict(path, header % (ENTRY % "")) == "OK") == package_reads(path)


@pytest.mark.parametrize("space", [" ", "\t\n\r ", "\f", "\v", "\x1c", "\u2003"])
@pytest.mark.parametrize("order", ["usual", "other"])
def test_white_space_is_json_s_own(space: str, order: str, tmp_path: Path) -> None:
    tokens = ['"dtype"', ":", '"U8"', ",", '"shape"', ":", "[", "3", ",", "1", "]", ","]
    tokens += ['"data_offsets"', ":", "[", "0", ",", "3", "]", "}"]
    if order == "other":
        tokens = ['"other"', ":", "null", ",", *tokens]
    path = tmp_path / "model.safetensors"
    for place in range(len(tokens)):
        entry = "{" + "".join(tokens[:place]) + space + "".join(tokens[place:])
        assert (
            (verdict(path, f'{{"a":{entry}}}') == "OK")
            == package_reads(path)
            == (space.strip(" \t\n\r") == "")
        )


@pytest.mark.parametrize(
    "number", ["-0", "3.0", "3e0", "-3", "03", "true", "null", '"3"', str(2**64), "9" * 9999]
)
@pytest.mark.parametrize("entry", ['"shape":[%s],"data_offsets":[0,3]', '"shape":[3],"data_offsets":[0,%s]'])
def test_a_size_is_a_whole_number(number: str, entry: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    for dtype in ('"dtype":"U8",', '"x":1,"dtype":"U8",'):
        assert verdict(path, '{"a":{' + dtype + entry % number + "}}") == "TYPE"
        assert not package_reads(path)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity", "1e999", "\f1", '"\\ud800"'])
def test_an_index_is_json(constant: str, tmp_path: Path) -> None:
    verdict(tmp_path / "model.safetensors", '{"a":' + ENTRY % "" + "}")
    path = tmp_path / "model.safetensors.index.json"
    for value, wanted in (("1", "OK"), (constant, "TYPE")):
        path.write_text(f'{{"metadata":{{"total":[{value}]}},"weight_map":{{"a":"model.safetensors"}}}}')
        assert check_checkpoint(str(path)).verdict == wanted


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON, st.sampled_from([None, 2]), st.booleans(), st.text("]}, 1", max_size=3))
def test_any_value_is_passed_over(value: object, indent: int | None, ascii_only: bool, rest: str) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    end = "," if isinstance(value, (int, float)) else ""
    assert skip_value(f"xy{text}{end}{rest}", 2) == 2 + len(text)


@given(st.lists(st.integers(0, 2**64 - 1), max_size=20), st.integers(0, 9), st.sampled_from([None, 1]))
def test_sizes_are_counted_and_the_first_kept(numbers: list[int], most: int, indent: int | None) -> None:
    text = json.dumps(numbers, indent=indent)
    found, end = sizes(text, 0, most)
    assert found is not None
    assert (*found, end) == (tuple(numbers[:most]), len(numbers), len(text))


def test_thousands_of_sizes_are_counted() -> None:
    for total in (999, 1000, 1001, 1002, 1003, 1008, 1009, 1010, 2009, 5000):
        found, _ = sizes(json.dumps([7] * total), 0, 8)
        assert found == ((7,) * 8, total)


def test_values_nest_as_deep_as_the_package_lets_them() -> None:
    assert skip_value("[" * DEEPEST_JSON + "]" * DEEPEST_JSON, 0) == 2 * DEEPEST_JSON
    with pytest.raises(JsonError):
        skip_value("[" * (DEEPEST_JSON + 1) + "]" * (DEEPEST_JSON + 1), 0)


@pytest.mark.parametrize(
    "keys", ['"dtype":"F4","shape":[%s],"data_offsets":[0,0]', '"shape":[%s],"x":1,"dtype":"F4"']
)
@pytest.mark.parametrize("number", ["1", str(2**63), "9" * 300])
def test_a_long_shape_is_neither_kept_nor_multiplied_nor_printed(
    keys: str, number: str, tmp_path: Path
) -> None:
    path = tmp_path / "model.safetensors"
    length = 3_000_000
    shape = ",".join([number] * (length // len(number)))
    path.write_bytes(with_header(('{"a":{' + keys % shape + "}}").encode()))
    tracemalloc.start()
    try:
        report = check_checkpoint(str(path))
        assert tracemalloc.get_traced_memory()[1] < 5 * length
    finally:
        tracemalloc.stop()
    assert report.findings[0].rule in ("source-rank", "header-entry")
    assert len(report.findings[0].message) < 100


def test_rank_8_is_the_greatest(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    for rank in range(7, 11):
        for other in ("", '"x":0,'):
            shape = ",".join(["1"] * (rank - 1) + ["3"])
            header = f'{{"a":{{{other}"dtype":"U8","shape":[{shape}],"data_offsets":[0,3]}}}}'
            path.write_bytes(with_header(header.encode(), b"abc"))
            found = check_checkpoint(str(path)).findings
            assert [one.rule for one in found] == (["source-rank"] if rank > 8 else [])


@pytest.mark.parametrize(
    "fault", ['"shape":[1,1,1,1,1,1,1,2,16]', '"shape":"?"', '"shape":[1,1,1,1,1,1,1,1,2,16],"x":0']
)
@pytest.mark.parametrize("faulty", ["x.weight_packed", "x.weight_scale"])
def test_what_belongs_to_a_tensor_that_can_not_be_read_is_not_missed(
    faulty: str, fault: str, tmp_path: Path
) -> None:
    shapes = {"x.weight_packed": '"shape":[2,16]', "x.weight_scale": '"shape":[2,1]', faulty: fault}
    packed, scale = shapes.values()
    header = (
        f'{{"x.weight_packed":{{"dtype":"U8",{packed},"data_offsets":[0,32]}},'
        f'"x.weight_scale":{{"dtype":"U8",{scale},"data_offsets":[32,34]}}}}'
    )
    path = tmp_path / "model.safetensors"
    path.write_bytes(with_header(header.encode(), bytes(34)))
    (found,) = check_checkpoint(str(path)).findings
    assert (found.rule, found.name) == ("header-entry" if "?" in fault else "source-rank", faulty)


@pytest.mark.parametrize("tail", ["x", "", "]", "1", ",", "1 1"])
def test_space_is_read_once(tail: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    space = " " * 3_000_000
    for part in (space, f"1,{space}", f"1{space},", f"1{space}"):
        assert verdict(path, '{"a":{"dtype":"F32","shape":[' + part + tail) == "TYPE"
