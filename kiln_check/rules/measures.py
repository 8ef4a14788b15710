"""What the rules measure of a tensor, besides its fields."""

from __future__ import annotations

from math import prod
from typing import Any

from kiln_check.constants import WIDTH
from kiln_check.rules.rule import Subject


def element_count(tensor: Any) -> int:
    """Number of elements: the product of the dimensions, 1 where there are none; exact."""
    return prod(tensor.shape[: tensor.rank])


def element_bits(t: Subject) -> Any:
    """Return the width of an element in bits."""
    return t.dtype & WIDTH


def expected_bytes(t: Subject) -> Any:
    """Return the bytes that a payload takes, ceil(count · bits / 8), or the blocks of a foreign one.

    Elements of foreign have no width, and no other dtype has blocks: one of the two
    summands is 0.
    """
    return (t.count * element_bits(t) + 7) // 8 + t.blocks * t.block_bytes


def expected_scales(t: Subject) -> Any:
    """Return ceil(shape[axis] / group_size) times the other dimensions (layout page, scale-count).

    An axis without elements has no groups, and then whatever is taken for the product
    of the other dimensions, the result is 0.
    """
    groups = (t.axis_length + t.group_size - 1) // at_least_1(t.group_size)
    return t.count // at_least_1(t.axis_length) * groups


def at_least_1(number: Any) -> Any:
    """Return the number, or 1 for 0, to divide by where no rule relies on the quotient."""
    return number + (number == 0)
