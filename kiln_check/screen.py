"""Proves most of a directory sound, so that the rules need not look at it.

The screen only clears. A tensor that it can't prove sound by all rules for tensors
is unverified, which says nothing about it: the rules judge it. Tensors that share a name,
or bytes of payload that are not one and the same range, are both unverified.

The screen asks the rules' own predicates of columns in NumPy, for directories that are
large enough for it to pay. In a smaller one the rules look at every tensor.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from kiln_check.directory import Directory

COLUMNS_FROM = 25
"""Tensors of a directory from which NumPy is faster once it is loaded (docs/performance.md)."""

LOAD_NUMPY_FROM = 5_000
"""Tensors, of all such directories so far, from which loading NumPy pays (docs/performance.md)."""

_without_numpy = 0


def unverified(directory: Directory) -> Sequence[int] | None:
    """The tensors of a directory that are not proved sound, ascending; None for all of them."""
    if not directory.whole or not _columns_pay(directory.fields["num_tensors"]):
        return None
    from kiln_check import screen_columns

    return screen_columns.unverified(directory)


def _columns_pay(num_tensors: int) -> bool:
    global _without_numpy
    if num_tensors < COLUMNS_FROM:
        return False
    if "numpy" in sys.modules:
        return True
    _without_numpy += num_tensors
    return _without_numpy >= LOAD_NUMPY_FROM
