"""Modules of which no config tells: held to what alone fits them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from kiln_check.checkpoints.conventions.engine import (
    Fit,
    Members,
    Parameters,
    fit,
)
from kiln_check.checkpoints.conventions.registry import (
    bare_templates,
    tools,
)
from kiln_check.checkpoints.links import (
    AMBIGUOUS,
    IN_UNREAD_FILES,
    NOT_KNOWN,
)
from kiln_check.checkpoints.outcome import (
    BARE,
    PLAIN_SUFFIXES,
    SURE_SCALES,
    Elsewhere,
    Outcome,
    held_to,
    is_packed,
    is_scaled,
    may_be,
    nearest,
    reason_for_one,
)
from kiln_check.text import plural

ANY_SCALE = ".scale"
"""A suffix that tools give to their scales of which no template tells."""


MANY = 4
"""Tensors by whose suffixes together a module without a weight is known."""


def undeclared(members: Members, given: Parameters, elsewhere: Elsewhere) -> Outcome:
    """Hold a module that no config declares to what alone fits it.

    Without a config it is at fault only where no format of a tool that names tensors so, with whatever
    parameters, has such shapes.
    """
    fits = [
        fit(template, members, given, elsewhere)
        for suffix in members
        for template in bare_templates(suffix)
        if may_be(template, given) and members[suffix][0] in template.slots[0].dtypes.split()
    ]
    right = [one for one in fits if not one.faults and one.certain]
    if right:
        held = [held_to(one, members, elsewhere, given) for one in right]
        names = _one_of(one.template.name for one in right)
        if any(one.reason == IN_UNREAD_FILES for one in held):
            return Outcome(BARE, reason=IN_UNREAD_FILES, tool=names)
        if len({_stored(one) for one in held}) > 1:
            return Outcome(BARE, reason=AMBIGUOUS, tool=names)
        return held[0]._replace(tool=_one_of(one.template.tool for one in right), template=names)
    possible = [one for one in fits if not one.faults]
    if possible:
        return held_to(possible[0], members, elsewhere, given)
    if misshapen := _misshapen(fits, members):
        return held_to(nearest(misshapen, members), members, elsewhere, given)
    if fits or not _is_scale_alone(members):
        return Outcome(BARE, reason=NOT_KNOWN if is_scaled(members) else reason_for_one(members))
    return _unused(members, elsewhere)


def _one_of(names: Iterable[str]) -> str:
    """A name, or of several that can't be told apart how many there are."""
    first, *others = dict.fromkeys(names)
    return f"undeclared, as {first} or {plural(len(others), 'other')}" if others else first


def _misshapen(fits: Sequence[Fit], members: Members) -> list[Fit]:
    """Of modules whose names tell: the fits with wrong shapes alone, else those that all lack one tensor."""
    if not _is_telling(members) or not is_packed(members):
        return []
    misshapen = [one for one in fits if all(fault.kind == "shape" for fault in one.faults)]
    if misshapen:
        return misshapen
    near = [one for one in fits if all(fault.kind in ("shape", "missing") for fault in one.faults)]
    lacking = [{fault.suffix for fault in one.faults if fault.kind == "missing"} for one in near]
    one_tool = len({one.template.tool for one in fits}) == 1
    return near if near and (one_tool or set.intersection(*lacking)) else []


def _stored(outcome: Outcome) -> Hashable:
    """How Kiln stores a module; a group longer than a row is the row."""
    held = outcome.holding
    if held is None or held.hold is None:
        return None
    group = min(held.group_size, held.shape[held.axis])
    return held.hold.scale, held.hold.outer, held.hold.scale_dtype, held.dtype, held.shape, held.axis, group


def _is_telling(members: Members) -> bool:
    """Whether a module has a tensor by whose suffix alone it is quantized."""
    return any(suffix not in PLAIN_SUFFIXES and suffix != ANY_SCALE for suffix in members)


def _is_scale_alone(members: Members) -> bool:
    is_sure = any(suffix in SURE_SCALES for suffix in members) or len(members) >= MANY
    return is_sure and not any(bare_templates(suffix) for suffix in members)


def _unused(members: Members, elsewhere: Elsewhere) -> Outcome:
    """A scale without a weight."""
    templates = [
        template
        for tool in tools()
        for template in tool.templates
        if all(any(slot.suffix == suffix for slot in template.slots) for suffix in members)
    ]
    if not templates or any(template.slots[0].suffix in elsewhere for template in templates):
        return Outcome(BARE)
    found = nearest([fit(one, members, {}) for one in templates], members)
    weight = found.template.slots[0].suffix
    lost = tuple(fault for fault in found.faults if fault.suffix == weight)
    return held_to(found._replace(faults=lost), members, elsewhere, {})
