"""What must hold for any file: sound ones are OK, and a fault gives the rule that was broken."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kiln_check import check
from kiln_check.constants import LONGEST_KEPT_NAME
from kiln_check.report import OK
from kiln_check.rules import RULES
from tests.strategies import FAULTS, broken_files, sound_files
from tools.corpus.layout import File, Tensor

ORDER = [rule.name for rule in RULES]


@given(sound_files())
def test_a_sound_file_is_ok(file: File) -> None:
    report = check(bytes(file))
    assert report.findings == ()
    assert report.verdict == OK
    assert report.num_tensors == len(file.descriptors)


@pytest.mark.parametrize("rule", ORDER)
@settings(max_examples=settings().max_examples // 3 + 1)
@given(data=st.data())
def test_a_fault_gives_the_rule_that_was_broken(rule: str, data: st.DataObject) -> None:
    file = data.draw(sound_files())
    among, apply = FAULTS[rule]
    assume(among is None or among(file))
    tensor = apply(data.draw, file)
    report = check(bytes(file))
    assert (rule, tensor) in {(finding.rule, finding.tensor) for finding in report.findings}
    assert report.verdict != OK


@given(broken_files(faults=3))
def test_the_verdict_is_the_status_of_the_first_rule_in_the_tables_order(
    broken: tuple[File, list[tuple[str, int | None]]],
) -> None:
    report = check(bytes(broken[0]))
    places = [
        (ORDER.index(finding.rule), -1 if finding.tensor is None else finding.tensor)
        for finding in report.findings
    ]
    assert places == sorted(set(places))
    assert report.verdict == (report.findings[0].status if report.findings else OK)


@pytest.mark.parametrize("length", [LONGEST_KEPT_NAME, LONGEST_KEPT_NAME + 1, 65535])
def test_long_names_are_told_apart_by_every_byte(length: int) -> None:
    name = "n" * length
    file = File(Tensor(name, "u8", ()), Tensor(name[:-1] + "o", "u8", ()), Tensor(name, "u8", ()))
    file.set(1, group_size=1)
    findings = [(finding.rule, finding.tensor) for finding in check(bytes(file)).findings]
    assert findings == [("name-unique", 2), ("scheme-none", 1)]


@given(sound_files(), st.data())
def test_check_never_raises_on_a_file_with_any_bytes_changed(file: File, data: st.DataObject) -> None:
    raw = bytearray(bytes(file))
    for _ in range(data.draw(st.integers(1, 8))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(raw)))
    check(bytes(raw[:end]))


@given(st.binary(max_size=300))
def test_check_never_raises_on_any_bytes(raw: bytes) -> None:
    assert not check(raw).ok
