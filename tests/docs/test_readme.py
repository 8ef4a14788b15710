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
    done = _run(["-c", found[1]], root, tmp_path)
    assert done.stderr == ""
    assert done.stdout.startswith("OK None []\ne2m1 (32,) 0 32 w.scale\n")


def test_the_output_of_the_commands_is_real(readme: str, root: Path, tmp_path: Path) -> None:
    (tmp_path / "tests").symlink_to(root / "tests")
    commands = re.findall(r"^\$ kiln (.*)\n((?:(?!\$|```).*\n)+)", readme, re.MULTILINE)
    assert [arguments.split()[0] for arguments, _ in commands] == ["check", "check", "import", "export"]
    for arguments, output in commands:
        done = _run(["-m", "kiln_check", *arguments.split()], root, tmp_path)
        assert done.stdout + done.stderr == output


def test_every_file_that_the_documents_link_to_is_there(root: Path) -> None:
    documents = [*root.glob("*.md"), *root.glob("docs/*.md"), root / "tests" / "corpus" / "README.md"]
    for document in documents:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text("utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def _run(arguments: list[str], root: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ, PYTHONPATH=str(root), PYTHONIOENCODING="utf-8")
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=folder, env=environment
    )
