"""In and out again: every file comes back byte for byte."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import gguf
import numpy as np
import pytest

import kiln_check
from kiln_check.checkpoints.exporter import export_checkpoint
from kiln_check.checkpoints.folder import Folder
from kiln_check.checkpoints.importer import import_checkpoint
from kiln_check.cli import main
from tests.checkpoints.building import (
    FOLDERS,
    Made,
    copy_of,
    digests,
    safetensors_bytes,
    with_header,
)
from tests.checkpoints.models import MODELS, write_gguf
from tests.places import CHECKPOINTS, ZOO
from tests.wheels import WHEELS, published_file
from tools.zoo import unpack


def comes_back(source: Path, folder: Path, wanted: dict[str, str]) -> None:
    kiln, out = folder / "out.kiln", folder / "out"
    assert main(["import", str(source), "-o", str(kiln)]) == 0
    assert kiln_check.check(kiln).findings == ()
    assert main(["export", str(kiln), "-o", str(out)]) == 0
    assert digests(out) == wanted


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_real_checkpoint_comes_back(folder: str, tmp_path: Path) -> None:
    source = CHECKPOINTS / folder
    comes_back(source, tmp_path, digests(source))


@pytest.mark.parametrize("archive", sorted(ZOO.glob("*.zip")), ids=lambda archive: archive.stem)
def test_a_checkpoint_of_the_zoo_comes_back(archive: Path, tmp_path: Path) -> None:
    if archive.stem == "gguf-q8_1":  # its blocks are shorter than ggml's, so that import refuses it
        return
    source = unpack(archive, tmp_path)
    for place in Folder(str(source)).places:
        kiln = tmp_path / "whole.kiln"
        import_checkpoint(place.path, kiln)
        written = export_checkpoint(kiln, tmp_path / f"out-{Path(place.path).name}")
        assert written
        for path in written:
            assert Path(path).read_bytes() == (source / Path(path).name).read_bytes()


def test_an_index_stands_for_its_files(tmp_path: Path) -> None:
    source = CHECKPOINTS / "ct-nvfp4-sharded"
    comes_back(source / "model.safetensors.index.json", tmp_path, digests(source))


def test_shards_without_an_index_are_one_checkpoint(tmp_path: Path) -> None:
    source = copy_of("ct-nvfp4-sharded", tmp_path)
    (source / "model.safetensors.index.json").unlink()
    comes_back(source, tmp_path, digests(source))


def test_a_file_alone_comes_back_alone(tmp_path: Path) -> None:
    path = CHECKPOINTS / "ct-mxfp4" / "model.safetensors"
    comes_back(path, tmp_path, {path.name: digests(path.parent)[path.name]})


@pytest.mark.parametrize("name", MODELS)
def test_a_checkpoint_of_each_convention_comes_back(name: str, tmp_path: Path) -> None:
    source = MODELS[name].write(tmp_path / "model")
    comes_back(source, tmp_path, digests(source))


def test_a_gguf_file_comes_back(tmp_path: Path) -> None:
    source = tmp_path / "model"
    source.mkdir()
    write_gguf(source / "model.gguf")
    comes_back(source / "model.gguf", tmp_path, digests(source))


def test_numbered_gguf_files_are_one_checkpoint(tmp_path: Path) -> None:
    source = tmp_path / "model"
    source.mkdir()
    for number in (1, 2):
        writer = gguf.GGUFWriter(source / f"model-{number:05d}-of-00002.gguf", "llama")
        writer.add_tensor(f"blk.{number}.attn_norm.weight", np.arange(5, dtype=np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    comes_back(source, tmp_path, digests(source))


@pytest.mark.parametrize("requirement", WHEELS)
def test_a_file_inside_a_published_wheel_comes_back(requirement: str, wheels: Path, tmp_path: Path) -> None:
    source = tmp_path / "model"
    source.mkdir()
    (source / "model.safetensors").write_bytes(published_file(wheels, requirement))
    comes_back(source, tmp_path, digests(source))


@pytest.mark.parametrize(
    "raw",
    [
        with_header(b"{}"),
        with_header(b'{"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}}', b"abc", pad=False),
        with_header(b'{ "a" : {"shape":[3], "data_offsets":[2 , 5],"dtype":"U8"}}\n', b"..abc...."),
        with_header(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', b"abcd", pad=False),
    ],
    ids=["no tensor", "no padding", "bytes that no tensor owns", "out of alignment"],
)
def test_odd_files_come_back_too(raw: bytes, tmp_path: Path) -> None:
    source = tmp_path / "model"
    source.mkdir()
    (source / "model.safetensors").write_bytes(raw)
    comes_back(source, tmp_path, digests(source))


def test_export_replaces_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kiln = tmp_path / "out.kiln"
    assert main(["import", str(CHECKPOINTS / "ct-mxfp4"), "-o", str(kiln)]) == 0
    (tmp_path / "config.json").write_text("mine")
    capsys.readouterr()
    assert main(["export", str(kiln), "-o", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "model.safetensors").exists()
    assert (tmp_path / "config.json").read_text() == "mine"


def test_export_refuses_what_import_did_not_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kiln_check.write(tmp_path / "a.kiln", {"w": kiln_check.NewTensor("u8", [3], b"abc")})
    assert main(["export", str(tmp_path / "a.kiln"), "-o", str(tmp_path / "out")]) == 1
    assert "was not made by kiln import" in capsys.readouterr().err


@pytest.mark.parametrize(
    "change", ["shorter", "renamed", "gone", "other head", "outside", "twice", "no ending", "broken"]
)
def test_export_refuses_a_kiln_file_that_was_changed(change: str, tmp_path: Path) -> None:
    source = tmp_path / "model.safetensors"
    source.write_bytes(safetensors_bytes({"a": Made("U8", (3,)), "b": Made("U8", (5,))}))
    assert main(["import", str(source), "-o", str(tmp_path / "a.kiln")]) == 0
    with kiln_check.open(tmp_path / "a.kiln") as file:
        tensors = {
            name: kiln_check.NewTensor(tensor.dtype, tensor.shape, bytes(tensor.bytes()))
            for name, tensor in file.items()
        }
    head = "kiln.source/head/model.safetensors"
    assert list(tensors) == [head, "a", "b"]
    if change == "shorter":
        tensors["b"] = kiln_check.NewTensor("u8", [4], b"1234")
    elif change == "renamed":
        tensors["c"] = tensors.pop("b")
    elif change == "gone":
        del tensors["b"]
    elif change == "other head":
        tensors[head] = kiln_check.NewTensor("u8", [9], b"\1" + bytes(8))
    elif change == "outside":
        tensors = {head.replace("model", "../model"): tensors.pop(head), **tensors}
    elif change == "twice":
        tensors["kiln.source/file/model.safetensors"] = tensors["a"]
    elif change == "no ending":
        tensors = {head.removesuffix(".safetensors"): tensors.pop(head), **tensors}
    kiln_check.write(tmp_path / "b.kiln", tensors)
    if change == "broken":
        (tmp_path / "b.kiln").write_bytes((tmp_path / "b.kiln").read_bytes()[:-1])
    with pytest.raises(kiln_check.KilnError):
        export_checkpoint(tmp_path / "b.kiln", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_killed_import_leaves_the_old_file_or_none(tmp_path: Path) -> None:
    source, kiln = tmp_path / "model.safetensors", tmp_path / "out.kiln"
    source.write_bytes(safetensors_bytes({"a": Made("U8", (1 << 26,), bytes(1 << 26))}))
    command = [sys.executable, "-m", "kiln_check", "import", str(source), "-o", str(kiln)]
    started = time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    whole = time.monotonic() - started
    wanted = kiln.read_bytes()
    kiln.unlink()
    moments = random.Random(5)
    for _ in range(6):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(moments.uniform(0, whole))
        process.send_signal(signal.SIGKILL)
        process.wait()
        if kiln.exists():
            assert kiln.read_bytes() == wanted
            kiln.unlink()
