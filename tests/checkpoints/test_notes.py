"""What a check says beside its findings: which weights an import would link, and which not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kiln_check
from kiln_check.checkpoints.check import check_checkpoint
from kiln_check.checkpoints.importer import closing_report, import_checkpoint
from kiln_check.cli import main
from tests.checkpoints.building import FOLDERS
from tests.checkpoints.cases import Case, t
from tests.checkpoints.models import config
from tests.places import CHECKPOINTS


def notes(path: str) -> tuple[str, ...]:
    return check_checkpoint(path).notes


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_check_says_what_an_import_says_of_links(folder: str, tmp_path: Path) -> None:
    (lead,) = [*(CHECKPOINTS / folder).glob("*.index.json")] or (CHECKPOINTS / folder).glob("*.safetensors")
    done = import_checkpoint(str(lead), tmp_path / "out.kiln")
    assert [f"  {note}" for note in notes(str(lead))] == closing_report(done).splitlines()[1:]
    assert len(notes(str(lead))) >= 1


def test_notes_leave_out_what_a_finding_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tensors = {
        "short.weight_packed": t("U8", 64, 32),
        "short.weight_scale": t("U8", 63, 2),
        "gone.weight_packed": t("U8", 64, 32),
        "good.weight_packed": t("U8", 64, 32),
        "good.weight_scale": t("U8", 64, 2),
        "one.weight": t("F8_E4M3", 64, 32),
        "one.weight_scale": t("F32"),
    }
    groups = {
        "group_0": {
            "targets": ["re:(short|gone|good)"],
            "format": "mxfp4-pack-quantized",
            "weights": {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32},
        },
        "group_1": {
            "targets": ["re:one"],
            "format": "float-quantized",
            "weights": {"num_bits": 8, "type": "float", "strategy": "tensor"},
        },
    }
    declared = config(quant_method="compressed-tensors", format="mixed-precision", config_groups=groups)
    path = Case(tensors, config=declared).write(tmp_path)
    wanted = (
        "linked 1: compressed-tensors mxfp4-pack-quantized, scheme 1, e2m1 with e8m0 scales",
        "verified 1: compressed-tensors float-quantized, tensor, not linked: one scale for a matrix",
    )
    assert notes(path) == wanted
    assert main(["check", path]) == 1
    out = capsys.readouterr().out
    assert out.splitlines()[:3] == [f"{path}: TYPE", *(f"  {note}" for note in wanted)]
    assert main(["check", "--format", "json", path]) == 1
    (entry,) = json.loads(capsys.readouterr().out)["files"]
    assert tuple(entry["notes"]) == wanted


def test_there_are_no_notes_where_nothing_is_a_scale(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Case({"x": t("U8", 3)}).write(tmp_path)
    kiln_check.write(tmp_path / "x.kiln", {"x": kiln_check.NewTensor("u8", [3], b"abc")})
    assert main(["check", "--format", "json", path, str(tmp_path / "x.kiln")]) == 0
    assert all("notes" not in entry for entry in json.loads(capsys.readouterr().out)["files"])
