"""What reads the files of the bench: the check, and what is measured beside it."""

from __future__ import annotations

import importlib.util
import json
import struct
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
from kaitaistruct import KaitaiStream

from kiln_check import check, check_checkpoint, screen
from kiln_check import open as kiln_open
from kiln_check.directory import LEN_DESCRIPTOR, LEN_HEADER
from kiln_check.generated.kiln_v2 import KilnV2
from tools.benching.checkpoints import TENSORS_OF_MODULE, Checkpoint
from tools.benching.files import Case

PARSER_MOST = 100_000
"""Tensors that the generated parser is measured on at most."""


def installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def run_check(case: Case) -> None:
    assert check(case.kiln).ok


def run_parser(case: Case) -> None:
    with open(case.kiln, "rb") as file:
        head = file.read(case.head)
    assert len(KilnV2(KaitaiStream(BytesIO(head))).descriptors) == case.num_tensors


def run_safetensors(case: Case) -> None:
    from safetensors import safe_open

    with safe_open(case.safetensors, "np") as file:
        assert len(file.keys()) == case.num_tensors


def run_gguf(case: Case) -> None:
    from gguf import GGUFReader

    assert case.gguf is not None
    assert len(GGUFReader(case.gguf).tensors) == case.num_tensors


def run_floor(case: Case) -> None:
    with open(case.kiln, "rb") as file:
        file.seek(LEN_HEADER)
        np.frombuffer(file.read(LEN_DESCRIPTOR * case.num_tensors), np.uint8).sum()


class Contender(NamedTuple):
    """What reads a case, and whether it can be measured on it."""

    run: Callable[[Case], None]
    can: Callable[[Case], bool]
    slow: bool = False


CONTENDERS = {
    "kiln check": Contender(run_check, lambda _case: True),
    "generated parser": Contender(
        run_parser,
        lambda case: case.num_tensors <= PARSER_MOST and case.safetensors is not None,
        slow=True,
    ),
    "safetensors": Contender(
        run_safetensors, lambda case: case.safetensors is not None and installed("safetensors")
    ),
    "gguf": Contender(run_gguf, lambda case: case.gguf is not None and installed("gguf"), slow=True),
    "floor": Contender(run_floor, lambda _case: True),
}


def load_headers(checkpoint: Checkpoint) -> None:
    """Read and parse the header of each shard, and free it before the next."""
    count = 0
    for path in checkpoint.shards:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            count += len(json.loads(file.read(length))) - 1  # __metadata__ is no tensor
    assert count == checkpoint.num_tensors


def open_shards(checkpoint: Checkpoint) -> None:
    """Open each shard by safetensors, and ask for the names of its tensors."""
    from safetensors import safe_open

    count = 0
    for path in checkpoint.shards:
        with safe_open(path, "np") as file:
            count += len(file.keys())
    assert count == checkpoint.num_tensors


def check_shards(checkpoint: Checkpoint) -> None:
    """Check the checkpoint, whose weights must all be linked with their scales."""
    report = check_checkpoint(checkpoint.index_path)
    assert report.ok
    assert len(report.linked) * TENSORS_OF_MODULE == checkpoint.num_tensors


CHECKPOINT_CONTENDERS: dict[str, Callable[[Checkpoint], None]] = {
    "json.loads of each header": load_headers,
    "safetensors: safe_open, keys": open_shards,
    "check_checkpoint": check_shards,
}
"""In the order in which they run, round after round; the first is what the others are compared with."""


def open_one(case: Case, name: str) -> None:
    with kiln_open(case.kiln) as file:
        bytes(file[name].bytes())


def get_one(case: Case, name: str) -> None:
    from safetensors import safe_open

    with safe_open(case.safetensors, framework="numpy") as file:
        file.get_tensor(name)


def check_beside(start: int, path: Path) -> None:
    """Check a file with NumPy used from `start` tensors on."""
    before = screen.COLUMNS_FROM
    screen.COLUMNS_FROM = start
    try:
        assert check(path).ok
    finally:
        screen.COLUMNS_FROM = before


def kiln_command() -> list[str]:
    """The command of this environment, or what stands for it in a checkout."""
    kiln = Path(sys.executable).with_name("kiln")
    return [str(kiln)] if kiln.exists() else [sys.executable, "-m", "kiln_check"]
