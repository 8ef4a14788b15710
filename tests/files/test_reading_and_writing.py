"""Files that `write` lays out: sound, read back bit for bit, and there whole or not at all."""

from __future__ import annotations

import array
import contextlib
import errno
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kiln_check
from kiln_check import KilnError, NewTensor, Span
from kiln_check.arrays import ML_DTYPES_NAMES, NUMPY_NAMES, PACKED_BITS
from kiln_check.directory import Directory
from kiln_check.source import BytesSource
from tests.strategies import broken_files, sound_tensors
from tools.corpus.layout import NO_AXIS, NO_INDEX, File, Tensor, pattern


def as_new_tensors(tensors: list[Tensor]) -> dict[str, NewTensor]:
    """The tensors of the strategy, linked by name, each with bytes of its own."""
    new = {}
    for index, tensor in enumerate(tensors):
        new[str(tensor.name)] = NewTensor(
            str(tensor.dtype),
            tensor.shape,
            pattern(index, tensor.due_bytes),
            scale=None if tensor.scale == NO_INDEX else str(tensors[tensor.scale].name),
            outer=None if tensor.outer == NO_INDEX else str(tensors[tensor.outer].name),
            axis=None if tensor.axis == NO_AXIS else tensor.axis,
            group_size=tensor.group_size,
            foreign_tag=tensor.tag,
            block_elements=tensor.block[0],
            block_bytes=tensor.block[1],
        )
    return new


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("written")


@given(sound_tensors())
def test_what_is_written_is_ok_and_comes_back_equal(folder: Path, tensors: list[Tensor]) -> None:
    path, new = folder / "written.kiln", as_new_tensors(tensors)
    kiln_check.write(path, new)
    assert kiln_check.check(path).findings == ()
    with kiln_check.open(path) as file:
        assert list(file) == list(new)
        for name, tensor in file.items():
            wanted = new[name]
            assert bytes(tensor.bytes()) == wanted.data
            assert (tensor.name, tensor.dtype, tensor.shape) == (name, wanted.dtype, tuple(wanted.shape))
            assert (tensor.scheme, tensor.axis) == (wanted.scheme, wanted.axis)
            assert tensor.group_size == wanted.group_size
            assert (tensor.scale and tensor.scale.name) == wanted.scale
            assert (tensor.outer and tensor.outer.name) == wanted.outer
            block = (wanted.foreign_tag, wanted.block_elements, wanted.block_bytes)
            assert tensor.foreign == (block if wanted.dtype == "foreign" else None)


@given(sound_tensors())
def test_spans_are_copied_as_buffers_are(folder: Path, tensors: list[Tensor]) -> None:
    new = as_new_tensors(tensors)
    pool, spans = b"", {}
    for name, tensor in new.items():
        spans[name] = tensor._replace(data=Span(str(folder / "pool"), len(pool), len(tensor.data)))
        pool += bytes(tensor.data)  # type: ignore[arg-type]
    (folder / "pool").write_bytes(pool)
    kiln_check.write(folder / "buffers.kiln", new)
    kiln_check.write(folder / "spans.kiln", spans)
    assert (folder / "spans.kiln").read_bytes() == (folder / "buffers.kiln").read_bytes()


def test_payloads_start_at_multiples_of_64_and_one_object_is_stored_once(tmp_path: Path) -> None:
    shared = b"tied"
    path = tmp_path / "tied.kiln"
    kiln_check.write(
        path, {"a": NewTensor("u8", [4], shared), "b": NewTensor("u8", [4], shared), "c": np.ones(3, "<u2")}
    )
    with kiln_check.open(path, check=False) as file:
        starts = [file.at(index)._descriptor.ofs_data for index in range(3)]
    assert starts[0] == starts[1] != starts[2]
    assert all(start % 64 == 0 for start in starts)


def test_one_array_under_two_names_is_stored_once(tmp_path: Path) -> None:
    shared = np.arange(1000, dtype="<f4")
    kiln_check.write(
        tmp_path / "tied.kiln",
        {"a": shared, "b": shared, "c": NewTensor("f32", [1000], shared), "d": shared + 0},
    )
    with kiln_check.open(tmp_path / "tied.kiln") as file:
        starts = [tensor._descriptor.ofs_data for tensor in file.values()]
    assert starts[0] == starts[1] == starts[2] != starts[3]


def test_a_buffer_of_wider_items_is_stored_whole(tmp_path: Path) -> None:
    wide = array.array("I", [1, 2, 3])
    kiln_check.write(tmp_path / "a.kiln", {"w": NewTensor("u32", [3], wide)})  # type: ignore[arg-type]
    with kiln_check.open(tmp_path / "a.kiln") as file:
        assert bytes(file["w"].bytes()) == wide.tobytes()


def test_any_file_name_that_the_system_takes_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("あ" * 80 + ".kiln")
    kiln_check.write(path, {})
    assert kiln_check.check(path).ok


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path, "/dev/null", f"{tmp_path}/new/"):
        with pytest.raises(OSError, match=r"(?i)not a file|directory"):
            kiln_check.write(path, {})
    assert [entry.name for entry in tmp_path.iterdir()] == ["fifo"]
    with pytest.raises(OSError, match="not a regular file"):
        kiln_check.open(tmp_path / "fifo")


@given(broken_files(faults=2))
def test_all_names_at_once_are_the_names_one_by_one(broken: tuple[File, Any]) -> None:
    directory = Directory(BytesSource(bytes(broken[0])))
    if directory.whole:
        names = [directory.name(index) for index in range(directory.num_tensors or 0)]
        assert directory.all_names() == names


def test_threads_that_share_a_file_get_their_own_tensors(tmp_path: Path) -> None:
    count = 6000
    names = [f"t{index}" for index in range(count)]
    kiln_check.write(
        tmp_path / "a.kiln",
        {name: NewTensor("u32", [1], index.to_bytes(4, "little")) for index, name in enumerate(names)},
    )
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with kiln_check.open(tmp_path / "a.kiln") as file, ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda name: int.from_bytes(file[name].bytes(), "little"), names))
    finally:
        sys.setswitchinterval(interval)
    assert found == list(range(count))


def test_unpacking_does_not_make_up_elements_that_are_not_there(tmp_path: Path) -> None:
    path = tmp_path / "short.kiln"
    path.write_bytes(bytes(File(Tensor("w", "e2m1", (4,))).set(0, shape=(1 << 40,))))
    with kiln_check.open(path, check=False) as file, pytest.raises(KilnError, match="bits"):
        file["w"].array(unpack=True)


@pytest.mark.parametrize("dtype", [*NUMPY_NAMES, *(ML_DTYPES_NAMES.keys() - PACKED_BITS.keys())])
def test_an_array_comes_back_with_its_dtype_and_bits(dtype: str, tmp_path: Path) -> None:
    name = NUMPY_NAMES.get(dtype) or ML_DTYPES_NAMES[dtype]
    kind = np.dtype(getattr(ml_dtypes, name, name))
    bits = (np.arange(6 * kind.itemsize, dtype=np.uint8) % (2 if dtype == "bool" else 251)).view(kind)
    array = bits.reshape(2, 3)
    kiln_check.write(tmp_path / "a.kiln", {"a": array, "reversed": array[:, ::-1]})
    with kiln_check.open(tmp_path / "a.kiln") as file:
        for key, wanted in (("a", array), ("reversed", array[:, ::-1])):
            found = file[key].array()
            assert file[key].dtype == dtype
            assert found.dtype == kind
            assert found.shape == (2, 3)
            assert found.tobytes() == wanted.tobytes()
        assert np.shares_memory(file["a"].array(), np.frombuffer(file["a"].bytes(), np.uint8))


def test_a_big_endian_array_is_stored_little_endian(tmp_path: Path) -> None:
    kiln_check.write(tmp_path / "a.kiln", {"a": np.array([1, 2], ">u4")})
    with kiln_check.open(tmp_path / "a.kiln") as file:
        assert bytes(file["a"].bytes()) == np.array([1, 2], "<u4").tobytes()


@pytest.mark.parametrize("dtype", PACKED_BITS)
@given(codes=st.lists(st.integers(0, 63), max_size=9))
def test_unpacking_gives_element_i_bits_i_b_to_i_b_plus_b_minus_1(
    folder: Path, dtype: str, codes: list[int]
) -> None:
    width = PACKED_BITS[dtype]
    codes = [code % (1 << width) for code in codes]
    packed = sum(code << (i * width) for i, code in enumerate(codes))
    data = packed.to_bytes(-(-len(codes) * width // 8), "little")
    kiln_check.write(folder / "packed.kiln", {"w": NewTensor(dtype, [len(codes)], data)})
    with kiln_check.open(folder / "packed.kiln") as file:
        assert file["w"].array().tobytes() == data
        unpacked = file["w"].array(unpack=True)
        assert unpacked.dtype == np.dtype(getattr(ml_dtypes, ML_DTYPES_NAMES[dtype]))
        assert (unpacked.view(np.uint8) & ((1 << width) - 1)).tolist() == codes
    kiln_check.write(folder / "again.kiln", {"w": unpacked, "v": NewTensor(dtype, [len(codes)], unpacked)})
    with kiln_check.open(folder / "again.kiln") as file:
        assert file["w"].dtype == dtype
        assert {bytes(file[name].bytes()) for name in file} == {data}
    if dtype in ("u4", "i4"):
        signed = [code - 16 if dtype == "i4" and code > 7 else code for code in codes]
        assert unpacked.astype(int).tolist() == signed


REFUSED: dict[str, tuple[dict[Any, Any], str]] = {
    "a scale that is not there": (
        {"w": NewTensor("e2m1", [2], b"x", scale="s", axis=0, group_size=2)},
        '"s"',
    ),
    "an outer without a scale": ({"w": NewTensor("f32", [], b"four", outer="w")}, "needs a scale"),
    "an unknown dtype": ({"w": NewTensor("f33", [], b"four")}, "f33"),
    "a payload too short": ({"w": NewTensor("f32", [2], b"four")}, "data-length"),
    "rank 9": ({"w": NewTensor("u8", [1] * 9, b"x")}, "rank 9"),
    "a dimension of 2^64": ({"w": NewTensor("u8", [1 << 64], b"")}, "does not fit"),
    "an empty name": ({"": NewTensor("u8", [1], b"x")}, "name-text"),
    "a lone surrogate": ({"\ud800": NewTensor("u8", [1], b"x")}, "UTF-8"),
    "a name of 65536 bytes": ({"n" * 65536: NewTensor("u8", [1], b"x")}, "does not fit"),
    "a name that is no text": ({7: NewTensor("u8", [1], b"x")}, "no text"),
    "a dtype that is no text": ({"w": NewTensor(None, [1], b"x")}, "no dtype"),  # type: ignore[arg-type]
    "neither array nor tensor": ({"w": [1, 2]}, "list"),
    "an array of text": ({"w": np.array(["a"])}, "<U1"),
    "an array of another dtype": ({"w": NewTensor("f32", [4], np.zeros(4, "<i4"))}, "i32 [4] is no f32 [4]"),
    "an array of another shape": ({"w": NewTensor("f32", [4], np.zeros((2, 2), "<f4"))}, "give its bytes"),
    "a scale without an axis": (
        {"w": NewTensor("u8", [1], b"x", scale="s", group_size=1), "s": NewTensor("u8", [1], b"x")},
        "needs the axis",
    ),
    "an axis counted from the end": (
        {"w": NewTensor("u8", [1], b"x", scale="s", axis=-1, group_size=1), "s": NewTensor("u8", [1], b"x")},
        "axis -1 is not one of 0 to 0",
    ),
    "an axis alone": ({"w": NewTensor("u8", [1], b"x", axis=0)}, "scheme-none"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_check_would_reject_is_refused_and_nothing_is_written(what: str, tmp_path: Path) -> None:
    tensors, words = REFUSED[what]
    (tmp_path / "old.kiln").write_bytes(b"old")
    with pytest.raises(KilnError, match="(?s)" + re.escape(words)):
        kiln_check.write(tmp_path / "old.kiln", tensors)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("old.kiln", b"old")]


def test_a_span_that_is_cut_short_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"123")
    (tmp_path / "old.kiln").write_bytes(b"old")
    with pytest.raises(OSError, match="before its tensor does"):
        kiln_check.write(
            tmp_path / "old.kiln", {"w": NewTensor("u8", [4], Span(str(tmp_path / "short"), 0, 4))}
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old.kiln", "short"]
    assert (tmp_path / "old.kiln").read_bytes() == b"old"


def test_a_file_larger_than_the_disk_is_refused_early(tmp_path: Path) -> None:
    size = 1 << 60
    huge = NewTensor("u8", [size], Span(str(tmp_path / "absent"), 0, size))
    with pytest.raises(OSError, match="disk has") as caught:
        kiln_check.write(tmp_path / "a.kiln", {"w": huge})
    assert caught.value.errno == errno.ENOSPC
    assert list(tmp_path.iterdir()) == []


def test_without_unnamed_files_and_kernel_copies_the_result_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = bytes(range(251)) * 9
    (tmp_path / "pool").write_bytes(pool)
    spans = {name: Span(str(tmp_path / "pool"), offset, 1800) for name, offset in (("v", 384), ("w", 5))}
    tensors = {name: NewTensor("u8", [1800], span) for name, span in spans.items()}
    kiln_check.write(tmp_path / "a.kiln", tensors)
    with kiln_check.open(tmp_path / "a.kiln") as file:
        assert file["v"].offset == 384  # in its page as in the pool's, so that the kernel copies it
        for name, span in spans.items():
            assert bytes(file[name].bytes()) == pool[span.offset :][: span.length]
    monkeypatch.delattr(os, "copy_file_range", raising=False)
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    kiln_check.write(tmp_path / "b.kiln", tensors)
    assert (tmp_path / "a.kiln").read_bytes() == (tmp_path / "b.kiln").read_bytes()
    with pytest.raises(OSError, match="before its tensor does"):
        kiln_check.write(
            tmp_path / "b.kiln", {"w": NewTensor("u8", [9999], Span(str(tmp_path / "pool"), 0, 9999))}
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.kiln", "b.kiln", "pool"]


def test_a_large_file_is_written_out_while_it_is_copied(tmp_path: Path) -> None:
    pool = os.urandom(1 << 20) * 150
    (tmp_path / "pool").write_bytes(pool)
    kiln_check.write(
        tmp_path / "a.kiln",
        {
            "v": NewTensor("u8", [80 << 20], Span(str(tmp_path / "pool"), 384, 80 << 20)),
            "w": NewTensor("u8", [140 << 20], Span(str(tmp_path / "pool"), 5, 140 << 20)),
        },
    )
    with kiln_check.open(tmp_path / "a.kiln") as file:
        assert file["v"].bytes() == memoryview(pool)[384:][: 80 << 20]
        assert file["w"].bytes() == memoryview(pool)[5:][: 140 << 20]
    assert (tmp_path / "a.kiln").stat().st_size == 384 + (220 << 20)


def test_a_progress_bar_is_shown_on_a_terminal_only(tmp_path: Path) -> None:
    import fcntl
    import pty
    import struct
    import termios

    program = (
        "import sys, kiln_check as k\n"
        "k.write(sys.argv[1], {'w': k.NewTensor('u8', [5], b'12345')}, progress=True)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "a.kiln")]
    assert subprocess.run(command, capture_output=True, check=True).stderr == b""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    subprocess.run(command, stderr=slave, check=True)
    os.close(slave)
    shown = b""
    with contextlib.suppress(OSError):  # Linux's way to say that the other side is closed
        while part := os.read(master, 1 << 16):
            shown += part
    os.close(master)
    assert b"a.kiln: 100%" in shown


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_writer_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    program = """
import sys, kiln_check
tensors = {f"t{i}": kiln_check.NewTensor("u8", [65536], bytes([i]) * 65536) for i in range(64)}
while True:
    kiln_check.write(sys.argv[1], tensors)
    print("written", flush=True)
"""
    path = tmp_path / "new.kiln"
    kiln_check.write(path, {"old": NewTensor("u8", [1], b"x")})
    for _ in range(4):
        writer = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
        writer.kill()
        writer.wait()
        writer.stdout.close()
        assert kiln_check.check(path).ok
        with kiln_check.open(path) as file:
            assert all(set(tensor.bytes()) == {index} for index, tensor in enumerate(file.values()))


def test_writing_through_a_link_replaces_what_it_points_at_and_keeps_the_mode(tmp_path: Path) -> None:
    real, link = tmp_path / "real.kiln", tmp_path / "link.kiln"
    real.write_bytes(b"old")
    real.chmod(0o640)
    link.symlink_to(real)
    kiln_check.write(link, {"w": np.zeros(1)})
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert kiln_check.check(real).ok


@pytest.fixture
def broken(root: Path) -> Path:
    return root / "tests" / "corpus" / "kiln-v2-scale-count.kiln"


def test_open_refuses_a_broken_file_and_says_why(broken: Path) -> None:
    with pytest.raises(KilnError, match="scale-count") as caught:
        kiln_check.open(broken)
    assert caught.value.report is not None
    assert caught.value.report.verdict == "TYPE"


def test_open_without_check_hands_out_what_is_there(broken: Path) -> None:
    with kiln_check.open(broken, check=False) as file:
        assert file["w"].scale is not None
        assert file["w"].scale.shape == (2,)
        with pytest.raises(IndexError):
            file.at(len(file))
        with pytest.raises(KeyError):
            file["absent"]


def test_open_without_check_still_needs_a_directory(tmp_path: Path) -> None:
    for raw in (b"", b"\x89KILN\r\n\x1a"):
        (tmp_path / "cut.kiln").write_bytes(raw)
        with pytest.raises(KilnError, match="LENGTH"):
            kiln_check.open(tmp_path / "cut.kiln", check=False)


def test_views_outlive_the_file_and_a_closed_file_says_so(tmp_path: Path) -> None:
    kiln_check.write(tmp_path / "a.kiln", {"w": np.arange(4, dtype="<i8")})
    with kiln_check.open(tmp_path / "a.kiln") as file:
        tensor, array = file["w"], file["w"].array()
    assert array.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="closed"):
        tensor.bytes()


def test_open_of_an_absent_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        kiln_check.open(os.fspath(tmp_path / "absent.kiln"))
