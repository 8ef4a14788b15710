"""What llama.cpp refuses in a GGUF file, or in files that one was split into, is a finding."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest

from kiln_check.checkpoints.check import check_checkpoint
from kiln_check.checkpoints.exporter import export_checkpoint
from kiln_check.checkpoints.importer import import_checkpoint
from kiln_check.errors import KilnError
from kiln_check.report import Finding
from tests.checkpoints.test_findings import gguf_bytes, gguf_entry, gguf_key, gguf_of

Build = Callable[[Path], Path]

LIMITS: dict[str, tuple[Build, str | None]] = {
    "a name of 63 bytes": (gguf_of(gguf_entry("n" * 63, (64,))), None),
    "a name of 64 bytes": (
        gguf_of(gguf_entry("é" * 32, (64,))),
        "has a name of 64 bytes, more than 63; llama.cpp refuses it",
    ),
    "rank 4": (gguf_of(gguf_entry("a", (2, 2, 4, 4))), None),
    "rank 5": (gguf_of(gguf_entry("a", (2, 2, 4, 2, 2))), "has 5 dimensions, more than 4; llama.cpp refuses"),
    "no dimension": (gguf_of(gguf_entry("a", ()), body=bytes(1)), None),
    "a dimension of 0": (gguf_of(gguf_entry("a", (4, 0)), body=b""), "has a dimension of 0: [0, 4]"),
    "an empty key": (
        gguf_of(gguf_entry("a", (64,)), keys=gguf_key("", 0, b"\1"), num_keys=1),
        "the key at byte 24 is empty",
    ),
    "a key of one letter": (gguf_of(gguf_entry("a", (64,)), keys=gguf_key("k", 0, b"\1"), num_keys=1), None),
    "arrays in an array": (
        gguf_of(
            gguf_entry("a", (64,)),
            keys=gguf_key("k", 9, struct.pack("<IQIQ", 9, 1, 0, 2) + b"\1\2"),
            num_keys=1,
        ),
        None,
    ),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_what_llama_cpp_refuses_is_found_and_import_keeps_it(limit: str, tmp_path: Path) -> None:
    build, words = LIMITS[limit]
    path = build(tmp_path)
    found = check_checkpoint(str(path)).findings
    assert [one.rule for one in found] == ([] if words is None else ["reader-limit"])
    if words is not None:
        assert words in found[0].message
        raw = path.read_bytes()[found[0].offset :][: found[0].length]
        assert raw.startswith(struct.pack("<Q", len(found[0].name.encode()) if found[0].name else 0))
    import_checkpoint(str(path), tmp_path / "a.kiln")
    (back,) = export_checkpoint(tmp_path / "a.kiln", tmp_path / "back")
    assert Path(back).read_bytes() == path.read_bytes()


def test_a_limit_hides_no_gap(tmp_path: Path) -> None:
    path = gguf_of(gguf_entry("n" * 64, (64,), offset=32), body=bytes(96))(tmp_path)
    assert [one.rule for one in check_checkpoint(str(path)).findings] == ["reader-limit", "payload-gap"]


def test_payloads_out_of_order_are_one_finding_and_come_back(tmp_path: Path) -> None:
    entries = [
        gguf_entry(name, (32,), offset=offset) for name, offset in zip("abcd", (96, 64, 0, 32), strict=True)
    ]
    path = gguf_of(*entries, body=bytes(range(128)))(tmp_path)
    (found,) = check_checkpoint(str(path)).findings
    assert (found.rule, found.name) == ("payload-order", "b")
    assert found.message.endswith("; 1 more are out of order")
    assert path.read_bytes()[found.offset : found.offset + found.length] == entries[1]
    import_checkpoint(str(path), tmp_path / "a.kiln")
    (back,) = export_checkpoint(tmp_path / "a.kiln", tmp_path / "back")
    assert Path(back).read_bytes() == path.read_bytes()


def shards(folder: Path) -> list[Path]:
    """Six tensors in three files, split by the gguf package."""
    writer = gguf.GGUFWriter(folder / "model.gguf", "llama", split_max_tensors=2)
    for number in range(6):
        writer.add_tensor(f"t{number}", np.full(8, number, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return sorted(folder.glob("*.gguf"))


def findings(paths: list[Path]) -> tuple[Finding, ...]:
    return check_checkpoint(paths[0]).findings


def set_key(path: Path, key: str, value: bytes) -> None:
    """Put another value, of the same size, under a key."""
    raw = bytearray(path.read_bytes())
    at = raw.index(gguf_key(key, 0, b"")[:-4]) + 8 + len(key) + 4
    raw[at : at + len(value)] = value
    path.write_bytes(raw)


def drop_key(path: Path, key: str) -> None:
    """Give a key another name of the same length."""
    path.write_bytes(path.read_bytes().replace(key.encode(), b"x" * len(key)))


def test_files_that_the_package_split_are_sound(tmp_path: Path) -> None:
    paths = shards(tmp_path)
    assert len(paths) == 3
    assert findings(paths) == ()
    for path in paths:
        assert check_checkpoint(str(path)).findings == ()


CHANGES: dict[str, tuple[Callable[[list[Path]], object], str]] = {
    "a number that is another's": (
        lambda paths: set_key(paths[1], "split.no", b"\2\0"),
        "split.no is 2, counted from 0; by its name it is file 2",
    ),
    "a count that the names have not": (
        lambda paths: set_key(paths[2], "split.count", b"\4\0"),
        "split.count is 4; by its name it is one of 3 files",
    ),
    "a count of tensors that the files have not": (
        lambda paths: set_key(paths[0], "split.tensors.count", b"\7\0\0\0"),
        "split.tensors.count is 7; 3 files hold 6 tensors",
    ),
    "a negative count of tensors": (
        lambda paths: set_key(paths[0], "split.tensors.count", b"\xff" * 4),
        "split.tensors.count is -1; 3 files hold 6 tensors",
    ),
    "a number that is missing": (
        lambda paths: drop_key(paths[2], "split.no"),
        "the header has no split.no",
    ),
    "a count that is missing": (
        lambda paths: drop_key(paths[0], "split.count"),
        "the header has no split.count",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_counts_that_disagree_with_the_files_are_found(change: str, tmp_path: Path) -> None:
    paths = shards(tmp_path)
    edit, words = CHANGES[change]
    edit(paths)
    (found,) = findings(paths)
    assert (found.rule, found.level) == ("split-count", "error")
    assert found.message.startswith(words)
    assert found.file is not None
    if found.length:
        raw = Path(found.file).read_bytes()[found.offset : found.offset + found.length]
        assert found.field.encode() in raw
    with pytest.raises(KilnError):
        import_checkpoint(paths[0], tmp_path / "a.kiln")


def test_a_value_of_another_type_is_found(tmp_path: Path) -> None:
    keys = gguf_key("split.count", 4, struct.pack("<I", 1))
    (found,) = check_checkpoint(
        str(gguf_of(gguf_entry("a", (64,)), keys=keys, num_keys=1)(tmp_path))
    ).findings
    assert found.message == "split.count has a value of the type 4; readers take 2"


def test_one_of_several_files_under_a_name_without_a_number_is_found(tmp_path: Path) -> None:
    path = shards(tmp_path)[0].rename(tmp_path / "model.gguf")
    (found,) = check_checkpoint(str(path)).findings
    assert "by a name that ends with -00001-of-00003.gguf" in found.message
    path = path.rename(tmp_path / "sha256-0")
    assert check_checkpoint(str(path)).findings == ()


def test_a_missing_file_is_told_alone(tmp_path: Path) -> None:
    paths = shards(tmp_path)
    paths[1].unlink()
    assert [found.rule for found in findings(paths)] == ["shard-missing"]


def test_numbered_files_without_a_key_are_a_warning_and_are_imported(tmp_path: Path) -> None:
    paths = [tmp_path / f"model-{number:05d}-of-00002.gguf" for number in (1, 2)]
    for path in paths:
        head = gguf_bytes(gguf_entry(path.name[:11], (64,)), 1)
        path.write_bytes(head + bytes(-len(head) % 32) + bytes(64))
    (found,) = findings(paths)
    assert (found.rule, found.level) == ("split-count", "warning")
    import_checkpoint(paths[0], tmp_path / "a.kiln")
