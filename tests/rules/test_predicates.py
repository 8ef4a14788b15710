"""A predicate says the same of columns as of exact integers, since nothing in it can wrap unproved."""

from __future__ import annotations

from typing import Any

import pytest

from kiln_check.generated.kiln_v2_records import DESCRIPTOR
from kiln_check.rules import RULES, Rule
from kiln_check.rules.measures import expected_bytes, expected_scales

RULES_ON_COLUMNS = [rule for rule in RULES if rule.for_tensor and rule.on_columns]

PROVED = ("count", "blocks", "axis_length")
"""What `Columns.sure` is about: sums and products of these do not wrap where it says so."""


class Truth:
    """What a comparison gives."""

    def __and__(self, other: Truth) -> Truth:
        assert isinstance(other, Truth)
        return self

    __or__ = __and__

    def __bool__(self) -> bool:
        raise AssertionError("a predicate branches, which no column can")


class Number:
    """A number of a tensor: as wide as its field, unless it is proved to have room in 64 bits."""

    def __init__(self, proved: bool = False) -> None:
        self.proved = proved

    def _compared(self, other: Number | int) -> Truth:
        assert isinstance(other, (Number, int))
        return Truth()

    __lt__ = __le__ = __gt__ = __ge__ = _compared
    __eq__ = __ne__ = _compared  # type: ignore[assignment]

    def _grown(self, other: Number | Truth | int) -> Number:
        proved = self.proved or (isinstance(other, Number) and other.proved)
        assert proved or isinstance(other, Truth), "a sum or product of fields may wrap"
        return Number(proved)

    __add__ = __radd__ = __mul__ = __rmul__ = _grown

    def _shrunk(self, other: Number | int) -> Number:
        return Number(self.proved or (isinstance(other, Number) and other.proved))

    __sub__ = __rsub__ = __floordiv__ = __mod__ = __and__ = __or__ = _shrunk


class File:
    """Its numbers are exact."""

    num_tensors = len_names = len_file = end_of_names = 1


class Tensor:
    """A tensor of which only the fields of the record and what `Row` makes of them can be asked."""

    def __init__(self) -> None:
        self.file = File()
        self.index = Number()
        self.shape_tail = Number()
        self.dtype_is_listed = Truth()

    def __getattr__(self, name: str) -> Any:
        if name in ("scale", "outer"):
            return Tensor()
        if name in PROVED:
            return Number(proved=True)
        if name in ("expected_bytes", "expected_scales"):
            return {"expected_bytes": expected_bytes, "expected_scales": expected_scales}[name](self)
        assert name in DESCRIPTOR["names"], name
        return Number()


@pytest.mark.parametrize("rule", RULES_ON_COLUMNS, ids=lambda rule: rule.name)
def test_a_predicate_compares_and_adds_up_only_what_is_proved(rule: type[Rule]) -> None:
    assert isinstance(rule.holds(Tensor()), Truth)
    assert rule.applies is None or isinstance(rule.applies(Tensor()), Truth)


def test_all_but_the_rules_that_compare_all_names_or_payloads_run_on_columns() -> None:
    others = [rule.name for rule in RULES if rule.for_tensor and rule not in RULES_ON_COLUMNS]
    assert others == ["name-text", "name-unique", "data-overlap"]
