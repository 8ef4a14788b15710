"""The conformance runner: it passes a right reader and catches wrong ones."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kiln_check import conformance
from kiln_check.conformance import ConformanceError, Result
from kiln_check.rules import RULES
from tests.places import ROOT

READER = """
import sys
from kiln_check import check
report = check(sys.argv[1])
left = [finding for finding in report.findings if finding.rule not in sys.argv[2:]]
print(left[0].status if left else "OK")
sys.exit(1 if left else 0)
"""
"""A reader that knows all rules but those that it is told to forget."""


@pytest.fixture(autouse=True)
def package_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.fixture
def script(tmp_path: Path) -> Any:
    def make(text: str, *arguments: str) -> list[str]:
        path = tmp_path / "reader.py"
        path.write_text(text)
        return [sys.executable, str(path), "{file}", *arguments]

    return make


def outcomes(results: Sequence[Result]) -> dict[str, str]:
    return {result.case["case"]: result.outcome for result in results}


def without(case: dict[str, Any], rule: str) -> str:
    """The verdict of a reader that does not know a rule."""
    return next((finding["status"] for finding in case["findings"] if finding["rule"] != rule), "OK")


def kiln(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kiln_check", "conformance", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


def test_a_right_reader_passes(script: Any) -> None:
    results = list(conformance.run(script(READER), rules=["outer-count"]))
    assert set(outcomes(results).values()) == {"pass"}
    assert len(results) > 10


@pytest.mark.parametrize("rule", ["scale-count", "data-overlap"])
def test_a_reader_without_a_rule_is_caught_in_each_case_that_needs_it(script: Any, rule: str) -> None:
    results = list(conformance.run(script(READER, rule), rules=[rule]))
    wanted = {
        result.case["case"]: "pass" if without(result.case, rule) == result.case["verdict"] else "fail"
        for result in results
    }
    assert outcomes(results) == wanted
    assert set(wanted.values()) == {"pass", "fail"}
    assert {
        (result.wanted, result.got) for result in results if result.case["case"] == f"kiln-v2-{rule}"
    } == {(result.case["verdict"], "OK") for result in results if result.case["case"] == f"kiln-v2-{rule}"}


ANSWERS = {
    "print('OK')": ("pass", ""),
    "print(' OK ')": ("pass", ""),
    "print('ok')": ("fail", "ok"),
    "print('OK TYPE')": ("fail", "OK TYPE"),
    "print('\\x1b[2Jred')": ("fail", r"'\x1b[2Jred'"),
    "print('x' * 200)": ("fail", "x" * 79 + "…"),
    "pass": ("fail", "no output"),
    "raise ValueError('not today')": ("fail", "no output (ValueError: not today)"),
    "import sys; print('OK'); sys.exit(3)": ("crash", "exit status 3"),
    "import sys; sys.exit('two\\nlines')": ("fail", "no output (lines)"),
    "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)": ("crash", "signal SIGSEGV"),
    "import time; time.sleep(60)": ("timeout", "no answer in 2 s"),
    "while True: print('OK' * 100000)": ("timeout", "no answer in 2 s"),
}


@pytest.mark.parametrize("text", ANSWERS)
def test_an_answer_is_judged(script: Any, text: str) -> None:
    (result,) = conformance.run(script(text), cases=["kiln-v2-plain"], timeout=2)
    assert (result.outcome, result.got) == ANSWERS[text]


def test_a_child_that_keeps_the_pipe_does_not_keep_the_runner(script: Any) -> None:
    text = (
        "import subprocess, sys; print('OK', flush=True)\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(4)'])"
    )
    (result,) = conformance.run(script(text), cases=["kiln-v2-plain"])
    assert result.outcome == "pass"


def document(case: dict[str, Any], **changes: Any) -> str:
    entry = {name: case[name] for name in ("verdict", "num_tensors", "findings")}
    return json.dumps({"files": [{"path": "x", **entry, **changes}]})


CASE = next(case for case in conformance.load() if case["case"] == "kiln-v2-scale-count")
FINDING = CASE["findings"][0]
DOCUMENTS = {
    "right": (document(CASE, findings=[{**FINDING, "message": "mine"}]), "pass", ""),
    "verdict": (document(CASE, verdict="LENGTH"), "fail", "LENGTH"),
    "number": (document(CASE, num_tensors=2.0), "fail", "2.0"),
    "none": (document(CASE, findings=[]), "fail", "no further finding"),
    "place": (document(CASE, findings=[{**FINDING, "offset": 80}]), "fail", "offset=80"),
    "two": (document(CASE, findings=[FINDING, FINDING]), "fail", "rule="),
    "member": (document(CASE, findings=[{"rule": "scale-count"}]), "fail", "JSON without 'status'"),
    "files": ('{"files": []}', "fail", "no JSON of one file"),
    "word": ("TYPE", "fail", "no JSON of one file"),
    "list": ("[1]", "fail", "no JSON of one file"),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_is_judged(script: Any, name: str) -> None:
    text, outcome, got = DOCUMENTS[name]
    (result,) = conformance.run(script(f"print({text!r})"), json=True, cases=["kiln-v2-scale-count"])
    assert result.outcome == outcome
    assert got in result.got


def test_the_command_itself_passes_with_findings() -> None:
    reader = [sys.executable, "-m", "kiln_check", "check", "--format", "json", "{file}"]
    done = kiln("--json", "--quiet", "--rule", "magic", "--rule", "name-text", "--", *reader)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["rule", "cases", "pass", "fail", "crash", "timeout"]
    rules = [line[:16].strip() for line in lines[1:-2]]
    assert {"magic", "name-text"} < set(rules)
    assert rules == sorted(rules, key=[rule.name for rule in RULES].index)
    assert lines[-1].split()[:2] == ["all", "cases"]
    assert lines[-1].split()[2] == lines[-1].split()[3]


def test_the_command_shows_what_fails_and_a_summary(script: Any) -> None:
    done = kiln("--case", "kiln-v2-scale*t", "--", *script(READER, "scale-count"))
    assert done.returncode == 1
    assert "fail    kiln-v2-scale-count: wanted TYPE, got OK\n" in done.stdout
    assert "pass    kiln-v2-scale-first\n" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name the reader to run: kiln conformance -- COMMAND {file}"),
        (["--", "true"], "the command needs {file} where the path of a case shall stand"),
        (["--", "no-such-reader", "{file}"], "no-such-reader is no program that can be run"),
        (["--case", "nothing", "--", "true", "{file}"], "no case fits what --rule and --case ask for"),
        (["--timeout", "0", "--", "true", "{file}"], "0 is no time to wait"),
        (["--rule", "nothing", "--", "true", "{file}"], "invalid choice: 'nothing'"),
        (["true", "{file}"], "unrecognized arguments: true {file}"),
    ],
)
def test_bad_usage_is_one_line(arguments: list[str], message: str) -> None:
    done = kiln(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.startswith("kiln conformance: ")
    assert done.stderr.count("\n") == 1


def test_the_corpus_is_copied_whole(tmp_path: Path) -> None:
    target = tmp_path / "new" / "corpus"
    done = kiln("--copy", str(target))
    assert done.returncode == 0
    cases = conformance.load(target)
    assert {path.name for path in target.iterdir()} == {
        "README.md",
        "manifest.json",
        "manifest.schema.json",
        *(case["file"] for case in cases),
    }
    again = kiln("--copy", str(target))
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    assert "is there already" in again.stderr


def test_a_damaged_corpus_is_not_run(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    conformance.copy(corpus)
    path = corpus / "kiln-v2-plain.kiln"
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(ConformanceError, match=r"kiln-v2-plain\.kiln is not the file"):
        conformance.load(corpus)
    path.unlink()
    with pytest.raises(ConformanceError, match=r"kiln-v2-plain\.kiln can't be read"):
        conformance.load(corpus)
    (corpus / "manifest.json").write_text("[]")
    with pytest.raises(ConformanceError, match="no manifest of a corpus"):
        conformance.load(corpus)


def test_a_plain_check_does_not_import_the_runner() -> None:
    text = (
        "import sys, kiln_check.cli as cli; cli.main(['check', sys.argv[1]]); print(*sys.modules, sep='\\n')"
    )
    path = str(conformance.CORPUS / "kiln-v2-plain.kiln")
    done = subprocess.run([sys.executable, "-c", text, path], capture_output=True, text=True, check=True)
    assert "kiln_check.conformance" not in done.stdout.splitlines()
