"""What docs/interop.md shows is what happens, and it leaves nothing out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kiln_check.checkpoints import links
from kiln_check.checkpoints.checkpoint_rules import CHECKPOINT_RULES
from kiln_check.checkpoints.conventions import template
from kiln_check.checkpoints.conventions.registry import tools
from kiln_check.checkpoints.plan import FILE, GAP, HEAD


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "interop.md").read_text("utf-8")


def test_the_commands_print_what_the_page_says(page: str, root: Path, tmp_path: Path) -> None:
    (tmp_path / "tests").symlink_to(root / "tests")
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "kiln"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kiln_check "$@"\n')
    script.chmod(0o755)
    environment = dict(
        os.environ, PATH=f"{script.parent}{os.pathsep}{os.environ['PATH']}", PYTHONPATH=str(root)
    )
    sessions = "\n".join(re.findall(r"```console\n(.*?)\n```", page, re.DOTALL))
    ran = 0
    for part in re.split(r"^\$ ", sessions, flags=re.MULTILINE)[1:]:
        command, _, wanted = part.partition("\n")
        done = subprocess.run(
            command, shell=True, capture_output=True, text=True, cwd=tmp_path, env=environment
        )
        assert done.stderr == ""
        assert done.stdout == (wanted.rstrip("\n") + "\n" if wanted.strip() else ""), command
        ran += 1
    assert ran >= 8


def test_every_rule_is_listed_in_order(page: str) -> None:
    rows = re.findall(r"^\| ([a-z0-9-]+) \| ([A-Z]+) \| (.*?) \| (.*?) \|$", page, re.MULTILINE)
    marks = {"always": "stops", "link": "stops, unless `--allow-unlinked`", "never": "goes on"}
    assert rows == [
        (rule.name, rule.status, rule.about.split("\n\n")[0], marks[rule.stops_import])
        for rule in CHECKPOINT_RULES.values()
    ]


NO_REASONS = ("METADATA", "FLOATS", "OPTIONAL")


def test_every_reason_and_every_kept_name_is_told(page: str) -> None:
    reasons = {
        value
        for module in (template, links)
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, str) and name not in NO_REASONS
    }
    reasons |= {one.holds for tool in tools() for one in tool.templates if isinstance(one.holds, str)}
    assert {template.ZERO_POINTS, links.NOT_KNOWN} <= reasons
    rows = re.findall(r"^\| (.*?) \| .*\|$", page, re.MULTILINE)
    assert reasons <= set(rows)
    assert set(rows) >= {f"`{HEAD}FILE`", f"`{GAP}FILE/OFFSET`", f"`{FILE}FILE`"}


def test_every_tool_is_told(root: Path) -> None:
    reference = (root / "docs" / "reference" / "templates.md").read_text("utf-8")
    assert re.findall("^## (.*)$", reference, re.MULTILINE) == [tool.name for tool in tools()]


def test_the_python_of_the_page_prints_what_it_says(page: str, root: Path, tmp_path: Path) -> None:
    found = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", page, re.DOTALL)
    assert found is not None
    (tmp_path / "tests").symlink_to(root / "tests")
    done = subprocess.run(
        [sys.executable, "-c", found[1]],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=dict(os.environ, PYTHONPATH=str(root)),
    )
    assert (done.stdout, done.stderr) == (found[2], "")
