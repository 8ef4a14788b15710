"""Export gives all files back or none, and only what import wrote."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kiln_check
from kiln_check import KilnError, NewTensor, Span, atomic
from kiln_check.checkpoints.exporter import export_checkpoint
from kiln_check.cli import main
from tests.checkpoints.building import Made, digests, safetensors_bytes
from tests.checkpoints.models import write_gguf
from tests.places import CHECKPOINTS

HEAD = "kiln.source/head/model.safetensors"

Tensors = dict[str, NewTensor]


def tensors_of(path: Path) -> Tensors:
    with kiln_check.open(path) as file:
        return {
            name: NewTensor(
                tensor.dtype,
                tensor.shape,
                bytes(tensor.bytes()),
                scale=None if tensor.scale is None else tensor.scale.name,
                outer=None if tensor.outer is None else tensor.outer.name,
                axis=tensor.axis,
                group_size=tensor.group_size,
                **dict(
                    zip(("foreign_tag", "block_elements", "block_bytes"), tensor.foreign or (), strict=False)
                ),
            )
            for name, tensor in file.items()
        }


def with_head(change: Callable[[bytes], bytes]) -> Callable[[Tensors], Tensors]:
    def changed(tensors: Tensors) -> Tensors:
        old = tensors[HEAD].data
        assert isinstance(old, bytes)
        new = change(old)
        assert new != old
        return {**tensors, HEAD: NewTensor("u8", (len(new),), new)}

    return changed


def edited(old: bytes, new: bytes) -> Callable[[Tensors], Tensors]:
    return with_head(lambda head: head.replace(old, new))


def without(name: str) -> Callable[[Tensors], Tensors]:
    return lambda tensors: {other: tensor for other, tensor in tensors.items() if other != name}


def in_order(*names: str) -> Callable[[Tensors], Tensors]:
    return lambda tensors: {name: tensors.get(name, NewTensor("u8", [3], b"new")) for name in names}


def plain(folder: Path) -> Path:
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(
        safetensors_bytes({"a": Made("F32", (4,)), "b": Made("F16", (2, 4))}) + b"more"
    )
    (folder / "config.json").write_text("{}")
    return folder


NAMES = (HEAD, "a", "b", "kiln.source/gap/model.safetensors/152", "kiln.source/file/config.json")

CHANGES: dict[str, Callable[[Tensors], Tensors]] = {
    "a dtype in the head": edited(b'"F16"', b'"I16"'),
    "a shape in the head": edited(b"[2,4]", b"[4,2]"),
    "a name in the head": edited(b'"b"', b'"c"'),
    "the head's last brace": edited(b"}}", b"}x"),
    "something in the head's padding": with_head(lambda head: head[:-1] + b"x"),
    "a longer head": with_head(lambda head: head + b" "),
    "a shorter head": with_head(lambda head: head[:-1]),
    "a dtype": lambda tensors: {**tensors, "b": tensors["b"]._replace(dtype="bf16")},
    "a shape": lambda tensors: {**tensors, "b": tensors["b"]._replace(shape=(4, 2))},
    "a link": lambda tensors: {
        **tensors,
        "b": tensors["b"]._replace(dtype="f8e4m3", shape=(2, 8), scale="a", axis=1, group_size=4),
    },
    "no head": without(HEAD),
    "a tensor before the first head": in_order("new", *NAMES),
    "a tensor at the end": in_order(*NAMES, "new"),
    "a tensor at the file's end": in_order(*NAMES[:4], "new", NAMES[4]),
    "a tensor within": in_order(*NAMES[:2], "new", *NAMES[2:]),
    "another order": in_order(HEAD, "b", "a", *NAMES[3:]),
    "a gap under another name": lambda tensors: {
        name.replace("gap/model.safetensors/", "gap/model.safetensors/1"): tensor
        for name, tensor in tensors.items()
    },
    "a name of import's own that it does not give": in_order(*NAMES[:3], "kiln.source/other/x", *NAMES[3:]),
    "a file with a path": lambda tensors: {
        name.replace("config.json", "../config.json"): tensor for name, tensor in tensors.items()
    },
    "a file without a name": lambda tensors: {
        name.replace("config.json", ""): tensor for name, tensor in tensors.items()
    },
    "a file that import does not keep": lambda tensors: {
        name.replace("config.json", ".bashrc"): tensor for name, tensor in tensors.items()
    },
    "no tensor": without("a"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_changed_is_refused(change: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = plain(tmp_path / "model")
    assert main(["import", str(source), "-o", str(tmp_path / "a.kiln")]) == 0
    tensors = tensors_of(tmp_path / "a.kiln")
    assert tuple(tensors) == NAMES
    kiln_check.write(tmp_path / "b.kiln", tensors)
    export_checkpoint(tmp_path / "b.kiln", tmp_path / "same")
    assert digests(tmp_path / "same") == digests(source)
    kiln_check.write(tmp_path / "c.kiln", CHANGES[change](tensors))
    capsys.readouterr()
    assert main(["export", str(tmp_path / "c.kiln"), "-o", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_linked_tensor_that_was_changed_is_refused(tmp_path: Path) -> None:
    assert main(["import", str(CHECKPOINTS / "ct-nvfp4"), "-o", str(tmp_path / "a.kiln")]) == 0
    tensors = tensors_of(tmp_path / "a.kiln")
    weight = next(name for name, tensor in tensors.items() if tensor.scale is not None)
    rows, columns = tensors[weight].shape
    for number, changed in enumerate(
        (
            tensors[weight]._replace(
                dtype="u8", shape=(rows, columns // 2), scale=None, outer=None, axis=None, group_size=0
            ),
            tensors[weight]._replace(dtype="i4", scale=None, outer=None, axis=None, group_size=0),
            tensors[weight]._replace(shape=(rows * 2, columns // 2), group_size=8 * 4),
        )
    ):
        path = tmp_path / f"{number}.kiln"
        try:
            kiln_check.write(path, {**tensors, weight: changed})
        except KilnError:  # its scale no longer fits: nothing to export
            continue
        if number == 0:  # as --allow-unlinked would have brought it in
            export_checkpoint(path, tmp_path / "same")
            continue
        with pytest.raises(KilnError, match="was changed after it was imported"):
            export_checkpoint(path, tmp_path / "out")


def test_a_block_layout_that_was_changed_is_refused(tmp_path: Path) -> None:
    write_gguf(tmp_path / "model.gguf")
    assert main(["import", str(tmp_path / "model.gguf"), "-o", str(tmp_path / "a.kiln")]) == 0
    tensors = tensors_of(tmp_path / "a.kiln")
    name = next(name for name, tensor in tensors.items() if tensor.dtype == "foreign")
    kiln_check.write(tmp_path / "b.kiln", {**tensors, name: tensors[name]._replace(foreign_tag=99)})
    with pytest.raises(KilnError, match="was changed after it was imported"):
        export_checkpoint(tmp_path / "b.kiln", tmp_path / "out")


@pytest.mark.skipif(os.name == "nt", reason="these are no names of files there")
@pytest.mark.parametrize("name", ["a:b", "a\\b", "a\u202eb", "é", ".hidden", "-"])
def test_names_that_the_system_takes_come_back(name: str, tmp_path: Path) -> None:
    source = tmp_path / "model"
    source.mkdir()
    (source / f"{name}.safetensors").write_bytes(safetensors_bytes({"a": Made("U8", (3,))}))
    assert main(["import", str(source / f"{name}.safetensors"), "-o", str(tmp_path / "a.kiln")]) == 0
    assert main(["export", str(tmp_path / "a.kiln"), "-o", str(tmp_path / "out")]) == 0
    assert digests(tmp_path / "out") == digests(source)


def limited(what: str, most: int, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command under a limit of the system: of a file's size, or of files that are open."""
    resource = pytest.importorskip("resource")
    return subprocess.run(
        [sys.executable, "-m", "kiln_check", *map(str, arguments)],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(getattr(resource, what), (most, most)),
    )


def test_export_writes_all_or_nothing(tmp_path: Path) -> None:
    source, kiln = CHECKPOINTS / "ct-nvfp4-sharded", tmp_path / "a.kiln"
    assert main(["import", str(source), "-o", str(kiln)]) == 0
    sizes = {path.name: path.stat().st_size for path in source.iterdir()}
    greatest = max(sizes, key=lambda name: sizes[name])
    (tmp_path / "there").mkdir()
    for folder in (tmp_path / "out", tmp_path / "there"):
        existed = folder.exists()
        done = limited("RLIMIT_FSIZE", sizes[greatest] - 1, "export", kiln, "-o", folder)
        assert (done.returncode, done.stderr) == (
            2,
            f"kiln: {folder / greatest}: {os.strerror(errno.EFBIG)}\n",
        )
        assert folder.exists() == existed
        assert not existed or list(folder.iterdir()) == []
        assert main(["export", str(kiln), "-o", str(folder)]) == 0
        assert digests(folder) == digests(source)


def test_import_names_the_file_that_it_can_not_write(tmp_path: Path) -> None:
    target = tmp_path / "a.kiln"
    done = limited("RLIMIT_FSIZE", 20_000, "import", CHECKPOINTS / "ct-nvfp4", "-o", target)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        f"kiln: {target}: {os.strerror(errno.EFBIG)}",
    )
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_comes_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("mine")

    def stage() -> None:
        with atomic.staging(str(tmp_path)) as staged:
            for name in "abc":
                (Path(staged) / name).write_text("new")

    with pytest.raises(FileExistsError) as raised:
        stage()
    assert raised.value.filename == str(tmp_path / "b")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("b", "mine")]


def test_a_model_of_more_files_than_may_be_open_comes_back(tmp_path: Path) -> None:
    source = tmp_path / "model"
    source.mkdir()
    words = (8).to_bytes(8, "little") + (64).to_bytes(8, "little")
    for number in range(1, 81):
        tensors = {
            f"l{number}.weight_shape": Made("I64", (2,), words),
            f"l{number}.weight_packed": Made("I32", (8, 8)),
            f"l{number}.weight_scale": Made("F16", (8, 2)),
        }
        (source / f"model-{number:05d}-of-00080.safetensors").write_bytes(safetensors_bytes(tensors))
    kiln = tmp_path / "a.kiln"
    for arguments in (
        ("check", source),
        ("import", source, "-o", kiln),
        ("export", kiln, "-o", tmp_path / "out"),
    ):
        done = limited("RLIMIT_NOFILE", 64, *arguments)
        assert (done.returncode, done.stderr.count("kiln:")) == (0, 0)
    assert digests(tmp_path / "out") == digests(source)


@pytest.mark.parametrize("read", ["config.json", "hf_quant_config.json", "model.safetensors.index.json"])
def test_import_replaces_nothing_that_it_reads(read: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors_bytes({"a": Made("U8", (3,))}))
    (tmp_path / read).write_text('{"weight_map": {"a": "model.safetensors"}}')
    assert main(["import", str(path), "-o", str(tmp_path / read)]) == 2
    assert (tmp_path / read).read_text() == '{"weight_map": {"a": "model.safetensors"}}'
    (tmp_path / "other.json").write_text("{}")
    assert main(["import", str(path), "-o", str(tmp_path / "other.json")]) == 0


@pytest.mark.parametrize("moment", ["before", "while"])
@pytest.mark.parametrize("changed", ["model.safetensors", "config.json"])
def test_a_source_that_is_replaced_meanwhile_is_refused(
    changed: str,
    moment: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source, target = plain(tmp_path / "model"), tmp_path / "a.kiln"
    size = (source / changed).stat().st_size

    def replace() -> None:
        new = source / "new"
        new.write_bytes(b"?" * size)
        new.replace(source / changed)

    def write(*arguments: Any) -> None:
        replace()
        kiln_write(*arguments)

    def copy(file: Any, span: Span, *others: Any) -> None:
        if moment == "while" and span.path == str(source / changed):
            os.utime(span.path, ns=(1, 1))
        kiln_copy(file, span, *others)

    kiln_write, kiln_copy = atomic.write_atomically, atomic._copy_span
    if moment == "before":
        monkeypatch.setattr("kiln_check.writer.write_atomically", write)
    else:
        monkeypatch.setattr(atomic, "_copy_span", copy)
    assert main(["import", str(source), "-o", str(target)]) == 2
    assert f"kiln: {source / changed}: was changed while it was read" in capsys.readouterr().err
    assert not target.exists()
