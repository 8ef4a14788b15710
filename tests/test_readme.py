"""What the README shows is what happens."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def readme(root: Path) -> str:
    return (root / "README.md").read_text("utf-8")


def test_the_real_checkpoint_example_prints_what_it_says(readme: str, root: Path, tmp_path: Path) -> None:
    found = re.search(r"runs this -->\n```python\n(.*?)```\n\n```\n(.*?)```", readme, re.DOTALL)
    assert found is not None
    (tmp_path / "tests").symlink_to(root / "tests")
    done = _run(["-c", found[1]], root, tmp_path)
    assert done.stderr == ""
    assert done.stdout == found[2]


def test_the_python_example_runs(readme: str, root: Path, tmp_path: Path) -> None:
    found = re.search(r"## From Python\n\n```python\n(.*?)```", readme, re.DOTALL)
    assert found is not None
    (tmp_path / "model.kiln").write_bytes((root / "tests/corpus/kiln-v2-scales.kiln").read_bytes())
    done = _run(["-c", found[1]], root, tmp_path)
    assert done.stderr == ""
    assert done.stdout.startswith("OK []\ne2m1 (32,) 0 32 w.scale\n")


def test_the_output_of_the_check_is_real(readme: str, root: Path) -> None:
    found = re.search(r"```\n\$ kiln (check .*?)\n(.*?)```", readme, re.DOTALL)
    assert found is not None
    done = _run(["-m", "kiln_check", *found[1].split()], root, root)
    assert done.stdout == found[2]


def _run(arguments: list[str], root: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ, PYTHONPATH=str(root), PYTHONIOENCODING="utf-8")
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=folder, env=environment
    )
