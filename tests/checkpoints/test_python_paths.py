"""The Python API takes the paths that the command takes, and finds the same."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kiln_check
from kiln_check import KilnError, Report
from kiln_check.cli import main
from kiln_check.fleet import check_paths
from kiln_check.report import UNREADABLE
from tests.checkpoints.building import copy_of, digests, edit, safetensors_bytes
from tests.checkpoints.models import write_gguf
from tests.places import CHECKPOINTS, CORPUS

SHARDED = CHECKPOINTS / "ct-nvfp4-sharded"
ONE = CHECKPOINTS / "ct-nvfp4"

PATHS = {
    "a folder with an index": SHARDED,
    "an index": SHARDED / "model.safetensors.index.json",
    "a shard": SHARDED / "model-00002-of-00002.safetensors",
    "a folder with one file": ONE,
    "a file": ONE / "model.safetensors",
}

CALLS: dict[str, Callable[[Any], Report]] = {
    "check_checkpoint": kiln_check.check_checkpoint,
    "check": kiln_check.check,
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_means_what_it_means_to_the_command(
    path: str, call: str, kind: Callable[[Path], str | Path]
) -> None:
    assert [CALLS[call](kind(PATHS[path]))] == list(check_paths([str(PATHS[path])]))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kind", [str, Path])
def test_an_import_takes_the_same_paths(
    path: str, kind: Callable[[Path], str | Path], tmp_path: Path
) -> None:
    of_python, of_command = tmp_path / "python.kiln", tmp_path / "command.kiln"
    done = kiln_check.import_checkpoint(kind(PATHS[path]), of_python)
    assert len(done.plan.links) == 8
    assert main(["import", str(PATHS[path]), "-o", str(of_command)]) == 0
    assert of_python.read_bytes() == of_command.read_bytes()
    kiln_check.export_checkpoint(of_python, tmp_path / "out")
    parent = PATHS[path] if PATHS[path].is_dir() else PATHS[path].parent
    wanted = digests(parent)
    if path == "a file":
        del wanted["config.json"]
    assert digests(tmp_path / "out") == wanted


def test_a_gguf_file_and_its_folder_are_one(tmp_path: Path) -> None:
    write_gguf(tmp_path / "model.gguf")
    assert kiln_check.check(tmp_path) == kiln_check.check(tmp_path / "model.gguf")
    assert kiln_check.check(tmp_path).ok


def test_a_report_is_called_as_the_caller_says() -> None:
    report = kiln_check.check(SHARDED, path="the model")
    assert report == kiln_check.check(SHARDED)._replace(path="the model")
    assert report.path == "the model"


def test_kiln_files_and_bytes_are_checked_as_ever() -> None:
    path = CORPUS / "kiln-v2-scales.kiln"
    for target in (path, str(path), path.read_bytes()):
        assert kiln_check.check(target).ok
    with path.open("rb") as file:
        assert kiln_check.check(file).ok
    with pytest.raises(TypeError):
        kiln_check.check(5)  # type: ignore[arg-type]


def several(folder: Path) -> Path:
    for name in ("a.safetensors", "b.safetensors"):
        (folder / name).write_bytes((ONE / "model.safetensors").read_bytes())
    return folder


def empty(folder: Path) -> Path:
    return folder


def of_no_checkpoint(folder: Path) -> Path:
    (folder / "a.bin").write_bytes(b"abc")
    return folder / "a.bin"


NOT_ONE: dict[Callable[[Path], Path], str] = {
    several: "2 checkpoints in this folder; give one of a.safetensors, b.safetensors",
    empty: "no checkpoint in this folder",
    of_no_checkpoint: "its name ends with none of .safetensors, .gguf, .index.json, "
    "and it begins as no format of these",
}


@pytest.mark.parametrize("build", NOT_ONE)
def test_a_path_that_means_no_checkpoint_or_several_is_said_so(
    build: Callable[[Path], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, output = build(tmp_path), tmp_path / "out.kiln"
    report = kiln_check.check_checkpoint(path)
    assert (report.path, report.verdict, report.error) == (str(path), UNREADABLE, NOT_ONE[build])
    with pytest.raises(ValueError, match=NOT_ONE[build].replace(".", "[.]")) as raised:
        kiln_check.import_checkpoint(path, output)
    assert not isinstance(raised.value, KilnError)
    assert main(["import", str(path), "-o", str(output)]) == 2
    assert capsys.readouterr().err == f"kiln: {path}: {NOT_ONE[build]}\n"
    assert not output.exists()


def test_an_absent_path_has_a_report_and_raises(tmp_path: Path) -> None:
    path = tmp_path / "absent.safetensors"
    report = kiln_check.check(path)
    assert (report.verdict, report.error) == (UNREADABLE, "No such file or directory")
    with pytest.raises(FileNotFoundError):
        kiln_check.import_checkpoint(path, tmp_path / "out.kiln")


def test_an_unsound_checkpoint_is_refused_with_its_report(tmp_path: Path) -> None:
    copy = copy_of("ct-nvfp4", tmp_path)
    scale = "model.layers.0.self_attn.q_proj.weight_scale"
    edit(copy / "model.safetensors", lambda tensors: tensors.pop(scale))
    with pytest.raises(KilnError) as raised:
        kiln_check.import_checkpoint(copy, tmp_path / "out.kiln")
    assert raised.value.report is not None
    assert raised.value.report.findings == kiln_check.check(copy).findings


@pytest.mark.parametrize("file", ["model.safetensors.index.json", "extra.safetensors"])
def test_an_index_that_was_read_for_a_file_that_it_does_not_name_is_not_replaced(
    file: str, tmp_path: Path
) -> None:
    copy = copy_of("ct-nvfp4-sharded", tmp_path)
    (copy / "extra.safetensors").write_bytes((ONE / "model.safetensors").read_bytes())
    before = (copy / file).read_bytes()
    with pytest.raises(OSError, match="is one of the files to be imported"):
        kiln_check.import_checkpoint(copy / "extra.safetensors", copy / file)
    assert (copy / file).read_bytes() == before


def test_what_only_the_package_knows_is_no_parameter() -> None:
    assert list(inspect.signature(kiln_check.check_checkpoint).parameters) == ["path", "strict"]
    assert list(inspect.signature(kiln_check.import_checkpoint).parameters) == [
        "path",
        "output",
        "allow_unlinked",
        "progress",
    ]


def test_a_relative_path_and_the_current_folder_are_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = copy_of("ct-nvfp4-sharded", tmp_path)
    monkeypatch.chdir(copy)
    shards = [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    (report,) = check_paths([shards[0], os.curdir, shards[1]])
    assert (report.path, report.verdict) == ("model.safetensors.index.json", "OK")
    assert kiln_check.check(os.curdir).path == os.path.join(os.curdir, "model.safetensors.index.json")
    (copy / "other.safetensors").write_bytes(safetensors_bytes({}))
    assert kiln_check.check("other.safetensors").ok
