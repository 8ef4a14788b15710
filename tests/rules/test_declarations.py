"""The rules as they are declared, against the table of the layout page."""

from __future__ import annotations

import re
from collections import Counter
from inspect import cleandoc
from typing import NamedTuple

import pytest

from kiln_check.explain import explanation
from kiln_check.generated.kiln_v2_records import PAGE_NAMES
from kiln_check.rules import RULES, Rule
from kiln_check.rules.rule import DIRECTORY
from tests.places import ROOT

PAGE = (ROOT / "docs" / "kiln-v2-layout.md").read_text("utf-8")

WHOLE_HEADER = "size ≥ 64"
"""What the page says version needs besides rules: a File whose header is cut short has no version."""


class Row(NamedTuple):
    """A row of the page's table, as it is written there."""

    number: str
    name: str
    status: str
    field: str
    broken_when: str
    needs: str


TABLE = [
    Row(*(cell.strip() for cell in line.strip("|").split("|")))
    for line in re.findall(r"^\| \d+ \|.*\|$", PAGE, re.MULTILINE)
    if line.count("|") == len(Row._fields) + 1
]

EACH = pytest.mark.parametrize(
    ("row", "rule"), list(zip(TABLE, RULES, strict=True)), ids=[row.name for row in TABLE]
)


def needs_of(text: str) -> Counter[tuple[str, str]]:
    """The needs in a cell of the page, each with the tensor that it is about: "own", "scale" or "outer"."""
    found: Counter[tuple[str, str]] = Counter()
    for part in text.split(";"):
        names, of, whom = part.partition(" of ")
        for name in filter(None, map(str.strip, names.split(","))):
            tensors = {"": ["own"], "both": ["own", "scale"], "the outer": ["outer"]}[whom if of else ""]
            found.update((name, tensor) for tensor in tensors)
    return found


def declared_needs(rule: type[Rule]) -> Counter[tuple[str, str]]:
    return Counter(
        [(name, "own") for name in rule.needs]
        + [(name, "scale") for name in rule.of_scale]
        + [(name, "outer") for name in rule.of_outer]
    )


@EACH
def test_number_name_and_status_are_those_of_the_page(row: Row, rule: type[Rule]) -> None:
    assert (row.number, row.name, row.status) == (str(RULES.index(rule) + 1), rule.name, rule.status)


@EACH
def test_the_field_is_that_of_the_page(row: Row, rule: type[Rule]) -> None:
    """Where the page says which of several fields, the declared one is among them."""
    field = PAGE_NAMES.get(rule.field, rule.field)
    if row.field == "the first nonzero entry":
        assert field == "shape"
    else:
        assert field in re.findall(r"\w+", row.field)


@EACH
def test_the_needs_are_those_of_the_page(row: Row, rule: type[Rule]) -> None:
    needs = needs_of(row.needs)
    if rule.name == "version":
        needs -= Counter([(WHOLE_HEADER, "own")])
    if rule.name == "data-overlap":  # the payload that it is compared with is in range too
        needs -= Counter([("data-range", "scale")])
    assert needs == declared_needs(rule)


def test_the_page_names_every_need() -> None:
    names = {rule.name for rule in RULES} | {DIRECTORY, WHOLE_HEADER}
    assert {name for row in TABLE for name, _ in needs_of(row.needs)} <= names
    assert sum(bool(needs_of(row.needs)) for row in TABLE) == len(RULES) - 1


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_says_when_it_holds_and_what_is_wrong(rule: type[Rule]) -> None:
    assert rule.__abstractmethods__ == frozenset()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_what_a_rule_needs_comes_before_it(rule: type[Rule]) -> None:
    before = [other.name for other in RULES[: RULES.index(rule)]]
    assert {name for name, _ in declared_needs(rule)} <= {*before, DIRECTORY}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_kiln_rules_prints_the_declaration(rule: type[Rule]) -> None:
    assert rule.__doc__ is not None
    text = explanation(rule.name)
    assert text is not None
    assert cleandoc(rule.__doc__) in text
    for name, tensor in declared_needs(rule):
        assert (name if tensor == "own" else f"{name} of the {tensor}") in text.partition("needs ")[2]
