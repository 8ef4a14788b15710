"""The measurements can be made: files are sound, every contender reads them, tables are whole."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save

from kiln_check import check_checkpoint
from tools import bench
from tools.benching.checkpoints import build_checkpoint
from tools.benching.files import LAYER, descriptors


def rows_of(out: str) -> list[list[str]]:
    """The cells of each row of the tables, without the lines below their heads."""
    rows = [line for line in out.splitlines() if line.startswith("| ") and "---" not in line]
    return [row.removeprefix("| ").removesuffix(" |").split(" | ") for row in rows]


def header_of(path: Path) -> dict[str, dict[str, Any]]:
    with path.open("rb") as file:
        header: dict[str, dict[str, Any]] = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return header


def test_a_small_run_prints_every_table(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--sizes", "3,900", "--files", "5", "--line", "30", "--broken", "10,20", "--weights", "2"]
    assert bench.main([*sizes, "--checkpoint", "24,2", "--rounds", "1"]) == 0
    out = capsys.readouterr().out
    assert [row[0] for row in rows_of(out)] == [
        *("tensors", "3", "900", "900, payloads shuffled"),
        *("tensors", "900"),
        *("`kiln check` of", "1 small file", "5 small files", "1 file of 3 tensors", "1 file of 900 tensors"),
        *("24 tensors, 2 shards", "json.loads of each header"),
        *("safetensors: safe_open, keys", "check_checkpoint"),
        *("check of 3 kB of headers", "allocated in the check (tracemalloc)"),
        "process, above the interpreter (VmHWM)",
        *("Kiln", "kiln import of 2 MiB", "open, and 1 of 3 tensors"),
        *("tensors", "30"),
        *("tensors, all broken", "10", "20"),
    ]
    assert "| 20 | 51 |" in out


def test_one_part_prints_its_ratios_alone(root: Path) -> None:
    command = [sys.executable, "tools/bench.py", "--only", "checkpoints"]
    done = subprocess.run(
        [*command, "--checkpoint", "40,3", "--rounds", "2"], cwd=root, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.findall("^### (.*)", done.stdout, re.MULTILINE) == ["Checkpoints"]
    times, memory = (rows_of(done.stdout)[start:end] for start, end in ((1, 4), (5, None)))
    assert [row[3] for row in times] == ["–", "–", "≤ 6 ×"]
    assert [row[3] for row in memory] == ["≤ 4 ×"] * len(memory)
    assert times[0][2] == "1.0 ×"
    assert all(re.fullmatch(r"\d+\.\d ×", row[2]) for row in times + memory)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--only", "chekpoints"], "invalid choice: 'chekpoints'"),
        (["--rounds", "0"], "'0' is no whole number from 1"),
        (["--sizes", "3,many"], "'many' is no whole number from 1"),
        (["--checkpoint", "24"], "'24' is not TENSORS,SHARDS"),
        (["--checkpoint", "25,2"], "25 tensors are no multiple of 4"),
        (["--checkpoint", "24,7"], "24 tensors are too few for 7 shards"),
    ],
)
def test_bad_usage_is_told_in_a_line(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        bench.main(arguments)
    assert told in capsys.readouterr().err.splitlines()[-1]


def test_half_of_the_tensors_have_a_scheme() -> None:
    table = descriptors(10 * LAYER, np.arange(10 * LAYER))
    schemes = table["scheme"].tolist()
    assert 0.49 < 1 - schemes.count(0) / len(schemes) < 0.5
    assert 0.4 < schemes.count(1) / schemes.count(2) < 2.5


def test_the_checkpoint_is_sound_and_each_of_its_weights_is_linked(tmp_path: Path) -> None:
    made = build_checkpoint(tmp_path / "model", 2000, 7)
    report = check_checkpoint(made.index_path)
    assert (report.verdict, report.findings) == ("OK", ())
    assert len(report.linked) == 500
    assert {(one.tool, one.outer == f"{one.name}_scale_2") for one in report.linked} == {("ModelOpt", True)}


def test_the_shards_hold_what_the_index_says(tmp_path: Path) -> None:
    made = build_checkpoint(tmp_path / "model", 2000, 7)
    index = json.loads(made.index_path.read_text())
    held = {}
    for path in made.shards:
        with safe_open(path, "np") as shard:
            held.update(dict.fromkeys(shard.keys(), path.name))
    assert held == index["weight_map"]
    assert len(held) == 2000
    payloads = sum(path.stat().st_size - 8 for path in made.shards) - made.headers
    assert payloads == index["metadata"]["total_size"]


def test_a_header_is_the_one_that_safetensors_writes(tmp_path: Path) -> None:
    made = build_checkpoint(tmp_path / "model", 8, 1)
    ours = {
        name: entry for name, entry in header_of(made.shards[0]).items() if entry.get("dtype") != "F8_E4M3"
    }
    dtypes = {"F32": "float32", "U8": "uint8"}
    arrays = {
        name: np.zeros(entry["shape"], dtypes[entry["dtype"]])
        for name, entry in ours.items()
        if name != "__metadata__"
    }
    raw = save(arrays, {"format": "pt"})
    theirs = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    assert list(theirs) == list(ours)
    assert [entry.get("shape") for entry in theirs.values()] == [
        entry.get("shape") for entry in ours.values()
    ]


def test_a_module_has_the_tensors_of_nvfp4(tmp_path: Path) -> None:
    made = build_checkpoint(tmp_path / "model", 12, 3)
    down = "model.layers.0.mlp.experts.0.down_proj"
    entries = {name: (one.get("dtype"), one.get("shape")) for name, one in header_of(made.shards[2]).items()}
    assert entries == {
        "__metadata__": (None, None),
        f"{down}.input_scale": ("F32", []),
        f"{down}.weight_scale_2": ("F32", []),
        f"{down}.weight_scale": ("F8_E4M3", [2048, 768 // 16]),
        f"{down}.weight": ("U8", [2048, 768 // 2]),
    }
