"""What lies in the place of weights is called by its name, with what to do about it."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kiln_check.checkpoints.check import check_checkpoint
from kiln_check.checkpoints.exporter import export_checkpoint
from kiln_check.checkpoints.formats.not_weights import LEN_START
from kiln_check.checkpoints.formats.registry import FORMATS, SUFFIXES, format_of_bytes, read_file
from kiln_check.checkpoints.importer import import_checkpoint
from kiln_check.cli import main
from kiln_check.errors import KilnError
from kiln_check.writer import NewTensor, write
from tests.checkpoints.building import Made, copy_of, safetensors_bytes
from tests.checkpoints.models import write_gguf
from tests.places import CHECKPOINTS

LFS = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 4976698672\n"
)


def zip_archive() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", b"x")
    return file.getvalue()


def numpy_array() -> bytes:
    file = io.BytesIO()
    numpy.save(file, numpy.zeros(3))
    return file.getvalue()


def kiln_file(folder: Path) -> bytes:
    write(folder / "a.kiln", {"w": NewTensor("u8", [3], b"abc")})
    return (folder / "a.kiln").read_bytes()


CONTENTS = {
    "an LFS pointer": (LFS, "a Git LFS pointer, not weights; run `git lfs pull`"),
    "a xet pointer": (b"# xet version 0\nfilesize = 12\nhash = '0'\n", "a xet pointer"),
    "a page": (b"\n<!DOCTYPE html><html><body>401</body></html>", "an HTML or XML page"),
    "a page of XML": (b'\xef\xbb\xbf<?xml version="1.0"?><Error>AccessDenied</Error>', "an HTML or XML page"),
    "JSON": (b'{"error":"Repository not found"}', 'JSON, not weights: "{\\"error\\":\\"Repository not found'),
    "a config": (b'{\n  "architectures": [\n "' + "é".encode() * 900 + b'" ] }', "JSON, not weights"),
    "a line of text": (b"Entry not found", 'text, not weights: "Entry not found"'),
    "a zip": (zip_archive(), "a zip archive"),
    "a pickle": (pickle.dumps({"a": 1}), "a Python pickle"),
    "a pickle of protocol 2": (pickle.dumps({"a": 1}, protocol=2), "a Python pickle"),
    "an array of NumPy": (numpy_array(), "an array of NumPy"),
    "zeros": (bytes(64), "nothing but zeros, 64 bytes of them"),
    "many zeros": (bytes(5000), f"not weights: its first {LEN_START} bytes are zeros"),
    "nothing": (b"", "empty; get the file again"),
    "what came before GGUF": (b"tjgg\1\0\0\0" + bytes(90), "a GGML file"),
}


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("content", CONTENTS)
def test_what_is_no_weights_is_told_on_one_line(
    content: str, suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw, words = CONTENTS[content]
    path = tmp_path / f"model{suffix}"
    path.write_bytes(raw)
    (found,) = check_checkpoint(str(path)).findings
    assert (found.rule, found.status, found.file) == ("not-weights", "MAGIC", str(path))
    assert found.message.startswith(f"the file is {words}")
    assert found.message.isprintable()
    assert ";" in found.message
    assert main(["check", str(path)]) == 1
    assert capsys.readouterr().out.splitlines()[1] == f"  not-weights: {found.message}"
    with pytest.raises(KilnError):
        import_checkpoint(str(path), tmp_path / "out.kiln")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_kiln_file_under_another_name_is_told(suffix: str, tmp_path: Path) -> None:
    (tmp_path / f"model{suffix}").write_bytes(kiln_file(tmp_path))
    (found,) = check_checkpoint(str(tmp_path / f"model{suffix}")).findings
    assert found.message == "the file is a Kiln file; give it a name that ends with .kiln"


def test_a_zip_whose_start_reads_as_a_length_is_a_zip(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    with open(path, "wb") as file:
        file.write(b"PK\3\4" + bytes(4) + b"\0\0" + b"archive")
        file.truncate(80_000_000)
    (found,) = check_checkpoint(str(path)).findings
    assert "a zip archive" in found.message


def test_a_file_of_one_format_under_the_name_of_the_other_is_told(tmp_path: Path) -> None:
    write_gguf(tmp_path / "a.gguf")
    (tmp_path / "a.safetensors").write_bytes((tmp_path / "a.gguf").read_bytes())
    (tmp_path / "b.gguf").write_bytes(safetensors_bytes({"a": Made("U8", (3,))}))
    (found,) = check_checkpoint(str(tmp_path / "a.safetensors")).findings
    assert found.message == "the file is GGUF, named .safetensors; give it a name that ends with .gguf"
    (found,) = check_checkpoint(str(tmp_path / "b.gguf")).findings
    assert found.message == "the file is safetensors, named .gguf; give it a name that ends with .safetensors"


def test_a_gguf_file_without_an_ending_is_read_by_its_magic_and_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "sha256-262843d4"
    write_gguf(path)
    assert check_checkpoint(str(path)).findings == ()
    import_checkpoint(str(path), tmp_path / "a.kiln")
    (back,) = export_checkpoint(tmp_path / "a.kiln", tmp_path / "back")
    assert Path(back).name == path.name
    assert Path(back).read_bytes() == path.read_bytes()


def test_a_name_and_bytes_of_no_format_are_bad_usage(tmp_path: Path) -> None:
    (tmp_path / "sha256-0").write_bytes(safetensors_bytes({"a": Made("U8", (3,))}))
    with pytest.raises(ValueError, match="ends with none of"):
        read_file(str(tmp_path / "sha256-0"))


def test_tensors_of_a_shard_that_is_a_pointer_are_not_missed(tmp_path: Path) -> None:
    copy = copy_of("ct-nvfp4-sharded", tmp_path)
    (copy / "model-00002-of-00002.safetensors").write_bytes(LFS)
    report = check_checkpoint(str(copy / "model.safetensors.index.json"))
    assert [found.rule for found in report.findings] == ["not-weights"]
    (copy / "model.safetensors.index.json").unlink()
    shards = sorted(str(path) for path in copy.glob("*.safetensors"))
    report = check_checkpoint(shards[0])
    assert [found.rule for found in report.findings] == ["not-weights"]


def test_each_format_has_an_ending_of_its_own_and_a_magic_is_one_format_s() -> None:
    assert len(set(SUFFIXES)) == len(FORMATS)
    for one in FORMATS:
        assert format_of_bytes(one.magic) is (one if one.magic else None)


@given(st.sampled_from(sorted(path.name for path in CHECKPOINTS.iterdir())))
def test_real_weights_are_weights(folder: str) -> None:
    for path in (CHECKPOINTS / folder).glob("*.safetensors"):
        assert read_file(str(path)).findings == ()


@given(st.integers(2, 1 << 12), st.binary(max_size=40))
def test_a_header_s_length_is_no_sign_of_anything_else(
    tmp_path_factory: pytest.TempPathFactory, padding: int, data: bytes
) -> None:
    entry = {"a": {"dtype": "U8", "shape": [len(data)], "data_offsets": [0, len(data)]}}
    header = json.dumps(entry).encode() + b" " * padding
    path = tmp_path_factory.getbasetemp() / "length.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + data)
    assert "not-weights" not in {found.rule for found in check_checkpoint(str(path)).findings}
