"""What pages show is what happens, and what they link to is there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kiln_check.rules import RULES
from tests.docs.pages import DOCS, INDEX, PAGES, README, anchors, blocks, name_of, prose, section
from tests.places import CHECKPOINTS, CORPUS, ROOT

EACH = pytest.mark.parametrize("page", PAGES, ids=name_of)

KINDS = {"Tutorial": "tutorial", "How-to": "how-to", "Reference": "reference", "Explanation": "explanation"}
"""The headings of the index, each with the folder of its pages."""

AT_THE_TOP = {
    "kiln-v2-layout.md": "Reference",
    "page-to-rules.md": "Reference",
    "performance.md": "Explanation",
}
"""Pages that lie beside the index, with their kinds."""

FIRST_SCREEN = 40
"""Lines."""

Step = tuple[str | list[str], str]
"""A command, or a Python script, and what the page says that it prints."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which the commands of a page run as in a checkout, with `kiln` among the programs."""
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    (tmp_path / "bin").mkdir()
    for name, program in (("kiln", f'"{sys.executable}" -m kiln_check'), ("python3", f'"{sys.executable}"')):
        script = tmp_path / "bin" / name
        script.write_text(f'#!/bin/sh\nexec {program} "$@"\n')
        script.chmod(0o755)
    return tmp_path


def run(command: str | list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join((str(ROOT), str(ROOT / "generated" / "python")))
    environment = dict(
        os.environ,
        PATH=f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        PYTHONPATH=paths,
        PYTHONIOENCODING="utf-8",
    )
    return subprocess.run(
        command,
        shell=isinstance(command, str),
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=folder,
        env=environment,
    )


def steps(text: str) -> Iterator[Step]:
    """The commands and the Python scripts of a page, in order."""
    script: list[str] | None = None
    for block in blocks(text):
        if script is not None:
            yield script, block.text if block.language == "" and block.follows else ""
        script = [sys.executable, "-c", block.text] if block.language == "python" else None
        if block.language == "console":
            for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                yield command, output
    if script is not None:
        yield script, ""


SHOWING = [page for page in PAGES if any(steps(page.read_text("utf-8")))]


@pytest.mark.parametrize("page", SHOWING, ids=name_of)
def test_a_page_shows_what_happens(page: Path, folder: Path) -> None:
    for command, output in steps(page.read_text("utf-8")):
        done = run(command, folder)
        assert (done.stdout, done.stderr) == (output, ""), command


def test_pages_with_sessions_are_found() -> None:
    names = {name_of(page) for page in SHOWING}
    assert {"README.md", "docs/tutorial/first-file.md", "docs/how-to/import-export.md"} <= names


@EACH
def test_every_link_leads_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)", prose(page.read_text("utf-8"))):
        linked = (page.parent / target).resolve() if target else page
        assert linked.exists(), f"there is no {target}"
        if anchor:
            assert anchor in anchors(linked.read_text("utf-8")), f"{linked.name} has no #{anchor}"


@EACH
def test_every_path_that_a_page_names_is_there(page: Path) -> None:
    folders = "|".join((r"\.ci", "docs", "generated", "kiln_check", "ksy", "tests", "tools"))
    named = re.findall(rf"`((?:{folders})/[\w./*-]+)`", page.read_text("utf-8"))
    assert [one for one in named if not any(ROOT.glob(one.rstrip("/")))] == []


def test_the_index_has_each_page_under_its_kind() -> None:
    index = INDEX.read_text("utf-8")
    assert re.findall(r"^## (.*)$", index, re.MULTILINE) == list(KINDS)
    for kind, name in KINDS.items():
        listed = re.findall(r"^- \[.*?\]\((.*?)\)", section(index, kind), re.MULTILINE)
        there = [page.relative_to(DOCS).as_posix() for page in (DOCS / name).glob("*.md")]
        there += [page for page, of in AT_THE_TOP.items() if of == kind]
        assert sorted(listed) == sorted(there)
    assert {page.name for page in DOCS.glob("*.md")} == {*AT_THE_TOP, INDEX.name}


def test_the_index_calls_pages_by_their_titles() -> None:
    listed = re.findall(r"^- \[(.*?)\]\((.*?)\)", INDEX.read_text("utf-8"), re.MULTILINE)
    for title, target in listed:
        assert f"# {title}\n" in (DOCS / target).read_text("utf-8")


def test_the_first_screen_says_what_it_is_then_installs_then_shows() -> None:
    lines = README.read_text("utf-8").splitlines()
    headings = [line for line in lines if line.startswith("#")]
    assert headings[:3] == ["# Kiln", "## Install", "## Example"]
    assert lines.index("```", lines.index("```console")) < FIRST_SCREEN


COUNTS = {
    "rules": len(RULES),
    "files with their verdicts": len(json.loads((CORPUS / "manifest.json").read_text("utf-8"))["cases"]),
}
"""What a page may count, by the words after the number."""


@EACH
def test_what_a_page_counts_is_so_many(page: Path) -> None:
    text = " ".join(prose(page.read_text("utf-8")).split())
    for number, what in re.findall(rf"\b(\d+) ({'|'.join(COUNTS)})\b", text):
        assert int(number) == COUNTS[what], f"{number} {what}"


def test_the_layout_page_counts_its_rules() -> None:
    assert f"the {len(RULES)} rules in verdict order" in (DOCS / "kiln-v2-layout.md").read_text("utf-8")


def test_the_hook_refuses_what_no_changed_weights_show(folder: Path) -> None:
    page = (DOCS / "how-to" / "check-in-ci.md").read_text("utf-8")
    (hook,) = [block.text for block in blocks(page) if block.language == "yaml"]
    ((entry, rest),) = re.findall(r"entry: (.*)\n((?: +.*\n)*)", hook)
    assert rest.split("\n") == ["        pass_filenames: false", "        always_run: true", ""]
    model = folder / "models" / "model"
    shutil.copytree(CHECKPOINTS / "ct-nvfp4-sharded", model)
    done = run(entry, folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    config = (model / "config.json").read_text("utf-8")
    (model / "config.json").write_text(config.replace('"group_size": 16', '"group_size": 32'), "utf-8")
    assert run(entry, folder).returncode == 1
    (model / "config.json").write_text(config, "utf-8")
    (model / "model-00002-of-00002.safetensors").unlink()
    assert run(entry, folder).returncode == 1
