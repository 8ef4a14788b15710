"""The corpus: complete, equal to what its cases make, small, and traceable to both pages."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.conformance.boundaries import BOUNDARIES, WHOLE, Boundary
from tests.conformance.measures import Measures, measure
from tests.places import ROOT

CORPUS = ROOT / "tests" / "corpus"
MANIFEST: dict[str, Any] = json.loads((CORPUS / "manifest.json").read_text())
CASES: dict[str, dict[str, Any]] = {case["case"]: case for case in MANIFEST["cases"]}
LIMIT = 1 << 20

LAYOUT_PAGE = (ROOT / "docs" / "kiln-v2-layout.md").read_text()
RULES = dict(re.findall(r"^\| \d+ \| ([a-z-]+) \| ([A-Z]+) \|", LAYOUT_PAGE, re.MULTILINE))
"""The status of each rule, in the layout page's order."""

PAIRS = list(zip(RULES, list(RULES)[1:], strict=False))
"""Neighbours in the table of rules."""


def rules_of(case: dict[str, Any]) -> list[str]:
    return [finding["rule"] for finding in case["findings"]]


def raw_of(case: dict[str, Any]) -> bytes:
    return (CORPUS / str(case["file"])).read_bytes()


@pytest.fixture(scope="session")
def measured() -> dict[str, tuple[Measures, list[Measures]]]:
    return {name: measure(raw_of(case)) for name, case in CASES.items()}


# Completeness


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_has_a_case_that_breaks_it_alone(rule: str) -> None:
    case = CASES[f"kiln-v2-{rule}"]
    assert rules_of(case) == [rule]
    assert case["verdict"] == RULES[rule]
    assert CASES[case["differs_from"]]["verdict"] == "OK"


PAGE_CASES = {
    "kiln-v2-scales": ("OK", [("e2m1", (32,)), ("e8m0", (1,))], 32, b"\x7f"),
    "kiln-v2-scales-outer": ("OK", [("e2m1", (16,)), ("f8e4m3", (1,)), ("f32", (1,))], 16, None),
    "kiln-v2-scale-count": ("TYPE", [("e2m1", (32,)), ("e8m0", (2,))], 32, None),
}
"""The quantization page's: verdict, dtype and shape of each tensor, group size, the scale's bytes."""


@pytest.mark.parametrize("name", PAGE_CASES)
def test_the_cases_of_the_quantization_page_are_as_it_says(name: str) -> None:
    verdict, types, group_size, scale_bytes = PAGE_CASES[name]
    raw = raw_of(CASES[name])
    _, tensors = measure(raw)
    assert CASES[name]["verdict"] == verdict
    assert [(tensor["type"], tensor["dims"]) for tensor in tensors] == types
    assert tensors[0]["group_size"] == group_size
    assert [tensor["scheme"] for tensor in tensors] == [len(types) - 1] + [0] * (len(types) - 1)
    scale = tensors[tensors[0]["scale_index"]]
    if scale_bytes is not None:
        assert raw[scale["ofs_data"] :][: scale["len_data"]] == scale_bytes


def meets(boundary: Boundary, case: dict[str, Any], whole: Measures, tensors: list[Measures]) -> bool:
    """Whether a case has what the boundary asks for, in its bytes and in its findings."""
    if boundary.rule is None:
        if case["verdict"] != "OK":
            return False
    elif boundary.alone and set(rules_of(case)) != {boundary.rule}:
        return False
    at_fault = [finding["tensor"] for finding in case["findings"] if finding["rule"] == boundary.rule]
    for index, tensor in enumerate(tensors):
        if boundary.rule is not None and not boundary.in_unread_files and index not in at_fault:
            continue
        if all(tensor.get(name, ...) == value for name, value in boundary.values.items()):
            return True
    if boundary.values.keys() <= whole.keys() and (boundary.rule is None or None in at_fault):
        return all(whole[name] == value for name, value in boundary.values.items())
    return False


@pytest.mark.parametrize("boundary", [*WHOLE, *BOUNDARIES], ids=str)
def test_a_boundary_has_a_case(
    boundary: Boundary, measured: dict[str, tuple[Measures, list[Measures]]]
) -> None:
    assert [name for name, case in CASES.items() if meets(boundary, case, *measured[name])]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_neighbours_in_the_table_are_broken_together(first: str, second: str) -> None:
    """The earlier rule of the table gives the verdict, though a later tensor breaks it."""
    wanted = [first, second] if second not in ("version", "file-length") else [first]
    order = list(RULES)
    case = CASES[f"kiln-v2-order-{order.index(first) + 1}-{order.index(second) + 1}"]
    assert rules_of(case) == wanted
    assert case["verdict"] == RULES[first]
    tensors = [finding["tensor"] for finding in case["findings"]]
    assert tensors == sorted(tensors, key=lambda tensor: -1 if tensor is None else -tensor)


def test_every_dtype_is_in_a_sound_file(measured: dict[str, tuple[Measures, list[Measures]]]) -> None:
    table = LAYOUT_PAGE.split("### dtype")[1].split("`foreign` is for")[0]
    dtypes = set(re.findall(r"\| 0x[0-9a-f]{4} \| (\w+) ", table))
    assert len(dtypes) == 26
    sound = [name for name, case in CASES.items() if case["verdict"] == "OK"]
    assert dtypes == {tensor["type"] for name in sound for tensor in measured[name][1]}


# The manifest


def test_the_manifest_is_valid_by_its_schema() -> None:
    schema = json.loads((CORPUS / "manifest.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(MANIFEST, schema, jsonschema.Draft202012Validator)


def test_the_manifest_names_every_file_with_its_hash() -> None:
    assert {case["file"] for case in CASES.values()} == {path.name for path in CORPUS.glob("*.kiln")}
    for case in CASES.values():
        assert hashlib.sha256(raw_of(case)).hexdigest() == case["sha256"], case["case"]


def test_ids_are_given_once_and_retired_ones_stay_away() -> None:
    names = [case["case"] for case in MANIFEST["cases"]] + MANIFEST["retired"]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", CASES)
def test_an_entry_agrees_with_itself(name: str) -> None:
    case = CASES[name]
    order = [
        (list(RULES).index(f["rule"]), -1 if f["tensor"] is None else f["tensor"]) for f in case["findings"]
    ]
    assert order == sorted(set(order))
    assert all(finding["status"] == RULES[finding["rule"]] for finding in case["findings"])
    assert case["verdict"] == (case["findings"][0]["status"] if case["findings"] else "OK")
    if case["verdict"] == "OK":
        assert case["differs_from"] is None
    else:
        assert CASES[case["differs_from"]]["verdict"] == "OK"
        assert raw_of(case) != raw_of(CASES[case["differs_from"]])


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case["verdict"] != "OK"])
def test_a_broken_case_is_close_to_its_twin(name: str) -> None:
    """One finding takes at most one shape of two dimensions, or all that an unjudged rule could say."""
    raw, twin = raw_of(CASES[name]), raw_of(CASES[CASES[name]["differs_from"]])
    if name != "kiln-v2-magic-text":
        different = sum(one != other for one, other in zip(raw, twin, strict=False))
        assert different <= (4 if name.removeprefix("kiln-v2-") in RULES else 20)


def test_the_corpus_is_small() -> None:
    files = [path for path in CORPUS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < LIMIT


def test_payloads_are_not_all_zero() -> None:
    for name, case in CASES.items():
        whole, tensors = measure(raw_of(case))
        if case["verdict"] == "OK":
            for tensor in tensors:
                payload = raw_of(case)[tensor["ofs_data"] :][: tensor["len_data"]]
                assert payload.strip(b"\0") or not payload, (name, whole)


# Drift


def build(corpus: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / "build_corpus.py"), "--corpus", str(corpus), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_corpus_is_as_its_cases_make_it() -> None:
    done = build(CORPUS, "--check")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(CORPUS, tmp_path / "corpus"))


def test_drift_is_told_and_mended(copy: Path) -> None:
    changed, missing, extra = (
        copy / "kiln-v2-scales.kiln",
        copy / "kiln-v2-plain.kiln",
        copy / "kiln-v2-more.kiln",
    )
    changed.write_bytes(changed.read_bytes()[:-1] + b"\x80")
    missing.unlink()
    extra.write_bytes(b"")
    manifest = copy / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"OK"', '"TYPE"', 1))
    before = {path.name: path.read_bytes() for path in copy.iterdir()}

    done = build(copy, "--check")
    assert done.returncode == 1
    assert set(done.stdout.splitlines()) == {
        "kiln-v2-plain.kiln: missing",
        "kiln-v2-scales.kiln: changed",
        "manifest.json: changed",
        "kiln-v2-more.kiln: no case makes it",
    }
    assert {path.name: path.read_bytes() for path in copy.iterdir()} == before

    assert build(copy).returncode == 0
    assert build(copy, "--check").returncode == 0


# Traceable


PAGE = (ROOT / "docs" / "page-to-rules.md").read_text()


def paragraphs() -> Iterator[tuple[str, str, list[str]]]:
    """Each list of cases of the page: (the rule whose section it is in, its kind, the cases)."""
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        title = section.splitlines()[0].split(" ")[0]
        for kind, names in re.findall(
            r"^(Failing|Passing|Cases): (.*?)\.$", section, re.MULTILINE | re.DOTALL
        ):
            yield title, kind, re.findall(r"`([^`]+)`", names)


def test_the_page_has_every_rule_in_order() -> None:
    titles = re.findall(r"^## (\S+) \(([A-Z]+)\)$", PAGE, re.MULTILINE)
    assert titles == list(RULES.items())


def test_the_page_names_every_case_and_no_other() -> None:
    named = {name for _, _, names in paragraphs() for name in names}
    assert named == set(CASES)


def test_the_page_says_failing_and_passing_of_each_rule_as_it_is() -> None:
    kinds: dict[str, set[str]] = {rule: set() for rule in RULES}
    for title, kind, names in paragraphs():
        for name in names:
            broken = title in rules_of(CASES[name])
            assert kind == "Cases" or broken == (kind == "Failing"), (title, kind, name)
        if title in kinds:
            kinds[title].add(kind)
    assert all(found >= {"Failing", "Passing"} for found in kinds.values()), kinds


def test_the_page_puts_every_failing_case_under_its_verdict_or_an_order() -> None:
    listed = {(title, name) for title, kind, names in paragraphs() for name in names if kind == "Failing"}
    anywhere = {name for title, kind, names in paragraphs() if kind == "Cases" for name in names}
    for name, case in CASES.items():
        assert case["verdict"] == "OK" or name in anywhere or (rules_of(case)[0], name) in listed, name
