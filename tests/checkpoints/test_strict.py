"""`kiln check --strict`: warnings count, and weights that could not be held to any template."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kiln_check
from kiln_check.cli import main
from kiln_check.render import text
from tests.checkpoints.building import Made, copy_of, safetensors_bytes, with_header
from tests.places import CHECKPOINTS, ZOO
from tools.zoo import unpack

UNKNOWN = {
    "x.weight": Made("U8", (64, 32)),
    "x.strange_scale": Made("F32", (64,)),
    "x.scales": Made("I64", (3,)),
}


def test_a_checkpoint_of_which_all_is_verified_stays_ok(capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("ct-nvfp4", "ct-int4-asym"):
        assert main(["check", "--strict", str(CHECKPOINTS / folder)]) == 0
        assert "not-verified" not in capsys.readouterr().out


def test_a_weight_that_is_not_verified_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors_bytes(UNKNOWN))
    assert kiln_check.check_checkpoint(path).ok
    assert main(["check", str(path)]) == 0
    assert 'not verified 1: no known format\n    "x.weight"' in capsys.readouterr().out
    assert main(["check", "--strict", "--format", "json", str(path)]) == 1
    (entry,) = json.loads(capsys.readouterr().out)["files"]
    assert entry["verdict"] == "TYPE"
    assert [(one["rule"], one["name"]) for one in entry["findings"]] == [("not-verified", "x.weight")]
    assert entry["unverified"] == [{"name": "x.weight", "reason": "no known format"}]


def test_a_warning_counts(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    header = b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    path.write_bytes(with_header(header, b"abcd", pad=False))
    assert kiln_check.check_checkpoint(path).ok
    report = kiln_check.check_checkpoint(path, strict=True)
    assert [(one.rule, one.level) for one in report.findings] == [("payload-align", "error")]
    assert report.verdict == "ALIGN"


def test_an_error_is_the_same(tmp_path: Path) -> None:
    copy = copy_of("ct-nvfp4", tmp_path)
    raw = (copy / "model.safetensors").read_bytes()
    (copy / "model.safetensors").write_bytes(raw[:-1])
    assert kiln_check.check_checkpoint(copy, strict=True) == kiln_check.check_checkpoint(copy)


def test_what_can_not_be_read_stays_unreadable(tmp_path: Path) -> None:
    report = kiln_check.check_checkpoint(tmp_path / "gone.safetensors", strict=True)
    assert report.verdict == "UNREADABLE"


@pytest.mark.parametrize("archive", sorted(ZOO.glob("mlx*.zip")), ids=lambda archive: archive.stem)
def test_a_checkpoint_with_warnings_alone_is_ok_where_it_is_not_strict(archive: Path, tmp_path: Path) -> None:
    folder = str(unpack(archive, tmp_path))
    status = main(["check", "-q", "--strict", folder])
    warned = "(warning)" in text(kiln_check.check_checkpoint(folder))
    assert status == (1 if warned else 0)
