"""Overlaps, found in one pass, against every pair."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from kiln_check import check
from tools.corpus.layout import File, Tensor

RANGES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 300)), min_size=1, max_size=8)
"""(which multiple of 64 after the head, length in bytes) of each payload."""


def overlapping(ranges: list[tuple[int, int]]) -> list[int]:
    """The payloads that share a byte with one earlier in the order (ofs_data, index)."""
    order = sorted((start, index, length) for index, (start, length) in enumerate(ranges) if length)
    found = set()
    for place, (start, index, length) in enumerate(order):
        for earlier_start, _, earlier_length in order[:place]:
            same = (earlier_start, earlier_length) == (start, length)
            if not same and start < earlier_start + earlier_length:
                found.add(index)
    return sorted(found)


@given(RANGES)
@example([(0, 3), (0, 2), (0, 3)])
@example([(0, 300), (1, 1), (2, 1), (2, 1)])
def test_the_overlaps_are_those_of_every_pair(places: list[tuple[int, int]]) -> None:
    file = File(*(Tensor(f"t{index}", "u8", (length,)) for index, (_, length) in enumerate(places)))
    head = -(-(file.size - len(file.data)) // 64) * 64
    ranges = [(head + 64 * start, length) for start, length in places]
    for index, (start, length) in enumerate(ranges):
        file.set(index, ofs_data=start, len_data=length)
    file.append(bytes(64 * 10 + 300)).honest()
    findings = check(bytes(file)).findings
    assert {finding.rule for finding in findings} <= {"data-overlap"}
    assert [finding.tensor for finding in findings] == overlapping(ranges)
