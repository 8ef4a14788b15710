"""Two copies of a tensor are judged by the index, and so is the index by what its files hold."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

import kiln_check
from kiln_check import check_checkpoint
from kiln_check.cli import main
from kiln_check.report import Finding, Report
from tests.checkpoints.building import Made, copy_of, digests, edit, safetensors_bytes, without_last_row

INDEX = "model.safetensors.index.json"
BASE, OVERLAY = "model-00001-of-00001.safetensors", "overlay.safetensors"
WEIGHT, SCALE = "m.weight_packed", "m.weight_scale"


def pair(rows: int = 64, fill: int = 1) -> dict[str, Made]:
    """An MXFP4 weight of 64 rows, and the scales of so many."""
    return {
        WEIGHT: Made("U8", (64, 16), bytes([fill]) * 1024),
        SCALE: Made("U8", (rows, 1), bytes([fill]) * rows),
    }


NORM, OTHER = ({f"{letter}.weight": Made("F16", (8,))} for letter in "no")


def write(folder: Path, base: dict[str, Made], overlay: dict[str, Made], named: dict[str, str]) -> Path:
    """Two files and an index that says in which the tensors are."""
    (folder / BASE).write_bytes(safetensors_bytes(base))
    (folder / OVERLAY).write_bytes(safetensors_bytes(overlay))
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": named}))
    return folder


def overlay(folder: Path, *, stale: int, valid: int, named: str = OVERLAY) -> Path:
    """A scale of so many rows in the file that the index names, and of so many in the other."""
    rows = {BASE: stale, OVERLAY: valid} if named == OVERLAY else {BASE: valid, OVERLAY: stale}
    weight_map = {"n.weight": BASE, "o.weight": OVERLAY, WEIGHT: named, SCALE: named}
    return write(folder, NORM | pair(rows[BASE]), OTHER | pair(rows[OVERLAY], fill=2), weight_map)


def of_rule(report: Report, rule: str) -> list[Finding]:
    return [found for found in report.findings if found.rule == rule]


@pytest.mark.parametrize("rows", [63, 64, 65])
def test_a_copy_that_is_left_over_is_a_warning_whatever_its_shape(rows: int, tmp_path: Path) -> None:
    report = check_checkpoint(overlay(tmp_path, stale=rows, valid=64))
    assert report.ok
    assert {(found.rule, found.level) for found in report.findings} == {("two-shards", "warning")}
    assert {found.name: found.file for found in report.findings} == dict.fromkeys(
        (WEIGHT, SCALE), str(tmp_path / BASE)
    )
    (found,) = (found for found in report.findings if found.name == SCALE)
    assert found.message == (
        f'tensor "{SCALE}" is in {OVERLAY} and in {BASE}; '
        f"the index names {OVERLAY}, which comes last too; the copy in {BASE} is left over"
    )
    raw = (tmp_path / BASE).read_bytes()
    assert raw[found.offset : found.offset + found.length].startswith(f'"{SCALE}":'.encode())
    assert main(["check", "-q", str(tmp_path)]) == 0


@pytest.mark.parametrize("named", [BASE, OVERLAY])
def test_the_copy_that_the_index_names_is_judged(named: str, tmp_path: Path) -> None:
    report = check_checkpoint(overlay(tmp_path, stale=64, valid=63, named=named))
    (found,) = of_rule(report, "scale-shape")
    assert found.file == str(tmp_path / named)
    assert "[63, 1]" in found.message
    assert main(["check", "-q", str(tmp_path)]) == 1


def test_a_copy_after_the_one_that_the_index_names_is_an_error(tmp_path: Path) -> None:
    report = check_checkpoint(overlay(tmp_path, stale=64, valid=64, named=BASE))
    assert report.verdict == "NAME"
    assert {(found.rule, found.level) for found in report.findings} == {("two-shards", "error")}
    (found,) = (found for found in report.findings if found.name == SCALE)
    assert found.file == str(tmp_path / OVERLAY)
    assert f"the index names {BASE}, but" in found.message
    assert f"keep the copy in {OVERLAY}" in found.message


@pytest.mark.parametrize("named", [BASE, OVERLAY])
def test_the_level_is_that_of_a_loader_that_reads_whole_files_in_order(named: str, tmp_path: Path) -> None:
    overlay(tmp_path, stale=64, valid=64, named=named)
    weight_map = json.loads((tmp_path / INDEX).read_text())["weight_map"]
    loaded: dict[str, Any] = {}
    for file in sorted(set(weight_map.values()) | {BASE, OVERLAY}):
        with safe_open(tmp_path / file, framework="numpy") as opened:
            loaded |= {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    with safe_open(tmp_path / named, framework="numpy") as opened:
        loads_right = all(np.array_equal(loaded[name], opened.get_tensor(name)) for name in (WEIGHT, SCALE))
    assert check_checkpoint(tmp_path).ok == loads_right


def test_without_an_index_nothing_says_which_copy_counts(tmp_path: Path) -> None:
    second = OTHER | {SCALE: pair()[SCALE]}
    for number, tensors in enumerate((NORM | pair(), second), 1):
        (tmp_path / f"model-{number}-of-2.safetensors").write_bytes(safetensors_bytes(tensors))
    report = check_checkpoint(tmp_path)
    assert (report.verdict, [found.rule for found in report.findings]) == ("NAME", ["two-shards"])
    assert report.findings[0].message.endswith("and nothing says which of the two counts")


def test_of_three_copies_each_that_is_left_over_is_told(tmp_path: Path) -> None:
    weight_map = {"n.weight": BASE, WEIGHT: OVERLAY, SCALE: OVERLAY, "o.weight": "z.safetensors"}
    write(tmp_path, NORM | pair(), pair(), weight_map)
    extra = OTHER | {SCALE: pair()[SCALE]}
    (tmp_path / "z.safetensors").write_bytes(safetensors_bytes(extra))
    found = [(Path(str(one.file)).name, one.name, one.level) for one in check_checkpoint(tmp_path).findings]
    assert sorted(map(str, found)) == sorted(
        map(
            str,
            [
                (BASE, WEIGHT, "warning"),
                (BASE, SCALE, "warning"),
                ("z.safetensors", SCALE, "error"),
            ],
        )
    )


def test_an_index_whose_tensors_are_all_in_another_file_is_sound(tmp_path: Path) -> None:
    whole = NORM | pair()
    write(tmp_path, NORM | pair(rows=63), whole, dict.fromkeys(whole, OVERLAY))
    report = check_checkpoint(tmp_path / INDEX)
    assert (report.verdict, report.findings) == ("OK", ())
    assert [check_checkpoint(tmp_path / name).verdict for name in (BASE, OVERLAY)] == ["TYPE", "OK"]


@pytest.mark.parametrize("rows", [0, 63, 64])
def test_a_copy_that_is_left_over_comes_back_with_its_file(rows: int, tmp_path: Path) -> None:
    source, kiln, out = tmp_path / "model", tmp_path / "out.kiln", tmp_path / "out"
    source.mkdir()
    overlay(source, stale=rows, valid=64)
    for name in (BASE, OVERLAY):
        edit(source / name, lambda tensors: tensors.update({"m.x": Made("U8", (3,))}))
    content = json.loads((source / INDEX).read_text())
    content["weight_map"]["m.x"] = OVERLAY
    (source / INDEX).write_text(json.dumps(content))
    done = kiln_check.import_checkpoint(source, kiln)
    assert {found.rule for found in done.findings} == {"two-shards"}
    assert kiln_check.check(kiln).ok
    with kiln_check.open(kiln) as file:
        assert bytes(file[WEIGHT].bytes()) == bytes([2]) * 1024
        scale = file[WEIGHT].scale
        assert scale is not None
        assert (scale.name, bytes(scale.bytes())) == (SCALE, bytes([2]) * 64)
    kiln_check.export_checkpoint(kiln, out)
    assert digests(out) == digests(source)


def test_export_refuses_a_kiln_file_without_the_copy_that_was_left_over(tmp_path: Path) -> None:
    source, kiln = tmp_path / "model", tmp_path / "out.kiln"
    source.mkdir()
    kiln_check.import_checkpoint(overlay(source, stale=63, valid=64), kiln)
    with kiln_check.open(kiln) as file:
        tensors = {
            name: kiln_check.NewTensor(tensor.dtype, tensor.shape, bytes(tensor.bytes()))
            for name, tensor in file.items()
        }
    gaps = [name for name in tensors if name.startswith(f"kiln.source/gap/{BASE}/")]
    assert len(gaps) == 2
    for gap in gaps:
        kiln_check.write(kiln, {name: tensor for name, tensor in tensors.items() if name != gap})
        with pytest.raises(kiln_check.KilnError):
            kiln_check.export_checkpoint(kiln, tmp_path / "out")
        assert not (tmp_path / "out").exists()


def test_export_refuses_bytes_in_the_place_of_a_tensor_that_no_other_file_has(tmp_path: Path) -> None:
    source, kiln = tmp_path / "model.safetensors", tmp_path / "out.kiln"
    source.write_bytes(safetensors_bytes({"a": Made("U8", (3,)), "b": Made("U8", (5,))}))
    kiln_check.import_checkpoint(source, kiln)
    with kiln_check.open(kiln) as file:
        tensors = {
            name: kiln_check.NewTensor(tensor.dtype, tensor.shape, bytes(tensor.bytes()))
            for name, tensor in file.items()
        }
    end = source.stat().st_size
    tensors[f"kiln.source/gap/model.safetensors/{end - 5}"] = tensors.pop("b")
    kiln_check.write(kiln, tensors)
    with pytest.raises(kiln_check.KilnError):
        kiln_check.export_checkpoint(kiln, tmp_path / "out")


def with_metadata(folder: Path, metadata: str) -> Report:
    """The real sharded checkpoint, with other metadata in its index."""
    copy = copy_of("ct-nvfp4-sharded", folder)
    content = json.loads((copy / INDEX).read_text())
    weight_map = json.dumps(content["weight_map"])
    (copy / INDEX).write_text(f'{{"metadata": {metadata}, "weight_map": {weight_map}}}')
    return check_checkpoint(copy)


@pytest.mark.parametrize("said", [0, 1, 34079, 34081, 10**19])
def test_a_total_size_that_is_off_is_a_warning(said: int, tmp_path: Path) -> None:
    report = with_metadata(tmp_path, f'{{"a": [1], "total_size": {said}}}')
    (found,) = report.findings
    assert (report.verdict, found.rule, found.level) == ("OK", "index-size", "warning")
    assert found.message == f"the index says total_size {said}; the tensors that it names have 34080 bytes"
    raw = Path(str(found.file)).read_bytes()
    assert raw[found.offset : found.offset + found.length] == f'"total_size": {said}'.encode()


@pytest.mark.parametrize(
    "metadata",
    [
        '{"total_size": 34080}',
        '{"total_size": 34080.0}',
        '{"total_size": "34080"}',
        '{"total_size": null}',
        '{"total_size": [1]}',
        '{"total_size": -1}',
        "{}",
        "null",
        "[]",
    ],
)
def test_a_total_size_that_is_right_or_not_said_is_none(metadata: str, tmp_path: Path) -> None:
    assert with_metadata(tmp_path, metadata).findings == ()


def test_a_total_size_may_count_what_the_files_hold_besides(tmp_path: Path) -> None:
    overlay(tmp_path, stale=63, valid=64)
    content = json.loads((tmp_path / INDEX).read_text())
    sizes = {"named": 32 + 1024 + 64, "held": 32 + 2 * 1024 + 63 + 64, "off": 32 + 1024 + 63}
    found = {}
    for name, size in sizes.items():
        (tmp_path / INDEX).write_text(json.dumps(content | {"metadata": {"total_size": size}}))
        found[name] = len(of_rule(check_checkpoint(tmp_path), "index-size"))
    assert found == {"named": 0, "held": 0, "off": 1}


def test_a_total_size_is_not_judged_where_a_file_is_missing(tmp_path: Path) -> None:
    copy = copy_of("ct-nvfp4-sharded", tmp_path)
    (copy / "model-00002-of-00002.safetensors").unlink()
    assert [found.rule for found in check_checkpoint(copy).findings] == ["shard-missing"]


def test_a_warning_alone_stops_no_import(tmp_path: Path) -> None:
    copy = copy_of("ct-nvfp4-sharded", tmp_path)
    edit(copy / "model-00001-of-00002.safetensors", lambda tensors: tensors.update(shorter(tensors)))
    assert main(["import", str(copy), "-o", str(tmp_path / "out.kiln")]) == 0


def shorter(tensors: dict[str, Made]) -> dict[str, Made]:
    """A tensor of no link, cut short by a row, so that the total is off."""
    return {"lm_head.weight": without_last_row(tensors["lm_head.weight"])}


@pytest.mark.parametrize("order", list(itertools.permutations([BASE, OVERLAY, INDEX])))
def test_the_order_of_the_names_does_not_matter(
    order: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    overlay(tmp_path, stale=63, valid=64)
    assert main(["check", *(str(tmp_path / name) for name in order)]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"{tmp_path / INDEX}: OK"
