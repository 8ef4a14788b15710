"""The measurements can be made: files are sound, every contender reads them, tables are whole."""

from __future__ import annotations

import numpy as np
import pytest

from tools import bench


def test_a_small_run_prints_every_table(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--sizes", "3,900", "--files", "5", "--line", "30", "--broken", "10,20", "--weights", "2"]
    assert bench.main([*sizes, "--rounds", "1"]) == 0
    out = capsys.readouterr().out
    rows = [line for line in out.splitlines() if line.startswith("| ") and "---" not in line]
    titles = [row.split(" | ")[0].removeprefix("| ") for row in rows]
    assert titles == [
        *("tensors", "3", "900", "900, payloads shuffled"),
        *("tensors", "900"),
        *("`kiln check` of", "1 small file", "5 small files", "1 file of 3 tensors", "1 file of 900 tensors"),
        *("Kiln", "kiln import of 2 MiB", "open, and 1 of 3 tensors"),
        *("tensors", "30"),
        *("tensors, all broken", "10", "20"),
    ]
    assert "| 20 | 51 |" in out


def test_half_of_the_tensors_have_a_scheme() -> None:
    table = bench.descriptors(10 * bench.LAYER, np.arange(10 * bench.LAYER))
    schemes = table["scheme"].tolist()
    assert 0.49 < 1 - schemes.count(0) / len(schemes) < 0.5
    assert 0.4 < schemes.count(1) / schemes.count(2) < 2.5
