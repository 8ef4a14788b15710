"""Bytes reach the check the same, whatever they come from, and no more of them than it needs."""

from __future__ import annotations

import gzip
import io
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kiln_check import check
from kiln_check.checking import check_source
from kiln_check.directory import FIRST_READ, Directory
from kiln_check.report import Report
from kiln_check.source import BytesSource, PathSource, PipeSource, Source, open_source
from tests.strategies import sound_files
from tools.corpus.layout import File, Tensor


class Pipe(io.RawIOBase):
    """A stream that can't seek and gives at most a few bytes at a time."""

    def __init__(self, data: bytes, step: int) -> None:
        self._file = io.BytesIO(data)
        self._step = step

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        part = self._file.read(min(self._step, len(buffer)))
        buffer[: len(part)] = part
        return len(part)


class Watched:
    """A source that remembers the furthest byte that was asked for."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.furthest = 0

    def size(self) -> int:
        return self._source.size()

    def has(self, length: int) -> bool:
        return self._source.has(length)

    def read(self, offset: int, length: int) -> bytes:
        self.furthest = max(self.furthest, offset + length)
        return self._source.read(offset, length)

    def close(self) -> None:
        self._source.close()


@given(file=sound_files(), cut=st.integers(0, 1 << 12), step=st.integers(1, 5000))
def test_every_kind_of_source_gives_the_same_report(file: File, cut: int, step: int) -> None:
    raw = bytes(file)[: cut or None]
    wanted = check(raw, path="x")
    assert check(bytearray(raw), path="x") == wanted
    assert check(memoryview(raw), path="x") == wanted
    assert check(io.BytesIO(raw), path="x") == wanted
    assert check(io.BufferedReader(Pipe(raw, step)), path="x") == wanted
    assert check(Pipe(raw, step), path="x") == wanted  # type: ignore[arg-type]


def test_only_header_directory_and_names_are_read() -> None:
    file = File(*(Tensor(f"tensor {index}", "u8", (1 << 16,)) for index in range(100)))
    raw = bytes(file)
    watched = Watched(BytesSource(raw))
    assert check_source(watched, "x").ok
    assert watched.furthest == len(raw) - len(file.data)


def test_a_large_sparse_file_is_checked_by_its_head(tmp_path: Path) -> None:
    size = 1 << 40
    file = File(Tensor("w", "u8", (size,), payload=b"")).set(0, len_data=size)
    file.head(len_file=file.descriptors[0]["ofs_data"] + size)
    path = tmp_path / "sparse.kiln"
    path.write_bytes(bytes(file))
    try:
        os.truncate(path, file.header["len_file"])
    except OSError:
        pytest.skip("this file system has no files of 1 TiB")
    assert check(path).ok


def test_names_are_read_one_by_one_where_the_pool_is_larger_than_names_can_be() -> None:
    pool = 1 << 20
    file = File(Tensor("w", "u8", (1,)))
    head = bytes(file.head(len_names=pool, len_file=1 << 21).set(0, ofs_data=1 << 20, ofs_name=70000))[:192]
    raw = head + b"\n" * 70000 + b"w" + b"\n" * (pool - 70001)
    raw += bytes((1 << 21) - len(raw))
    watched = Watched(BytesSource(raw))
    report = check_source(watched, "x")
    assert [finding.rule for finding in report.findings] == ["data-range"]
    assert report.findings[0].name == "w"
    assert watched.furthest < FIRST_READ + 70000


@pytest.mark.parametrize("num_tensors", [1, 1 << 20, (1 << 32) - 1])
@pytest.mark.parametrize("len_names", [0, 1 << 40, (1 << 64) - 1])
def test_a_claim_that_the_file_cannot_back_is_answered_without_reading(
    num_tensors: int, len_names: int
) -> None:
    raw = bytes(File().head(num_tensors=num_tensors, len_names=len_names))
    watched = Watched(BytesSource(raw))
    directory = Directory(watched)
    assert not directory.whole
    assert watched.furthest == FIRST_READ
    assert [finding.rule for finding in check(raw).findings] == ["file-length"]


def test_a_seekable_file_is_read_from_its_start_and_put_back() -> None:
    file = io.BytesIO(bytes(File()))
    file.seek(7)
    assert check(file).ok
    assert file.tell() == 7


def test_a_file_that_becomes_shorter_meanwhile_is_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "a.kiln"
    path.write_bytes(bytes(File(*(Tensor(f"{index:03}", "u8", ()) for index in range(100)))))
    source = PathSource(path)
    os.truncate(path, 4096)
    with pytest.raises(OSError, match="shorter"):
        check_source(source, "x")
    source.close()


def test_a_file_that_changes_meanwhile_is_unreadable_or_judged() -> None:
    class Shrinking(BytesSource):
        """Says that it is longer than what it gives."""

        def has(self, length: int) -> bool:
            return True

        def size(self) -> int:
            return 1 << 40

    raw = bytes(File(Tensor("w", "u8", ())).head(len_names=1 << 30))
    for end in (*range(0, 200, 7), len(raw)):
        report = check_source_or_none(Shrinking(raw[:end]))
        assert report is None or not report.ok


def check_source_or_none(source: Source) -> Report | None:
    try:
        return check_source(source, "x")
    except OSError:
        return None


def test_what_is_no_file_any_more_is_unreadable(tmp_path: Path) -> None:
    closed = io.BytesIO(b"")
    closed.close()
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress(bytes(File()) + os.urandom(1 << 16))[:1000])
    with gzip.open(cut) as compressed:
        assert check(compressed).verdict == "UNREADABLE"  # type: ignore[arg-type]
    assert check(closed).verdict == "UNREADABLE"


def test_a_view_with_gaps_is_read_as_what_it_shows() -> None:
    raw = bytes(File())
    assert check(memoryview(bytes(byte for pair in zip(raw, raw, strict=True) for byte in pair))[::2]).ok
    assert not check(memoryview(b"")).ok


def test_what_cannot_be_opened_is_a_report_and_no_exception(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo.kiln"
    os.mkfifo(fifo)
    for path, words in (
        (str(tmp_path / "absent"), "No such file"),
        (str(tmp_path), "directory"),
        (str(fifo), "not a regular file"),
        ("nul\0byte", "not a path"),
        *([("/proc/self/status", "no size")] if os.path.exists("/proc/self/status") else []),
    ):
        report = check(path)
        assert report.verdict == "UNREADABLE"
        assert report.findings == ()
        assert words in str(report.error)


def test_a_stream_that_fails_is_unreadable() -> None:
    class Failing(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            raise OSError(5, "Input/output error")

    report = check(Failing())  # type: ignore[arg-type]
    assert (report.verdict, report.error) == ("UNREADABLE", "Input/output error")


@pytest.mark.parametrize("target", [None, 7, io.StringIO("text"), ["a.kiln"]])
def test_what_is_no_source_is_a_type_error(target: object) -> None:
    with pytest.raises(TypeError, match="binary file"):
        open_source(target)  # type: ignore[arg-type]


def test_a_pipe_is_counted_and_not_kept() -> None:
    read_end, write_end = os.pipe()
    raw = bytes(File(Tensor("w", "u8", (1 << 22,))))
    writer = threading.Thread(target=_feed, args=(write_end, raw))
    writer.start()
    with open(read_end, "rb", buffering=0) as file:
        source = PipeSource(file)
        assert check_source(source, "-").ok
        assert len(source._kept) == FIRST_READ
    writer.join()


def _feed(fd: int, raw: bytes) -> None:
    with open(fd, "wb") as file:
        file.write(raw)
