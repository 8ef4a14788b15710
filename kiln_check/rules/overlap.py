"""Which payloads share bytes with others."""

from __future__ import annotations

from collections.abc import Iterable


def overlaps(payloads: Iterable[tuple[int, int, int]]) -> dict[int, int]:
    """For each payload that shares a byte with one earlier in the order (ofs_data, index), such a one.

    Of payloads that start at the same byte, those of one length are one payload
    (layout page, "Rules").

    Args:
        payloads: (ofs_data, index, len_data) of each, in bytes; none is empty.

    """
    found: dict[int, int] = {}
    reach, reacher = 0, -1  # the furthest end of payloads that start at an earlier byte
    start, start_reach, start_reacher = -1, 0, -1
    first_length, first, unlike_first = 0, -1, -1
    for ofs_data, index, len_data in sorted(payloads):
        if ofs_data != start:
            if start_reach > reach:
                reach, reacher = start_reach, start_reacher
            start, start_reach, start_reacher = ofs_data, 0, -1
            first_length, first, unlike_first = len_data, index, -1
        if reach > ofs_data:
            found[index] = reacher
        elif len_data != first_length:
            found[index] = first
        elif unlike_first >= 0:
            found[index] = unlike_first
        if len_data != first_length and unlike_first < 0:
            unlike_first = index
        if ofs_data + len_data > start_reach:
            start_reach, start_reacher = ofs_data + len_data, index
    return found
