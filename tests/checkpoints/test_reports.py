"""Checkpoints that users reported, judged as `tests/data/reports/expected.json` says they must be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kiln_check.fleet import check_paths
from tests.places import REPORTS
from tools.zoo import unpack

EXPECTED: dict[str, dict[str, str]] = json.loads((REPORTS / "expected.json").read_bytes())


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that has each report's files below its name."""
    folder = tmp_path_factory.mktemp("reports")
    for archive in REPORTS.glob("*.zip"):
        unpack(archive, folder)
    return folder


def test_every_report_has_a_verdict(unpacked: Path) -> None:
    named = {name.split("/")[0] for name in EXPECTED}
    assert named == {folder.name for folder in unpacked.iterdir()}
    assert {expected["verdict"] for expected in EXPECTED.values()} == {"ok", "error"}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_reported_checkpoint_is_judged_as_it_must_be(name: str, unpacked: Path) -> None:
    reports = list(check_paths([str(unpacked / name)]))
    assert reports
    errors = [report.error for report in reports if report.error is not None]
    errors += [one.message for report in reports for one in report.findings if one.level == "error"]
    if EXPECTED[name]["verdict"] == "ok":
        assert errors == []
        assert all(report.ok for report in reports)
    else:
        assert errors, EXPECTED[name]["answer"]
        assert not all(report.ok for report in reports)
