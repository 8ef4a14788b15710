"""Checkpoints that many tools wrote, all of them sound; `tests/data/README.md` says what they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from kiln_check.fleet import check_paths
from tests.places import ZOO
from tools.zoo import unpack

ARCHIVES = sorted(ZOO.glob("*.zip"))

MAY_BE_REFUSED = {
    "gguf-big-endian": "its numbers are of the other byte order",
    "gguf-q8_1": "the gguf package writes 40 bytes for a block, ggml reads 36",
}
"""Checkpoints that a check may say it can't read, or find fault with, and why."""


def test_the_zoo_is_there() -> None:
    assert MAY_BE_REFUSED.keys() < {archive.stem for archive in ARCHIVES}


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.stem)
def test_a_sound_checkpoint_has_no_error(archive: Path, tmp_path: Path) -> None:
    reports = list(check_paths([str(unpack(archive, tmp_path))]))
    assert reports
    if archive.stem in MAY_BE_REFUSED:
        assert all(report.ok or report.error or report.findings for report in reports)
        return
    assert [report.error for report in reports if report.error is not None] == []
    found = [one.message for report in reports for one in report.findings if one.level == "error"]
    assert found == []
    assert all(report.ok for report in reports)
