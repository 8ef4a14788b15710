"""kiln import, kiln export and kiln check as a person or a script meets them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import TypeVar

import pytest

import kiln_check
from kiln_check.cli import main
from tests.checkpoints.building import Made, copy_of, edit, safetensors_bytes, without_last_row
from tests.checkpoints.models import MODELS, write_gguf
from tests.places import CHECKPOINTS

T = TypeVar("T")

Q = "model.layers.0.self_attn.q_proj"


def test_import_says_what_it_linked_and_what_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "out.kiln"
    model = MODELS["compressed-by-shape"].write(tmp_path / "model")
    assert main(["import", str(model), "-o", str(output)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{output}: 17 tensors of 1 file, {output.stat().st_size} bytes",
        "  linked 1: compressed-tensors mxfp4-pack-quantized, scheme 1, e2m1 with e8m0 scales",
        "  linked 1: compressed-tensors nvfp4-pack-quantized, scheme 2, e2m1 with f8e4m3 scales",
        "  linked 1: undeclared, as Ascend W8A8 or 5 others, scheme 1, i8 with f32 scales",
        "  linked 1: undeclared, as Ascend W8A8_MXFP8 or 3 others, scheme 1, f8e4m3 with e8m0 scales",
        "  linked 1: undeclared, as AutoRound fp8 by channel or 3 others, scheme 1, f8e4m3 with bf16 scales",
        "  linked 1: undeclared, as compressed-tensors float-quantized, group or 1 other, scheme 1, "
        "f8e4m3 with bf16 scales",
        "  verified 1: undeclared, as AutoRound fp8 with one scale or 5 others, not linked: "
        "one scale for a matrix",
        "  verified 1: undeclared, as compressed-tensors float-quantized, block or 1 other, not linked: "
        "a scale for each block of rows and columns",
    ]


def test_a_wrong_count_stops_import_unless_both_may_be_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy, output = copy_of("ct-nvfp4", tmp_path), tmp_path / "out.kiln"
    weight, scale = f"{Q}.weight_packed", f"{Q}.weight_scale"
    edit(
        copy / "model.safetensors", lambda tensors: tensors.update({scale: without_last_row(tensors[scale])})
    )
    assert main(["import", str(copy), "-o", str(output)]) == 1
    assert not output.exists()
    err = capsys.readouterr().err
    for part in ("scale-shape", f'"{weight}"', f'"{scale}"', "64 / 16 = 4", "model.safetensors"):
        assert part in err
    assert err.splitlines()[-1].startswith("kiln: not imported, scale-shape: ")
    assert main(["import", str(copy), "-o", str(output), "--allow-unlinked"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("  linked 7: compressed-tensors nvfp4-pack-quantized")
    with kiln_check.open(output) as file:
        assert (file[weight].scheme, file[weight].dtype, file[weight].shape) == (0, "u8", (64, 32))
        assert file[scale].dtype == "f8e4m3"
        assert sum(tensor.scheme == 2 for tensor in file.values()) == 7


def test_a_missing_scale_stops_import_unless_the_weight_may_be_alone(tmp_path: Path) -> None:
    copy, output = copy_of("ct-mxfp4", tmp_path), tmp_path / "out.kiln"
    edit(copy / "model.safetensors", lambda tensors: tensors.pop(f"{Q}.weight_scale"))
    assert main(["import", str(copy), "-o", str(output)]) == 1
    assert not output.exists()
    assert main(["import", str(copy), "-o", str(output), "--allow-unlinked"]) == 0
    with kiln_check.open(output) as file:
        assert file[f"{Q}.weight_packed"].dtype == "u8"


def test_what_only_looks_odd_is_told_and_does_not_stop_import(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = copy_of("ct-mxfp4", tmp_path)
    with open(copy / "model.safetensors", "ab") as file:
        file.write(b"more")
    assert main(["import", str(copy), "-o", str(tmp_path / "out.kiln")]) == 0
    assert "  payload-gap: 4 bytes after the last payload" in capsys.readouterr().out


@pytest.mark.parametrize(
    "file", ["config.json", "model-00002-of-00002.safetensors", "model.safetensors.index.json"]
)
def test_import_never_replaces_its_source(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = copy_of("ct-nvfp4-sharded", tmp_path)
    before = (copy / file).read_bytes()
    assert main(["import", str(copy), "-o", str(copy / file)]) == 2
    assert capsys.readouterr().err == f"kiln: {copy / file}: is one of the files to be imported\n"
    assert (copy / file).read_bytes() == before


def test_import_wants_one_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = str(tmp_path / "out.kiln")
    folder = tmp_path / "folder"
    folder.mkdir()
    for source, part in (
        (folder, "no checkpoint in this folder"),
        (tmp_path / "absent", "its name ends with none of"),
        (tmp_path / "absent.safetensors", "No such file or directory"),
    ):
        assert main(["import", str(source), "-o", output]) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert part in err
    for name in ("a.safetensors", "b.safetensors"):
        (folder / name).write_bytes((CHECKPOINTS / "ct-mxfp4" / "model.safetensors").read_bytes())
    assert main(["import", str(folder), "-o", output]) == 2
    assert "give one of a.safetensors, b.safetensors" in capsys.readouterr().err


def test_a_folder_s_files_are_all_checked_in_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = copy_of("ct-nvfp4-sharded", tmp_path)
    write_gguf(copy / "a.gguf")
    (copy / "extra.safetensors").write_bytes(
        MODELS["plain"].write(copy_of("ct-int4", tmp_path)).joinpath("model.safetensors").read_bytes()
    )
    names = ["z.kiln", *(f"k{number}.kiln" for number in range(9))]
    for name in names:
        kiln_check.write(copy / name, {"w": kiln_check.NewTensor("u8", [3], b"abc")})
    assert main(["check", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if not line.startswith("  ")] == [
        f"{tmp_path / 'ct-int4' / 'model.safetensors'}: OK",
        *(f"{copy / name}: OK" for name in sorted(names)),
        f"{copy / 'a.gguf'}: OK",
        f"{copy / 'extra.safetensors'}: OK",
        f"{copy / 'model.safetensors.index.json'}: OK",
        "14 files: 14 OK",
    ]
    assert main(["check", str(copy / "*.safetensors")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2 files: 2 OK"


def test_a_folder_with_neither_is_bad_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin.index.json").write_text("{}")
    assert main(["check", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_findings_of_kiln_files_say_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.kiln").write_bytes(b"no")
    (tmp_path / "b.safetensors").write_bytes(b"no")
    assert main(["check", "--format", "json", str(tmp_path)]) == 1
    of_kiln, of_checkpoint = json.loads(capsys.readouterr().out)["files"]
    assert "file" not in of_kiln["findings"][0]
    assert of_checkpoint["findings"][0]["file"] == str(tmp_path / "b.safetensors")
    assert set(of_checkpoint["findings"][0]) - set(of_kiln["findings"][0]) == {"file", "level"}


def test_a_plain_check_loads_nothing_of_checkpoints(tmp_path: Path) -> None:
    kiln_check.write(tmp_path / "a.kiln", {"w": kiln_check.NewTensor("u8", [3], b"abc")})
    code = (
        "import sys; from kiln_check.cli import main; "
        f"main(['check', {str(tmp_path / 'a.kiln')!r}, {str(tmp_path)!r}]); "
        "print([name for name in sys.modules if 'checkpoints' in name or name in ('json', 'numpy')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", ["a\nb", "\udcff"])
def test_a_file_s_name_that_kiln_can_not_keep_is_a_finding(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.safetensors"
    path.write_bytes((CHECKPOINTS / "ct-mxfp4" / "model.safetensors").read_bytes())
    assert main(["check", str(path)]) == 1
    assert main(["import", str(path), "-o", str(tmp_path / "out.kiln")]) == 1
    assert not (tmp_path / "out.kiln").exists()


def test_two_names_for_the_same_bytes_are_kept(tmp_path: Path) -> None:
    model = MODELS["plain"]._replace(
        tensors={"a": Made("U8", (0,)), "b": Made("U8", (0,)), "c": Made("U8", (2,))}
    )
    assert main(["import", str(model.write(tmp_path / "model")), "-o", str(tmp_path / "out.kiln")]) == 0
    with kiln_check.open(tmp_path / "out.kiln") as file:
        assert [name for name in file if not name.startswith("kiln.source/")] == ["a", "b", "c"]


@pytest.mark.parametrize("indexes", [1, 12])
def test_a_folder_is_listed_once_and_its_indexes_are_read_twice_however_many_files_it_has(
    indexes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"{letters}.safetensors" for letters in map("".join, product("ab", repeat=5))]
    for name in names:
        (tmp_path / name).write_bytes(safetensors_bytes({name: Made("U8", (2, 16))}))
    for number in range(indexes):
        content = {"weight_map": {name: name for name in names[:20]}}
        (tmp_path / f"{number}.safetensors.index.json").write_text(json.dumps(content))
    calls: Counter[str] = Counter()

    def counted(name: str, function: Callable[[str], T]) -> Callable[[str], T]:
        def call(path: str) -> T:
            calls[name] += 1
            return function(path)

        return call

    for module, name in (
        ("folder", "read_index"),
        ("clearing", "read_clean_index"),
        ("checkpoint", "read_index"),
        ("folder", "file_names"),
    ):
        whole = import_module(f"kiln_check.checkpoints.{module}")
        monkeypatch.setattr(whole, name, counted(name, getattr(whole, name)))
    assert main(["check", *(str(tmp_path / name) for name in names)]) == 0
    of_files = len(names) - 20
    assert f"{of_files + indexes} files: {of_files + indexes} OK" in capsys.readouterr().out
    assert calls == {"file_names": 1, "read_index": indexes, "read_clean_index": indexes}
