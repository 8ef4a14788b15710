"""The reference on checkpoints leaves nothing out: rules, levels, reasons, kept names and tools."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from kiln_check import checkpoints
from kiln_check.checkpoints import links
from kiln_check.checkpoints.checkpoint_rules import CHECKPOINT_RULES
from kiln_check.checkpoints.conventions import template
from kiln_check.checkpoints.conventions.registry import tools
from kiln_check.checkpoints.plan import FILE, GAP, HEAD


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "reference" / "checkpoints.md").read_text("utf-8")


def levels_by_case() -> set[str]:
    """The rules to whose findings the code gives a level by the case, as it calls `finding(level=…)`."""
    found = set()
    for path in Path(checkpoints.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            if node.func.id == "finding" and any(one.arg == "level" for one in node.keywords):
                assert isinstance(node.args[0], ast.Constant)
                found.add(str(node.args[0].value))
    return found


def test_every_rule_is_listed_in_order(page: str) -> None:
    rows = re.findall(r"^\| ([a-z0-9-]+) \| ([A-Z]+) \| (.*?) \| (.*?) \| (.*?) \|$", page, re.MULTILINE)
    marks = {"always": "stops", "link": "stops, unless `--allow-unlinked`", "never": "goes on"}
    either = levels_by_case()
    assert rows == [
        (
            rule.name,
            rule.status,
            rule.about.split("\n\n")[0],
            "either" if rule.name in either else rule.level,
            marks[rule.stops_import],
        )
        for rule in CHECKPOINT_RULES.values()
    ]
    assert set(re.findall(r"^- `([a-z-]+)` is a warning", page, re.MULTILINE)) == either


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
