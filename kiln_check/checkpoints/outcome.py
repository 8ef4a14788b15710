"""What comes of modules when they are held to templates."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kiln_check.checkpoints.conventions.engine import (
    COMPANION_SLOTS,
    Fault,
    Fit,
    Holding,
    Members,
    Parameters,
    holding,
    is_expected,
)
from kiln_check.checkpoints.conventions.registry import (
    weight_suffixes,
)
from kiln_check.checkpoints.conventions.template import (
    Hold,
    Template,
)
from kiln_check.checkpoints.links import (
    FAULTY,
    IN_UNREAD_FILES,
    UNSAID,
)
from kiln_check.checkpoints.modules import Module
from kiln_check.report import Finding

EXTRAS = frozenset(slot.suffix for slot in COMPANION_SLOTS)
"""Suffixes of tensors that a module of any format may have besides."""

PLAIN_SUFFIXES = frozenset(("", ".weight", *EXTRAS))
"""Suffixes of modules that are not quantized."""


PACKED = frozenset(
    ("U8", "I8", "U32", "I32", "F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F4", "F6_E2M3", "F6_E3M2")
)
"""Dtypes of weights that are quantized."""


SURE_SCALES = (
    *(".weight_scale", ".weight_scale_inv", ".weight_scale_2", ".weight_global_scale"),
    *("_weight_scale", "_weight_scale_2"),
)
"""Suffixes that only a scale has."""


class Outcome(NamedTuple):
    """What is made of all modules of one signature.

    Attributes:
        sort: what siblings have in common: "plain", or tool and format, or what was declared.
        fit: the template's that the module was held to; None where it was held to none.
        holding: how Kiln stores it.
        faults: how it differs from the template.
        reason: why it was held to none.
        tool: the tool, where it is known.
        template: names of the templates that fit, where it is not the one of `fit`.
        finding: words a finding on a module that no template tells of.
        lengths: of the weight in elements, where they are known.
        bare: whether no config declares the module.

    """

    sort: str
    fit: Fit | None = None
    holding: Holding | None = None
    faults: tuple[Fault, ...] = ()
    reason: str | None = None
    tool: str | None = None
    template: str | None = None
    finding: Callable[[Module], Finding] | None = None
    lengths: tuple[int, ...] | None = None
    bare: bool = False


PLAIN = Outcome("plain")


BARE = "bare"
"""The sort of modules of which no config tells."""


@dataclass(frozen=True)
class Elsewhere(Container[str]):
    """Tensors of a module in files that are not read.

    Attributes:
        suffixes: of them.
        is_named: whether an index names them; else they may be there.

    """

    suffixes: frozenset[str]
    is_named: bool

    def __contains__(self, suffix: object) -> bool:
        return suffix in self.suffixes


NOWHERE = Elsewhere(frozenset(), True)


def is_plain(members: Members) -> bool:
    weight = members.get(".weight", members.get("", ("F32", ())))
    return weight[0] not in PACKED and all(suffix in PLAIN_SUFFIXES for suffix in members)


def is_packed(members: Members) -> bool:
    """Whether a module has a weight of a dtype that quantized weights have."""
    return any(suffix in members and members[suffix][0] in PACKED for suffix in weight_suffixes())


def reason_for_one(members: Members) -> str | None:
    """Why a packed matrix with nothing beside it is not verified; None where there is no such matrix."""
    matrices = (members[suffix] for suffix in weight_suffixes() if suffix and suffix in members)
    return UNSAID if any(dtype in PACKED and len(shape) > 1 for dtype, shape in matrices) else None


def is_scaled(members: Members) -> bool:
    """Whether a module has a packed weight and something beside it."""
    return len(members) > 1 and is_packed(members)


def may_be(template: Template, parameters: Parameters) -> bool:
    return all(parameters.get(name, value) == value for name, value in template.only.items())


def nearest(fits: Sequence[Fit], members: Members) -> Fit:
    """The fit with the fewest faults, those of the weight counting twice; of equals a certain one."""

    def distance(found: Fit) -> tuple[int, bool, int]:
        weight = found.template.slots[0].suffix
        of_weight = sum(2 if one.suffix == weight else 1 for one in found.faults)
        return of_weight, not found.certain, -sum(slot.suffix in members for slot in found.template.slots)

    return min(fits, key=distance)


def held_to(found: Fit, members: Members, elsewhere: Elsewhere, parameters: Parameters) -> Outcome:
    template = found.template
    sort = template.name
    if found.faults:
        return Outcome(sort, fit=found, faults=found.faults, tool=template.tool, reason=FAULTY)
    lengths = _lengths(found)
    if not found.certain:
        return Outcome(sort, reason=UNSAID, tool=template.name, lengths=lengths)
    if _is_apart(found, members, elsewhere, parameters):
        return Outcome(sort, fit=found, reason=IN_UNREAD_FILES, tool=template.tool, lengths=lengths)
    return Outcome(sort, fit=found, holding=holding(found, members), tool=template.tool, lengths=lengths)


def _lengths(found: Fit) -> tuple[int, ...] | None:
    """The weight's lengths in elements."""
    rows, columns, experts = (found.values.get(name) for name in ("N", "K", "E"))
    if not isinstance(rows, int) or not isinstance(columns, int):
        return None
    return (*(experts if isinstance(experts, tuple) else ()), rows, columns)


def _is_apart(found: Fit, members: Members, elsewhere: Elsewhere, parameters: Parameters) -> bool:
    """Whether a tensor that decides how Kiln stores the module may be, or is, in another file."""
    hold = found.template.holds
    deciding = {slot.suffix for slot in found.template.slots if not slot.when}
    if isinstance(hold, Hold):
        deciding |= {suffix for suffix, _ in hold.unless}
    return any(
        slot.suffix in deciding
        and slot.suffix not in members
        and (elsewhere.is_named or is_expected(slot, parameters) is not False)
        and slot.suffix in elsewhere
        for slot in found.template.slots
    )
