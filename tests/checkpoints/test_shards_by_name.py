"""A shard given by its name is checked as the checkpoint that it belongs to, whatever its numbering."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kiln_check.cli import main
from tests.checkpoints.building import Made, copy_of, digests, edit, safetensors_bytes, without_last_row
from tests.places import CHECKPOINTS

INDEX = "model.safetensors.index.json"
FIRST, SECOND = (f"model-0000{number}-of-00002.safetensors" for number in (1, 2))
DOWN = "model.layers.1.mlp.down_proj"

NAMINGS = {
    "of, five digits": "model-{0:05d}-of-00003.safetensors",
    "of, one digit": "model-{0}-of-3.safetensors",
    "of, underscores": "model_{0:05d}_of_00003.safetensors",
    "of, a variant behind": "model-{0:05d}-of-00003.fp16.safetensors",
    "of, a variant before": "model.fp16-{0:05d}-of-00003.safetensors",
    "of, no name": "{0:05d}-of-00003.safetensors",
    "no total": "out-{0:05d}.safetensors",
    "no total, a variant": "out-{0:05d}.fp16.safetensors",
    "parts of one rank": "rank-0-part-{0}.safetensors",
    "no dash": "pytorch_model{0}.safetensors",
}


def verdicts(capsys: pytest.CaptureFixture[str], *paths: str | Path) -> dict[str, Any]:
    """What `kiln check` says of each file, by its name."""
    main(["check", "--format", "json", *map(str, paths)])
    files = json.loads(capsys.readouterr().out)["files"]
    found = {Path(file["path"]).name: file for file in files}
    assert len(found) == len(files)
    return found


def thirds(number: int) -> dict[str, Made]:
    """A weight in each of three files, whose scale is in the next."""
    after = number % 3 + 1
    return {
        f"l.{number}.weight_packed": Made("U8", (4, 16)),
        f"l.{after}.weight_scale": Made("U8", (4, 1)),
    }


def write_shards(folder: Path, naming: str, numbers: Iterable[int] = (1, 2, 3)) -> list[Path]:
    """Shards of one checkpoint, of which none is sound alone."""
    paths = []
    for number in numbers:
        paths.append(folder / NAMINGS[naming].format(number))
        paths[-1].write_bytes(safetensors_bytes(thirds(number)))
    return paths


def write_index(path: Path, files: Mapping[str, Mapping[str, Made]]) -> None:
    """An index beside its files, and the files."""
    weight_map = {}
    for name, tensors in files.items():
        path.with_name(name).write_bytes(safetensors_bytes(dict(tensors)))
        weight_map.update(dict.fromkeys(tensors, name))
    path.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def test_names_of_shards_find_what_their_folder_finds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = copy_of("ct-nvfp4-sharded", tmp_path)
    scale = f"{DOWN}.weight_scale"
    edit(copy / SECOND, lambda tensors: tensors.update({scale: without_last_row(tensors[scale])}))
    assert main(["check", "-q", str(copy)]) == 1
    wanted = capsys.readouterr().out
    assert wanted.startswith(f"{copy / INDEX}: TYPE\n")
    for names in ([FIRST], [SECOND], [FIRST, SECOND], [SECOND, INDEX, FIRST]):
        assert main(["check", "-q", *(str(copy / name) for name in names)]) == 1
        assert capsys.readouterr().out == wanted


@pytest.mark.parametrize("naming", NAMINGS)
def test_shards_without_an_index_are_one_checkpoint(
    naming: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = write_shards(tmp_path, naming)
    of_folder = verdicts(capsys, tmp_path)
    assert {name: file["verdict"] for name, file in of_folder.items()} == {paths[0].name: "OK"}
    (file,) = of_folder.values()
    assert file["notes"][0] == f"files 3: {', '.join(path.name for path in paths)}"
    assert file["notes"][1].startswith("linked 3: ")
    assert verdicts(capsys, *paths) == of_folder
    assert verdicts(capsys, paths[1]) == of_folder


@pytest.mark.parametrize("naming", NAMINGS)
@pytest.mark.parametrize("number", [1, 2])
def test_a_number_that_is_left_out_is_a_finding(
    naming: str, number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = write_shards(tmp_path, naming)
    paths[number - 1].unlink()
    left = [path for path in paths if path.exists()]
    (file,) = verdicts(capsys, *left).values()
    (found,) = file["findings"]
    assert (found["rule"], file["verdict"]) == ("shard-missing", "LENGTH")
    assert found["message"] == f'of 3 shards 1 is missing, the first "{paths[number - 1].name}"'
    assert main(["import", str(left[0]), "-o", str(tmp_path / "out.kiln")]) == 1
    assert not (tmp_path / "out.kiln").exists()


@pytest.mark.parametrize("naming", [name for name in NAMINGS if name.startswith("of")])
def test_fewer_shards_than_their_names_say_is_a_finding(
    naming: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_shards(tmp_path, naming, [1])
    (file,) = verdicts(capsys, tmp_path).values()
    message = f'of 3 shards 2 are missing, the first "{NAMINGS[naming].format(2)}"'
    assert [found["message"] for found in file["findings"]] == [message]


def test_a_total_of_any_size_takes_no_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    total = "9" * 60
    path = tmp_path / f"model-1-of-{total}.safetensors"
    path.write_bytes(safetensors_bytes(thirds(1)))
    (tmp_path / f"other-{total}.safetensors").write_bytes(safetensors_bytes({"a": Made("U8", (1,))}))
    (tmp_path / "other-1.safetensors").write_bytes(safetensors_bytes({"b": Made("U8", (1,))}))
    found = verdicts(capsys, tmp_path)
    assert [file["verdict"] for file in found.values()] == ["LENGTH", "OK", "OK"]


def test_shards_that_count_from_0_leave_none_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for stem in ("model-{}-of-2", "out-{}", "rank-{}-part-0"):
        for number in range(2):
            tensors = {f"{stem}.{number}": Made("U8", (3,))}
            (tmp_path / f"{stem.format(number)}.safetensors").write_bytes(safetensors_bytes(tensors))
    found = verdicts(capsys, tmp_path)
    assert {name: len(file["findings"]) for name, file in found.items()} == {
        "model-0-of-2.safetensors": 0,
        "out-0.safetensors": 0,
        "rank-0-part-0.safetensors": 0,
    }


def test_the_same_tensors_under_other_numbers_are_other_models(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tensors = {"l.0.weight_packed": Made("U8", (4, 16)), "l.0.weight_scale": Made("U8", (4, 1))}
    for name in ("epoch-1", "epoch-3", "model-fp8", "model-fp16"):
        (tmp_path / f"{name}.safetensors").write_bytes(safetensors_bytes(tensors))
    assert {name: file["verdict"] for name, file in verdicts(capsys, tmp_path).items()} == {
        f"{name}.safetensors": "OK" for name in ("epoch-1", "epoch-3", "model-fp16", "model-fp8")
    }


def test_each_rank_that_has_a_slice_of_every_tensor_is_a_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for rank in range(2):
        for part in range(2):
            tensors = {f"l.{part}.weight": Made("BF16", (4, 16)), f"l.{part}.bias": Made("BF16", (4,))}
            path = tmp_path / f"model-rank-{rank}-part-{part}.safetensors"
            path.write_bytes(safetensors_bytes(tensors))
    found = verdicts(capsys, tmp_path)
    assert {name: file["verdict"] for name, file in found.items()} == {
        f"model-rank-{rank}-part-0.safetensors": "OK" for rank in range(2)
    }
    (tmp_path / "model-rank-1-part-0.safetensors").unlink()
    found = verdicts(capsys, tmp_path)
    assert sorted(file["verdict"] for file in found.values()) == ["OK", "OK"]


def test_numbers_that_leave_out_more_than_there_are_number_no_shards(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in (5, 12):
        tensors = {f"l.{number}": Made("U8", (3,))}
        (tmp_path / f"layer-{number}.safetensors").write_bytes(safetensors_bytes(tensors))
    found = verdicts(capsys, tmp_path)
    assert {name: file["verdict"] for name, file in found.items()} == {
        "layer-12.safetensors": "OK",
        "layer-5.safetensors": "OK",
    }


def test_a_variant_and_the_plain_model_are_two_checkpoints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stem = "diffusion_pytorch_model"
    for variant, dtype in (("", "F32"), (".fp16", "F16")):
        shards = {
            f"{stem}{variant}-0000{number}-of-00002.safetensors": {f"l.{number}.weight": Made(dtype, (4, 4))}
            for number in (1, 2)
        }
        write_index(tmp_path / f"{stem}.safetensors.index{variant}.json", shards)
    names = [f"{stem}.safetensors.index.fp16.json", f"{stem}.safetensors.index.json"]
    of_folder = verdicts(capsys, tmp_path)
    assert {name: file["verdict"] for name, file in of_folder.items()} == dict.fromkeys(names, "OK")
    assert verdicts(capsys, *tmp_path.glob("*.safetensors")) == of_folder
    (tmp_path / f"{stem}.fp16-00002-of-00002.safetensors").unlink()
    (file,) = verdicts(capsys, tmp_path / f"{stem}.fp16-00001-of-00002.safetensors").values()
    assert (Path(file["path"]).name, file["verdict"]) == (names[0], "LENGTH")


def test_a_variant_s_index_comes_back(tmp_path: Path) -> None:
    source, kiln = tmp_path / "model", tmp_path / "out.kiln"
    source.mkdir()
    shards = {f"model.fp16-{n}-of-2.safetensors": {f"l.{n}.weight": Made("F16", (4, 4))} for n in (1, 2)}
    write_index(source / "model.safetensors.index.fp16.json", shards)
    assert main(["import", str(source / "model.fp16-2-of-2.safetensors"), "-o", str(kiln)]) == 0
    assert main(["export", str(kiln), "-o", str(tmp_path / "out")]) == 0
    assert digests(tmp_path / "out") == digests(source)


@pytest.mark.parametrize("numbers", [(1, 2, 3), (1, 2)])
def test_shards_of_which_an_index_names_some_leave_none_out(
    numbers: tuple[int, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = write_shards(tmp_path, "of, five digits", numbers)
    overlay = {name: tensor for number in (1, 2, 3) for name, tensor in thirds(number).items()}
    kept = thirds(1)
    files = {paths[0].name: kept, "overlay.safetensors": {k: v for k, v in overlay.items() if k not in kept}}
    write_index(tmp_path / INDEX, files)
    found = verdicts(capsys, tmp_path)
    assert {name: file["verdict"] for name, file in found.items()} == {INDEX: "OK", paths[1].name: "OK"}


def test_a_file_that_several_indexes_name_is_checked_with_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shared = {"a.weight": Made("BF16", (4, 4))}
    for name in ("one", "two"):
        files = {"shared.safetensors": shared, f"{name}.safetensors": {f"{name}.weight": Made("BF16", (2,))}}
        write_index(tmp_path / f"{name}.safetensors.index.json", files)
    path = tmp_path / "shared.safetensors"
    assert list(verdicts(capsys, path)) == ["one.safetensors.index.json", "two.safetensors.index.json"]
    assert main(["import", str(path), "-o", str(tmp_path / "out.kiln")]) == 2
    assert capsys.readouterr().err == (
        f"kiln: {path}: is a file of 2 checkpoints; "
        "give one of one.safetensors.index.json, two.safetensors.index.json\n"
    )


@pytest.mark.parametrize("text", ["", "{,}", '{"weight_map": {}}', '{"metadata": {}}'])
def test_an_index_that_can_not_be_read_is_checked_with_the_shards_beside_it(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = copy_of("ct-nvfp4-sharded", tmp_path)
    (copy / INDEX).write_text(text)
    (copy / "other.safetensors").write_bytes(safetensors_bytes({"a": Made("U8", (1,))}))
    found = verdicts(capsys, copy / FIRST, copy / SECOND)
    assert list(found) == [INDEX, FIRST]
    assert found[INDEX]["verdict"] != "OK"
    assert found[FIRST]["verdict"] == "OK"
    assert list(verdicts(capsys, copy / "other.safetensors")) == ["other.safetensors"]


def test_an_absent_shard_can_not_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = copy_of("ct-nvfp4-sharded", tmp_path)
    (copy / SECOND).unlink()
    assert main(["check", str(copy / SECOND)]) == 2
    assert capsys.readouterr().err == f"kiln: {copy / SECOND}: No such file or directory\n"


def test_gguf_files_with_other_numbers_are_files_by_themselves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("model-Q4_0.gguf", "model-Q8_0.gguf", "a1.gguf", "a2.gguf"):
        shutil.copy(CHECKPOINTS / "ct-mxfp4" / "model.safetensors", tmp_path / name)
    assert len(verdicts(capsys, tmp_path)) == 4


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_names_in_any_order_find_what_the_folder_finds_of_them(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        for number, naming in enumerate(data.draw(st.lists(st.sampled_from(sorted(NAMINGS)), min_size=1))):
            parent = path / str(number)
            parent.mkdir()
            shards = write_shards(parent, naming, data.draw(st.sets(st.integers(1, 3), min_size=2)))
            if data.draw(st.booleans()):
                write_index(parent / INDEX, {one.name: thirds(index + 1) for index, one in enumerate(shards)})
        files = sorted(path.rglob("*.safetensors"))
        chosen = data.draw(st.lists(st.sampled_from(files), min_size=1))
        folders = {file.parent for file in chosen}
        wanted = {json.dumps(one) for parent in folders for one in reports(parent)}
        found = [json.dumps(one) for one in reports(*random.Random(5).sample(chosen, len(chosen)))]
        assert len(found) == len(set(found))
        assert set(found) == wanted


def reports(*paths: Path) -> list[Any]:
    """What the command prints of paths, as JSON has it."""
    from kiln_check.fleet import check_paths
    from kiln_check.render import as_dict

    return [as_dict(report) for report in check_paths([str(path) for path in paths])]
