"""What `kiln check` says of every file of the corpus, against the manifest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kiln_check import check
from kiln_check.cli import main
from kiln_check.render import as_dict
from kiln_check.rules import RULES, Rule
from tests.places import CORPUS

CASES: list[dict[str, Any]] = json.loads((CORPUS / "manifest.json").read_text("utf-8"))["cases"]

PINNED = ("rule", "status", "tensor", "name", "field", "offset", "length")


def outcome(entry: dict[str, Any]) -> dict[str, Any]:
    """What the manifest pins of a file: all but the wording."""
    findings = [{key: finding[key] for key in PINNED} for finding in entry["findings"]]
    return {"verdict": entry["verdict"], "num_tensors": entry["num_tensors"], "findings": findings}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_the_json_of_every_case_equals_the_manifest(
    case: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(CORPUS / case["file"])
    status = main(["check", "--format", "json", path])
    (entry,) = json.loads(capsys.readouterr().out)["files"]
    assert entry["path"] == path
    assert outcome(entry) == outcome(case)
    assert status == (0 if case["verdict"] == "OK" else 1)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_without_a_rule_some_case_is_judged_otherwise(
    rule: type[Rule], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule, "holds", staticmethod(lambda _subject: True))
    assert any(differs(case) for case in CASES)


def differs(case: dict[str, Any]) -> bool:
    """Whether a case gets another outcome; or none, as later rules lean on the one that is gone."""
    try:
        return outcome(as_dict(check(CORPUS / case["file"]))) != outcome(case)
    except Exception:
        return True
