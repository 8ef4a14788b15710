"""The screen's proof that payloads share no byte."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Column: TypeAlias = "NDArray[Any]"


def overlapping(start: Column, end: Column) -> Column:
    """Indexes of the payloads that share a byte with another, on both sides.

    One and the same range is no overlap.

    Ranges are disjoint if, starts and ends each sorted, every start is at or after the
    end before it: were two to share a byte, at least two more ranges had begun than
    ended there.

    Args:
        start: where each payload starts, in bytes; 0 for one that shares nothing.
        end: where it ends, likewise.

    """
    present = end != 0
    if not present.all():
        start, end = start[present], end[present]
    if _ascending(start, end) or _ascending(np.sort(start), np.sort(end)):
        return np.empty(0, np.int64)
    order = np.argsort(start)
    start, end = start[order], end[order]
    first = np.flatnonzero(np.concatenate(([True], start[1:] != start[:-1])))
    starts, longest = start[first], np.maximum.reduceat(end, first)
    overlapping = longest != np.minimum.reduceat(end, first)
    overlapping[1:] |= starts[1:] < np.maximum.accumulate(longest)[:-1]
    overlapping[:-1] |= longest[:-1] > starts[1:]
    of_each = np.repeat(overlapping, np.diff(first, append=len(start)))
    unverified: Column = np.flatnonzero(present)[order[of_each]]
    return unverified


def _ascending(start: Column, end: Column) -> bool:
    return bool((start[1:] >= end[:-1]).all())
