"""The screen clears nothing that a rule rejects: with it, a check finds what it finds without."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kiln_check import check, screen_columns
from kiln_check.directory import LEN_HEADER, Directory
from kiln_check.generated.kiln_v2_records import DESCRIPTOR, DESCRIPTOR_SIZES, HEADER
from kiln_check.rules import RULES, judge
from kiln_check.rules.subjects import File as Subjects
from kiln_check.source import BytesSource
from tests.strategies import FAULTS, U2, U4, U8, broken_files
from tools.corpus.layout import MAX_RANK, NO_INDEX, File, Tensor

TOP = {2: U2, 4: U4, 8: U8}

Draw = Callable[[st.SearchStrategy[Any]], Any]


def directory_of(raw: bytes) -> Directory:
    return Directory(BytesSource(raw))


def assert_equal_reports(raw: bytes, rows: int = screen_columns.ROWS) -> None:
    """The screen clears nothing that a rule rejects, and a Report is the same with it and without."""
    plain = judge(directory_of(raw), None)
    directory = directory_of(raw)
    if directory.whole:
        unverified = screen_columns.unverified(directory, rows)
        assert unverified == sorted(set(unverified))
        assert_keep_every_rule(directory, set(range(directory.num_tensors or 0)).difference(unverified))
        assert judge(directory_of(raw), unverified) == plain
    assert list(check(raw).findings) == plain


def assert_keep_every_rule(directory: Directory, cleared: set[int]) -> None:
    """Every rule for tensors, asked by itself of one tensor at a time, holds for each that is cleared."""
    file = Subjects(directory, range(directory.num_tensors or 0))
    for tensor in map(file.tensor, cleared):
        for rule in RULES:
            if rule.for_tensor and (rule.applies is None or rule.applies(tensor)):
                assert rule.holds(tensor), (tensor.index, rule.name)


def likely(value: int, top: int) -> list[int]:
    """Values of a field below `top` that are likely to matter."""
    numbers = {0, 1, 2, 3, 9, value - 1, value + 1, value ^ 64, value // 2, value * 2}
    numbers |= {top // 2, top - 64, top - 1}
    return sorted(number for number in numbers if 0 <= number < top)


def near(value: int, top: int) -> st.SearchStrategy[int]:
    """Those values, and any other."""
    return st.sampled_from(likely(value, top)) | st.integers(0, top - 1)


@st.composite
def corrupted_fields(draw: Draw, file: File, index: int, field: str) -> None:
    """Give a field of one tensor another value: one nearby, another tensor's, or any."""
    fields = file.descriptors[index]
    if field == "shape":
        shape = [*fields["shape"], *[0] * (MAX_RANK - len(fields["shape"]))]
        entry = draw(st.integers(0, MAX_RANK - 1))
        shape[entry] = draw(near(shape[entry], U8) | st.integers(0, 63).map(lambda bit: 1 << bit))
        file.set(index, shape=tuple(shape))
    else:
        value = near(fields[field], TOP[DESCRIPTOR_SIZES[field]])
        others = st.sampled_from([other[field] for other in file.descriptors])
        file.set(index, **{field: draw(value | others)})


@st.composite
def corrupted_files(draw: Draw) -> bytes:
    """A sound file in which some fields of some tensors, bytes of names or header fields are changed."""
    file, _ = draw(broken_files(faults=draw(st.integers(0, 2))))
    for _ in range(draw(st.integers(0, 3)) if file.descriptors else 0):
        index = draw(st.integers(0, len(file.descriptors) - 1))
        draw(corrupted_fields(file, index, draw(st.sampled_from(DESCRIPTOR["names"]))))
    if not draw(st.integers(0, 4)):
        field = draw(st.sampled_from(["reserved1", "len_names", "len_file"]))
        size = TOP[int(HEADER["formats"][HEADER["names"].index(field)][-1])]
        file.head(**{field: draw(near(file.header[field], size))})
    names = bytearray(file.names)
    for _ in range(draw(st.integers(0, 2)) if names else 0):
        names[draw(st.integers(0, len(names) - 1))] = draw(st.integers(0, 255))
    file.names = bytes(names)
    return bytes(file)


@settings(max_examples=max(500, settings().max_examples))
@given(corrupted_files(), st.integers(1, 5))
def test_the_screen_never_clears_what_a_rule_rejects(raw: bytes, rows: int) -> None:
    assert_equal_reports(raw, rows)


def test_every_corpus_file_gets_the_same_report(root: Path) -> None:
    for path in sorted((root / "tests" / "corpus").glob("*.kiln")):
        assert_equal_reports(path.read_bytes())
        assert_equal_reports(path.read_bytes(), rows=1)


def test_every_field_of_every_tensor_of_a_small_file() -> None:
    file = File(
        Tensor("outer", "f32"),
        Tensor("w", "e2m1", (2, 33), scheme=2, axis=1, group_size=16, scale=2, outer=0),
        Tensor("w.scale", "f8e4m3", (2, 3)),
        Tensor("v", "u4", (5, 3), scheme=1, axis=0, group_size=2, scale=4),
        Tensor("v.scale", "e8m0", (9,)),
        Tensor("blocks", "foreign", (2, 64), block=(32, 18), tag=12),
        Tensor("embed", "bf16", (8, 4)),
        Tensor("head", "u8", (64,)),
        slack=64,
    ).place(7, like=6)
    for index, sound in enumerate(copy.deepcopy(file.descriptors)):
        for field in DESCRIPTOR["names"][:-1]:
            values = {other[field] for other in file.descriptors}
            values.update(likely(sound[field], TOP[DESCRIPTOR_SIZES[field]]))
            for value in values:
                assert_equal_reports(bytes(file.set(index, **{field: value})), rows=3)
            file.set(index, **{field: sound[field]})
        shape = [*sound["shape"], *[0] * (MAX_RANK - len(sound["shape"]))]
        for entry in range(MAX_RANK):
            for value in likely(shape[entry], U8):
                changed = (*shape[:entry], value, *shape[entry + 1 :])
                assert_equal_reports(bytes(file.set(index, shape=changed)), rows=3)
        file.set(index, shape=sound["shape"])
    assert check(bytes(file)).ok


@pytest.fixture(scope="module")
def large_file() -> File:
    """5,000 tensors: weights with scales, some with an outer scale, foreign blocks, tied payloads."""
    tensors = [
        Tensor("outer", "f32"),
        Tensor("embed.weight", "bf16", (8, 4)),
        Tensor("head.weight", "u8", (64,)),
    ]
    while len(tensors) < 5000:
        index, name = len(tensors), f"model.layers.{len(tensors) // 8}.mlp.experts.{len(tensors) % 8}"
        if index % 40 == 3:
            tensors.append(Tensor(f"{name}.blocks", "foreign", (2, 64), block=(32, 18), tag=12))
            continue
        link: dict[str, Any] = {"scheme": 2, "outer": 0} if index % 3 else {"scheme": 1}
        tensors.append(
            Tensor(f"{name}.weight", "e2m1", (2, 33), axis=1, group_size=16, scale=index + 1, **link)
        )
        tensors.append(Tensor(f"{name}.weight_scale", "f8e4m3", (2, 3)))
    file = File(*tensors)
    file.place(2, like=1)
    return file


def test_a_large_sound_file_has_nothing_unverified(large_file: File) -> None:
    directory = directory_of(bytes(large_file))
    assert judge(directory) == []
    assert screen_columns.unverified(directory) == []
    assert screen_columns.unverified(directory, rows=7) == []


OF_TENSORS = [rule for rule, (among, _) in FAULTS.items() if among is not None]


@pytest.mark.parametrize("rule", OF_TENSORS)
@settings(max_examples=1 + settings().max_examples // 2000)
@given(data=st.data())
def test_each_fault_in_one_of_5000_tensors(large_file: File, rule: str, data: st.DataObject) -> None:
    file = copy.deepcopy(large_file)
    FAULTS[rule][1](data.draw, file)
    assert_equal_reports(bytes(file))


@pytest.mark.parametrize("field", DESCRIPTOR["names"])
@settings(max_examples=1 + settings().max_examples // 2000)
@given(data=st.data())
def test_each_field_in_one_of_5000_tensors(large_file: File, field: str, data: st.DataObject) -> None:
    file = copy.deepcopy(large_file)
    data.draw(corrupted_fields(file, data.draw(st.integers(0, len(file.descriptors) - 1)), field))
    assert_equal_reports(bytes(file))


def quantized(shape: tuple[int, ...], group_size: int, scales: tuple[int, ...]) -> File:
    """A tensor without bytes that count: its payload is as long as its wrapped count says."""
    return File(
        Tensor("w", "u8", shape, scheme=1, axis=0, group_size=group_size, scale=1, payload=b""),
        Tensor("s", "u8", scales, payload=b""),
    )


@pytest.mark.parametrize(
    "file",
    [
        File(Tensor("a", "u8", (1 << 32, 1 << 32), payload=b"")),
        File(Tensor("a", "u8", (1 << 63, 2), payload=b"")),
        File(Tensor("a", "u8", (0, 1 << 63, 4), payload=b"")),
        File(Tensor("a", "c128", (1 << 57,), payload=b"")),
        File(Tensor("a", "u4", ((1 << 62) + 2,), payload=b"\0")),
        File(Tensor("a", "u64", (1 << 61,), payload=b"")),
        File(Tensor("a", "foreign", (1 << 33,), block=(1, 1 << 31), payload=b"")),
        File(Tensor("a", "foreign", (1 << 34, 1 << 30), block=(1 << 30, 1 << 30), payload=b"")),
        File(Tensor("a", "foreign", (0,), block=(0, 1), payload=b"")),
        quantized((4,), 2, (2,)).set(0, rank=20, quant_axis=10),
        quantized((1 << 32, 1 << 32), 1, (0,)),
        quantized((1 << 32, 1 << 32), 1 << 31, (2, 1 << 32)),
        quantized((U8 - 1, 0), 2, (0,)),
        quantized((0, U8 - 1), 2, (0,)),
        quantized((0,), 0, (0,)),
        quantized((U8 - 1,), 2, (1 << 63,)),
        File(Tensor("a", "u8", (64,))).set(0, ofs_data=U8 - 64),
        File(Tensor("a", "u8", (64,))).set(0, ofs_data=U8 - 64).head(len_file=U8 - 1),
        File(Tensor("a", "u8", (64,))).set(0, len_data=U8 - 64),
        File(Tensor("a", "u8", (64,))).head(len_file=0),
        File(*(Tensor(name, "u8", (128,)) for name in "abc"))
        .place(1, 0)
        .set(1, len_data=64)
        .set(2, ofs_data=U8 - 64, len_data=128),
    ],
)
def test_nothing_wraps_unnoticed(file: File) -> None:
    assert_equal_reports(bytes(file))


@pytest.mark.parametrize(
    ("shape", "block", "len_data"),
    [((5,), (2, 7), 14), ((4,), (2, 7), 7), ((0,), (3, 0), 0), ((0,), (0, 3), 0), ((4,), (0, 0), 0)],
)
def test_foreign_blocks_that_are_not_whole_are_not_cleared(
    shape: tuple[int, ...], block: tuple[int, int], len_data: int
) -> None:
    file = File(Tensor("a", "foreign", shape, block=block, payload=bytes(len_data)))
    assert check(bytes(file)).verdict != "OK"
    assert_equal_reports(bytes(file))


@st.composite
def pools(draw: Draw) -> tuple[bytes, list[tuple[int, int]]]:
    """A name pool and ranges in it that may share bytes, leave gaps, split characters or pass its end."""
    letters = st.sampled_from(
        ["a", "b", "/", "é", "\x80", "\x9f", "\xa0", "名", "😀", "\x00", "\x1f", "\x7f", " "]
    )
    texts = st.lists(letters, max_size=6).map(lambda characters: "".join(characters).encode())
    long = st.tuples(st.sampled_from([63, 64, 65, 127, 128, 129]), texts).map(
        lambda pair: b"n" * pair[0] + pair[1]
    )
    parts = draw(st.lists(texts | long | st.binary(max_size=3), min_size=1, max_size=8))
    pool = b"".join(parts)
    ends = [len(b"".join(parts[: place + 1])) for place in range(len(parts))]
    ranges = [(end - len(part), len(part)) for end, part in zip(ends, parts, strict=True)]
    extra = st.tuples(st.integers(0, len(pool) + 1), st.integers(0, len(pool) + 1))
    return pool, draw(st.permutations(ranges + draw(st.lists(extra, max_size=4))))


@given(pools(), st.integers(1, 4))
@example(("aé".encode(), [(0, 3), (0, 2)]), 4)
@example(("aé".encode(), [(0, 3), (2, 1)]), 4)
@example((b"n" * 130, [(0, 64), (64, 64), (0, 65), (0, 128), (0, 130)]), 4)
def test_names_are_cleared_only_if_they_are_text_and_unique(
    pool_and_ranges: tuple[bytes, list[tuple[int, int]]], rows: int
) -> None:
    pool, ranges = pool_and_ranges
    file = File(*(Tensor(f"{index}", "u8") for index in range(len(ranges))))
    file.names = pool
    for index, (start, length) in enumerate(ranges):
        file.set(index, ofs_name=start, len_name=length)
    file.head(len_names=len(pool))
    assert_equal_reports(bytes(file), rows)


@given(st.lists(st.text("ab名😀/", min_size=1, max_size=140), unique=True, min_size=1), st.integers(1, 40))
@example(["a" * 64 + "b", "a" * 64 + "/", "a" * 64 + "b" * 64, "b" * 64 + "a" * 64], 4)
def test_names_that_are_text_and_unique_are_cleared(names: list[str], rows: int) -> None:
    directory = directory_of(bytes(File(*(Tensor(name, "u8") for name in names))))
    assert screen_columns.unverified(directory, rows) == []
    assert judge(directory) == []


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6)), min_size=1, max_size=9), st.booleans())
def test_payloads_are_cleared_only_if_they_share_no_bytes(ranges: list[tuple[int, int]], tight: bool) -> None:
    file = File(*(Tensor(f"{index}", "u8") for index in range(len(ranges))), slack=2000)
    begin = file.descriptors[0]["ofs_data"]
    unit = 64 if tight else 50
    for index, (start, length) in enumerate(ranges):
        size = length * unit
        file.set(index, ofs_data=begin + start * 64, len_data=size, rank=1, shape=(size,))
    assert_equal_reports(bytes(file))


def test_a_sound_directory_is_read_once(large_file: File) -> None:
    reads: list[tuple[int, int]] = []

    class Watched(BytesSource):
        def read(self, offset: int, length: int) -> bytes:
            reads.append((offset, length))
            return super().read(offset, length)

    raw = bytes(large_file)
    assert screen_columns.unverified(Directory(Watched(raw)), rows=512) == []
    _, *rest = sorted(reads)
    assert [offset for offset, _ in rest] == [LEN_HEADER, *(offset + length for offset, length in rest[:-1])]
    assert sum(rest[-1]) == len(raw) - len(large_file.data)


def everything_broken(count: int) -> bytes:
    """Tensors that share one name and overlap, and break what else they can."""
    file = File(*(Tensor("same", "u8", (64,)) for _ in range(count)))
    begin = file.descriptors[0]["ofs_data"]
    for index in range(count):
        file.set(
            index, ofs_name=0, reserved1=1, scheme=1, group_size=0, quant_axis=9, scale_index=NO_INDEX - 1
        )
        file.set(index, ofs_data=begin + index % 8 * 64, len_data=1024, foreign_tag=1, outer_index=index)
    return bytes(file)


def calls_of(run: Callable[[], object]) -> int:
    """Number of calls of Python functions and of built-in ones."""
    count = 0

    def count_call(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(count_call)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


def test_a_broken_directory_twice_as_long_takes_twice_the_work() -> None:
    once, twice = everything_broken(300), everything_broken(600)
    assert len(check(twice).findings) > 7 * 600
    assert calls_of(lambda: check(twice)) < 2.1 * calls_of(lambda: check(once))


def test_a_small_file_loads_neither_numpy_nor_the_parser(root: Path) -> None:
    path = root / "tests" / "corpus" / "kiln-v2-scales.kiln"
    code = (
        "import sys, kiln_check\n"
        f"assert kiln_check.check({str(path)!r}).ok\n"
        "print([name for name in ('numpy', 'kaitaistruct') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
