"""The maintainer's tools notice what is out of date."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

IN_CI = bool(os.environ.get("CI"))

needs_node = pytest.mark.skipif(
    not IN_CI and (shutil.which("node") is None or shutil.which("npm") is None),
    reason="the Kaitai compiler needs Node.js with npm",
)


@pytest.fixture
def copy(root: Path, tmp_path: Path) -> Path:
    """A copy of the checkout's tracked parts, to edit."""
    for part in ("ksy", "generated", "tools", "tests/corpus", "docs"):
        shutil.copytree(root / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def run(copy: Path, tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(copy / "tools" / tool), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=copy)


def edit_one_byte(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


@needs_node
def test_generate_check_tells_a_one_byte_edit_a_stray_file_and_a_missing_one(copy: Path) -> None:
    done = run(copy, "generate.py", "--check")
    assert (done.returncode, done.stdout) == (0, "generated/ is up to date\n")
    edit_one_byte(copy / "generated" / "python" / "kiln_v2.py")
    (copy / "generated" / "python" / "kiln_v2_records.py").unlink()
    (copy / "generated" / "python" / "stray.py").touch()
    done = run(copy, "generate.py", "--check")
    assert done.returncode == 1
    assert [line.split("/")[-1] for line in done.stdout.splitlines()] == [
        "stray.py: not made from the .ksy",
        "kiln_v2.py: out of date",
        "kiln_v2_records.py: missing",
    ]
    assert run(copy, "generate.py").returncode == 0
    assert run(copy, "generate.py", "--check").returncode == 0


@needs_node
def test_swapping_two_fields_of_the_ksy_is_noticed(copy: Path) -> None:
    ksy = copy / "ksy" / "kiln_v2.ksy"
    text = ksy.read_text("utf-8")
    swapped = text.replace("- id: rank\n", "- id: SWAP\n").replace("- id: scheme\n", "- id: rank\n")
    ksy.write_text(swapped.replace("- id: SWAP\n", "- id: scheme\n"), "utf-8")
    assert run(copy, "generate.py", "--check").returncode == 1


@needs_node
def test_any_target_can_be_made_elsewhere(copy: Path, tmp_path: Path) -> None:
    done = run(copy, "generate.py", "--language", "ruby", "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["kiln_v2.rb"]


def test_build_corpus_check_tells_a_one_byte_edit(copy: Path) -> None:
    assert run(copy, "build_corpus.py", "--check").returncode == 0
    edit_one_byte(copy / "tests" / "corpus" / "kiln-v2-scales.kiln")
    done = run(copy, "build_corpus.py", "--check")
    assert done.returncode == 1
    assert "kiln-v2-scales.kiln" in done.stdout


def test_the_page_of_templates_is_up_to_date(root: Path) -> None:
    done = run(root, "write_templates.py", "--check")
    assert (done.returncode, done.stdout) == (0, "docs/reference/templates.md is up to date\n")


def test_write_templates_check_tells_a_one_byte_edit_and_a_missing_page(root: Path, copy: Path) -> None:
    shutil.copytree(root / "kiln_check", copy / "kiln_check", ignore=shutil.ignore_patterns("__pycache__"))
    page = copy / "docs" / "reference" / "templates.md"
    for change in (edit_one_byte, Path.unlink):
        change(page)
        done = run(copy, "write_templates.py", "--check")
        assert (done.returncode, done.stdout) == (1, "docs/reference/templates.md: out of date\n")
        assert run(copy, "write_templates.py").returncode == 0
        assert run(copy, "write_templates.py", "--check").returncode == 0
