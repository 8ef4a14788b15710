"""The types of ggml are those of the gguf package; one that is not known is kept, not refused."""

from __future__ import annotations

import struct
from math import prod
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from hypothesis import given
from hypothesis import strategies as st

import kiln_check
from kiln_check.checkpoints.check import check_checkpoint
from kiln_check.checkpoints.exporter import export_checkpoint
from kiln_check.checkpoints.formats.ggml_types import BIG_ENDIAN, TYPES, about, bound, is_unknown, type_of
from kiln_check.checkpoints.formats.header import SourceTensor, Type
from kiln_check.checkpoints.formats.registry import read_file
from kiln_check.checkpoints.formats.safetensors import TYPES as SAFETENSORS_TYPES
from kiln_check.checkpoints.importer import import_checkpoint
from kiln_check.generated.kiln_v2_records import DTYPES
from tests.checkpoints.test_findings import gguf_bytes, gguf_entry

NO_STORAGE = {GGMLQuantizationType.Q8_1: (32, 36)}
"""The package counts 4 bytes for each of a block's two numbers; ggml's struct has 2. No file stores it."""


def test_the_table_is_the_package_s() -> None:
    of_package = {
        kind.value: (kind.name, *NO_STORAGE.get(kind, size)) for kind, size in GGML_QUANT_SIZES.items()
    }
    of_kiln = {
        code: (name, type_.block_elements or 1, type_.block_bytes or type_.bits // 8)
        for code, (name, type_) in TYPES.items()
    }
    assert of_kiln == of_package


def test_a_foreign_type_has_its_code_as_tag_and_any_other_a_dtype_of_its_name() -> None:
    for code, (name, type_) in TYPES.items():
        wanted = code if type_.dtype == "foreign" else 0
        assert type_.foreign_tag == wanted
        assert type_.dtype in ("foreign", name.lower())


@pytest.mark.parametrize("type_", [type_ for _, type_ in TYPES.values()] + list(SAFETENSORS_TYPES.values()))
def test_a_width_is_the_low_byte_of_the_dtype_s_code(type_: Type) -> None:
    code = next(code for code, name in DTYPES.items() if name == type_.dtype)
    assert type_.bits == code & 0xFF


def written(path: Path, codes: list[tuple[int, tuple[int, ...], int]], tail: int = 0) -> Path:
    """A file with tensors of these types, shapes (innermost first) and lengths in bytes."""
    entries, body = b"", b""
    for number, (code, shape, length) in enumerate(codes):
        body += bytes(-len(body) % 32)
        entries += gguf_entry(f"t{number}", shape, code, len(body))
        body += bytes(index * 7 % 251 for index in range(length))
    head = gguf_bytes(entries, len(codes))
    path.write_bytes(head + bytes(-len(head) % 32) + body + bytes(tail))
    return path


@pytest.mark.parametrize("code", [31, 42, 139, 142, 146, 2**31 - 1])
def test_a_type_that_is_not_known_is_kept_and_comes_back(code: int, tmp_path: Path) -> None:
    path = written(tmp_path / "a.gguf", [(code, (256, 4), 288), (0, (5,), 20), (code, (64, 40), 40 * 18)])
    report = check_checkpoint(str(path))
    assert report.findings == ()
    assert report.notes == (f"foreign 2: ggml type {code}, which is not known and keeps its bytes",)
    import_checkpoint(str(path), tmp_path / "a.kiln")
    with kiln_check.open(tmp_path / "a.kiln") as file:
        assert file["t0"].foreign == (code, 256, 72)
        assert file["t2"].foreign == (code, 64, 18)
        assert file["t0"].shape == (4, 256)
    (back,) = export_checkpoint(tmp_path / "a.kiln", tmp_path / "back")
    assert Path(back).read_bytes() == path.read_bytes()


def test_what_a_file_has_after_the_rows_of_an_unknown_type_is_a_gap(tmp_path: Path) -> None:
    path = written(tmp_path / "a.gguf", [(142, (256, 1), 72)], tail=256 * 16)
    (found,) = check_checkpoint(str(path)).findings
    assert found.rule == "payload-gap"


@pytest.mark.parametrize("length", [0, 3])
def test_a_row_of_no_byte_is_a_payload_that_is_not_there(length: int, tmp_path: Path) -> None:
    path = written(tmp_path / "a.gguf", [(142, (64, 4), length)])
    (found,) = check_checkpoint(str(path)).findings
    assert found.rule == "file-short"


@pytest.mark.parametrize("code", [2**31, 2**32 - 1])
def test_a_negative_type_is_none_of_any_project(code: int, tmp_path: Path) -> None:
    path = written(tmp_path / "a.gguf", [(code, (256, 4), 288)])
    (found,) = check_checkpoint(str(path)).findings
    assert (found.rule, found.name) == ("header-entry", "t0")
    assert str(code - 2**32) in found.message


def test_rows_that_no_block_holds_are_told(tmp_path: Path) -> None:
    path = written(tmp_path / "a.gguf", [(142, (1 << 32, 1), 64)])
    (found,) = check_checkpoint(str(path)).findings
    assert (found.rule, found.name) == ("header-entry", "t0")


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(1, 9)), min_size=1, max_size=5),
    st.sampled_from([8, 32, 64]),
)
def test_each_row_of_an_unknown_type_is_whole_and_no_two_payloads_meet(
    sizes: list[tuple[int, int, int]], alignment: int
) -> None:
    tensors, end, lengths = [], 96, []
    for number, (rows, row, row_bytes) in enumerate(sizes):
        type_ = Type("foreign", 142)
        tensors.append(SourceTensor(str(number), "?", type_, (rows, row), "f", end, 0, 0, 0))
        lengths.append(rows * min(row_bytes, row))
        end += -(-lengths[-1] // alignment) * alignment
    found = bound(tensors, end)
    for tensor, length, after in zip(
        found, lengths, [*(one.offset for one in tensors[1:]), end], strict=True
    ):
        assert length <= tensor.length <= after - tensor.offset
        assert not is_unknown(tensor.type)
        blocks = prod(tensor.shape) // tensor.type.block_elements
        assert tensor.length == blocks * tensor.type.block_bytes
        if tensor.shape[0] >= alignment:
            assert tensor.length == length


def big_endian(path: Path) -> None:
    writer = gguf.GGUFWriter(path, "llama", endianess=gguf.GGUFEndian.BIG)
    writer.add_custom_alignment(64)
    writer.add_array("tokenizer.ggml.tokens", ["a", "b"])
    writer.add_tensor("norm", np.arange(5, dtype=np.float32))
    writer.add_tensor("bytes", np.arange(6, dtype=np.int8))
    writer.add_tensor("q", np.zeros((3, 34), np.uint8), raw_dtype=GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_a_big_endian_file_is_read_and_no_byte_of_it_is_swapped(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    big_endian(path)
    report = check_checkpoint(str(path))
    assert report.findings == ()
    assert sorted(report.notes) == [
        "foreign 1: F32, of a big-endian file, which keeps its bytes",
        "foreign 1: Q8_0, of a big-endian file, which keeps its bytes",
    ]
    import_checkpoint(str(path), tmp_path / "a.kiln")
    with kiln_check.open(tmp_path / "a.kiln") as file:
        assert file["norm"].foreign == (BIG_ENDIAN, 1, 4)
        assert file["norm"].shape == (5,)
        assert bytes(file["norm"].bytes()) == np.arange(5, dtype=">f4").tobytes()
        assert file["q"].foreign == (BIG_ENDIAN | 8, 32, 34)
        assert (file["bytes"].dtype, file["bytes"].foreign) == ("i8", None)
    (back,) = export_checkpoint(tmp_path / "a.kiln", tmp_path / "back")
    assert Path(back).read_bytes() == path.read_bytes()


def test_both_orders_of_bytes_give_the_same_tensors(tmp_path: Path) -> None:
    big_endian(tmp_path / "big.gguf")
    reader = gguf.GGUFReader(tmp_path / "big.gguf")
    found = {tensor.name: tensor for tensor in read_file(str(tmp_path / "big.gguf")).tensors}
    assert (tmp_path / "big.gguf").read_bytes()[4:8] == struct.pack(">I", 3)
    for tensor in reader.tensors:
        one = found[tensor.name]
        assert (one.offset, one.length) == (tensor.data_offset, tensor.n_bytes)
        assert one.shape == tuple(int(size) for size in tensor.shape[::-1])


@given(st.integers(0, 2**31 - 1), st.booleans())
def test_each_type_has_words(code: int, big: bool) -> None:
    name, type_ = type_of(code, big_endian=big)
    assert name
    assert (code in TYPES) != is_unknown(type_)
    assert ("big-endian" in about(type_)) == (type_.foreign_tag >= BIG_ENDIAN)
