"""A weight and its scale as their names pair them, and what may come of the pair."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from math import prod
from typing import NamedTuple

from kiln_check.checkpoints.checkpoint_rules import finding
from kiln_check.checkpoints.config import Hint
from kiln_check.checkpoints.formats.header import SourceTensor
from kiln_check.checkpoints.links import AnyName, Link, Unlinked
from kiln_check.constants import LARGEST_GROUP, LONGEST_DIMENSION
from kiln_check.report import Finding
from kiln_check.text import plural, quote

SWIZZLED_ROWS, SWIZZLED_COLUMNS = 128, 4
"""What scales are padded to where they are tiled for a tensor core."""

BLOCKS = "a scale for each block of rows and columns"
ZERO_POINTS = "zero points"
ONE_SCALE = "one scale for a matrix"
SWIZZLED = "a scale that is swizzled or padded"
PER_EXPERT = "an outer scale for each expert"
ACTIVATION_ORDER = "groups in activation order"
PART_WORDS = "rows that do not fill whole words"
IN_UNREAD_FILES = "its scale is in another file"
MISSING = "its scale is missing"
COUNT = "a count that is wrong"
SHARED = "a scale that two weights claim"
UNKNOWN = "no known convention"


Outcome = Link | Unlinked | None
"""None: the names pair them, but dtypes or shapes say that they are no such pair."""


class Pair(NamedTuple):
    """A weight and a scale whose names pair them.

    Attributes:
        weight: the one.
        scale: the other.
        base: what the two names have in common.
        hints: what a config says of the module.
        tensors: all of the checkpoint, by name.
        in_unread_files: names of tensors that are in files of the model that are not read.
        payload: reads the payload of a small tensor.

    """

    weight: SourceTensor
    scale: SourceTensor
    base: str
    hints: tuple[Hint, ...]
    tensors: Mapping[str, SourceTensor]
    in_unread_files: Container[str]
    payload: Callable[[SourceTensor], bytes]

    def sibling(self, suffix: str) -> SourceTensor | None:
        """The tensor of that suffix beside the two."""
        return self.tensors.get(self.base + suffix)

    def is_in_unread_files(self, suffix: str, ruled_out: bool = False) -> bool:
        """Whether the tensor of that suffix is in a file that is not read.

        Where nothing lists those files, any may be, unless a config rules it out.
        """
        if ruled_out and isinstance(self.in_unread_files, AnyName):
            return False
        name = self.base + suffix
        return name not in self.tensors and name in self.in_unread_files

    def of_method(self, *methods: str) -> tuple[Hint, ...]:
        """The hints that come from one of some tools."""
        return tuple(hint for hint in self.hints if hint.method in methods)

    def link(
        self,
        convention: str,
        dtype: str,
        shape: tuple[int, ...],
        group_size: int,
        scale_dtype: str | None = None,
        outer: SourceTensor | None = None,
    ) -> Link | Unlinked:
        """Link the two, unless the scale's shape shows an order of its own.

        A count that is plainly wrong is linked too: the rules say so.
        """
        if not shape or not 1 <= group_size <= LARGEST_GROUP:
            return self.unlinked(UNKNOWN, f"groups of {group_size} along the last axis of {list(shape)}")
        if max(shape) > LONGEST_DIMENSION:
            detail = f"{max(shape)} elements in a dimension; the most is {LONGEST_DIMENSION}"
            return self.unlinked(UNKNOWN, detail)
        order = own_order(self.scale.shape, grouped(shape, group_size))
        if order is not None:
            return self.unlinked(SWIZZLED, order)
        outer_name = None if outer is None else outer.name
        return Link(
            convention,
            convention,
            self.weight.name,
            self.scale.name,
            outer_name,
            dtype,
            shape,
            len(shape) - 1,
            group_size,
            scale_dtype or self.scale.type.dtype,
        )

    def unlinked(
        self, reason: str, detail: str = "", expected: int | None = None, working: str = ""
    ) -> Unlinked:
        """Leave the two apart; with `due`, find fault with a scale of another count."""
        fault = None
        if expected is not None and self.scale.num_elements != expected:
            message = (
                f"{quote(self.weight.name)} ({self.weight.text()}) needs {plural(expected, 'scale')}; "
                f"{quote(self.scale.name)} ({self.scale.text()}) has {self.scale.num_elements}"
            )
            fault = self.fault("scale-shape", message, self.scale, working)
        return Unlinked(self.weight.name, reason, detail, fault)

    def missing(self, what: str, name: str) -> Unlinked:
        """Leave the two apart and find fault: a tensor that the convention gives the weight is not there."""
        detail = f"there is no {quote(name)}"
        message = f"{quote(self.weight.name)} ({self.weight.text()}) has no {what}: {detail}"
        fault = self.fault("scale-missing", message, self.weight, field="name")
        return Unlinked(self.weight.name, MISSING, detail, fault)

    def wrong_dtype(self, convention: str, *expected: str) -> Unlinked:
        """Leave the two apart and find fault: the config names a convention with another scale dtype."""
        message = (
            f"{quote(self.scale.name)} is {self.scale.text()}; the config says {convention}, "
            f"whose scales are {' or '.join(expected)}"
        )
        fault = self.fault("scale-shape", message, self.scale, field="dtype")
        return Unlinked(self.weight.name, UNKNOWN, f"{self.scale.text()} is no scale of {convention}", fault)

    def fault(
        self, rule: str, message: str, at: SourceTensor, working: str = "", field: str = "shape"
    ) -> Finding:
        """A finding on the weight that shows where the header describes `at`."""
        return finding(
            rule,
            message,
            at.path,
            at.entry_offset,
            at.entry_length,
            name=self.weight.name,
            field=field,
            working=working or None,
            value=f"{quote(at.name)}: {at.text()}",
        )


def grouped(shape: Sequence[int], group_size: int) -> tuple[int, ...]:
    """The shape of scales that cover `group_size` elements each along the last axis."""
    return (*shape[:-1], -(-shape[-1] // group_size))


def doubled(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape in elements of bytes that hold two each."""
    return (*shape[:-1], shape[-1] * 2) if shape else ()


def own_order(found: Sequence[int], expected: Sequence[int]) -> str | None:
    """Why scales of the shape `found` are not in the order of rows and groups; None where they may be.

    `due` is the shape that they have in that order.
    """
    if _without_ones(found) == _without_ones(expected):
        return None
    text = f"it has the shape {list(found)}; in the order of rows and groups it would be {list(expected)}"
    if prod(found) == prod(expected):
        return text
    if len(expected) < 2 or not prod(expected):
        return None
    rows = {expected[-2], _up(expected[-2], SWIZZLED_ROWS)}
    columns = {expected[-1], _up(expected[-1], SWIZZLED_COLUMNS)}
    same_rank = len(found) == len(expected)
    if same_rank and tuple(found[:-2]) == tuple(expected[:-2]) and found[-2] in rows and found[-1] in columns:
        return text
    tiled = prod(expected[:-2]) * max(rows) * max(columns)
    return text if not same_rank and prod(found) == tiled else None


def _without_ones(shape: Sequence[int]) -> list[int]:
    return [length for length in shape if length != 1]


def _up(number: int, step: int) -> int:
    return -(-number // step) * step
