"""Holds a module to a template: gives N, K and the parameters values, and compares each tensor exactly."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import product
from typing import Literal, NamedTuple, TypeAlias

from kiln_check.checkpoints.conventions.shapes import (
    Shape,
    Value,
    Values,
    number,
    parse,
    possible,
    solve,
    unknown,
    working,
)
from kiln_check.checkpoints.conventions.template import (
    FLOATS,
    OPTIONAL,
    PART_WORDS,
    Hold,
    Slot,
    Template,
)
from kiln_check.generated.kiln_v2_records import DTYPES

Members: TypeAlias = "Mapping[str, tuple[str, tuple[int, ...]]]"
"""Dtype and shape of each tensor of a module, by suffix."""

Parameters: TypeAlias = "Mapping[str, Value | bool]"

COMPANION_SLOTS = (
    *(Slot(suffix, FLOATS, "[*E, N]", OPTIONAL) for suffix in (".bias", "_bias")),
    *(
        Slot(suffix, FLOATS, "[] | [1]", OPTIONAL)
        for suffix in (
            ".input_scale",
            ".activation_scale",
            ".output_scale",
            ".q_scale",
            ".k_scale",
            ".v_scale",
            ".kv_scale",
            ".prob_scale",
        )
    ),
    *(Slot(suffix, FLOATS, "[*A]", OPTIONAL) for suffix in ("_input_scale", "_activation_scale")),
    Slot(".input_zero_point", "I8 U8 I32 F8_E4M3", "[] | [1]", OPTIONAL),
)
"""Tensors that a module of any format may have besides."""

_COMPANIONS = {slot.suffix: slot for slot in COMPANION_SLOTS}


class Fault(NamedTuple):
    """What is wrong with one tensor of a module.

    Attributes:
        kind: that it is missing, has another dtype or shape, or belongs to no such module; that the config
            declares something of it that the template has otherwise; that its payload can't be read.
        suffix: of the tensor.
        expected: dtype and shape as they should be: `F8_E4M3 [64, 4]`; empty where it should not be there.
        working: how the shape comes about; of what is declared, what the config says.

    """

    kind: Literal["missing", "dtype", "shape", "left", "declared", "payload"]
    suffix: str
    expected: str
    working: str = ""


class Fit(NamedTuple):
    """How a module compares with a template.

    Attributes:
        template: the one.
        values: of the names in it.
        faults: what is wrong; none where the module is what the template says.
        certain: whether each shape could be worked out from what is known, not from a parameter that
            only this module's own shapes tell.

    """

    template: Template
    values: Values
    faults: tuple[Fault, ...]
    certain: bool = True


def fit(
    template: Template,
    members: Members,
    parameters: Parameters,
    elsewhere: Container[str] = (),
) -> Fit:
    """Compare a module with a template.

    Args:
        template: the one.
        members: the module.
        parameters: values that the config and payloads of the module give.
        elsewhere: suffixes of tensors that may be in files that are not read.

    """
    unset = [name for name in template.options if name not in parameters]
    best: Fit | None = None
    for chosen in product(*(template.options[name] for name in unset)):
        values = {**_numbers(parameters), **dict(zip(unset, chosen, strict=True))}
        found = _attempt(template, members, parameters, values, elsewhere)
        if not found.faults:
            return found
        if best is None or len(found.faults) < len(best.faults):
            best = found
    if unset and not template.closed:
        found = _attempt(template, members, parameters, _numbers(parameters), elsewhere)
        if not found.faults:
            return found._replace(certain=False)
    assert best is not None
    return best


def _numbers(parameters: Parameters) -> dict[str, Value]:
    return {name: value for name, value in parameters.items() if not isinstance(value, bool)}


def _attempt(
    template: Template,
    members: Members,
    parameters: Parameters,
    values: Values,
    elsewhere: Container[str],
) -> Fit:
    slots = _slots(template, members)
    values = _solved([(slot, members[slot.suffix][1]) for slot in slots if slot.suffix in members], values)
    faults: list[Fault] = list(_contradictions(template, parameters))
    certain = True
    for slot in slots:
        expected = is_expected(slot, parameters)
        member = members.get(slot.suffix)
        if member is None:
            if expected and slot.suffix not in elsewhere:
                faults.append(Fault("missing", slot.suffix, _text(slot, values)))
        elif expected is False:
            faults.append(Fault("left", slot.suffix, ""))
        elif unreadable(slot) in parameters:
            faults.append(Fault("payload", slot.suffix, template.name))
        else:
            fault, known = _compared(slot, member, values)
            certain = certain and known
            faults += fault
    known_suffixes = {slot.suffix for slot in slots}
    faults += [Fault("left", suffix, "") for suffix in members if suffix not in known_suffixes]
    return Fit(template, values, tuple(faults), certain)


WORDS = {"b": "bits"}
"""What parameters are called in a message."""


def unreadable(slot: Slot) -> str:
    """The parameter that says of a slot's payload that it gives no values."""
    return f"{slot.suffix} {slot.shape} can't be read"


def _contradictions(template: Template, parameters: Parameters) -> Iterator[Fault]:
    """What a config says of a module that no module of the template has."""
    for name, value in template.fixed.items():
        said = parameters.get(name, value)
        if said != value:
            word = WORDS.get(name, name)
            yield Fault("declared", template.slots[0].suffix, f"{word} {value}", f"{word} {said}")


def _slots(template: Template, members: Members) -> tuple[Slot, ...]:
    """The template's slots, and those of companions that the module has besides."""
    own = {slot.suffix for slot in template.slots}
    return (
        *template.slots,
        *(_COMPANIONS[suffix] for suffix in members if suffix in _COMPANIONS and suffix not in own),
    )


def is_expected(slot: Slot, parameters: Parameters) -> bool | None:
    """Whether a tensor must be there; None where it may."""
    if not slot.when:
        return True
    value = parameters.get(slot.when.removeprefix("not "))
    if slot.when == OPTIONAL or value is None:
        return None
    return bool(value) != slot.when.startswith("not ")


def _solved(present: Iterable[tuple[Slot, tuple[int, ...]]], values: Values) -> dict[str, Value]:
    """All values that the shapes give: first what is exact, then, one by one, what is rounded."""
    found = dict(values)
    present = list(present)
    while new := _next(present, found):
        found.update(new)
    return found


def _next(present: Iterable[tuple[Slot, tuple[int, ...]]], values: Values) -> dict[str, Value]:
    for rounded in (False, True):
        for slot, shape in present:
            for alternative in parse(slot.shape):
                new = solve(alternative, shape, values, rounded)
                if new:
                    return new
    return {}


def _compared(slot: Slot, member: tuple[str, tuple[int, ...]], values: Values) -> tuple[list[Fault], bool]:
    """What is wrong with one tensor, and whether its shape could be worked out."""
    dtype, shape = member
    alternatives = parse(slot.shape)
    open_ = [one for one in alternatives if unknown(one, values) and possible(one, shape, values)]
    right_shape = any(one.of(values) == shape for one in alternatives) or bool(open_)
    if dtype in slot.dtypes.split() and right_shape:
        return [], not open_
    nearest = next((one for one in alternatives if one.may_be(len(shape))), alternatives[0])
    kind: Literal["dtype", "shape"] = "shape" if dtype in slot.dtypes.split() else "dtype"
    return [Fault(kind, slot.suffix, _text(slot, values, nearest), working(nearest, values))], not open_


def _text(slot: Slot, values: Values, shape: Shape | None = None) -> str:
    """Dtype and shape as a message shows them."""
    shape = parse(slot.shape)[0] if shape is None else shape
    lengths = shape.of(values)
    return f"{' or '.join(slot.dtypes.split())} {shape.text if lengths is None else list(lengths)}"


class Holding(NamedTuple):
    """How Kiln stores a module that fits a template, or the reason why it can't.

    Attributes:
        hold: the template's.
        dtype: of the weight in Kiln.
        shape: of the weight in elements.
        axis: along which groups run, counted from 0.
        group_size: elements that share a scale.
        reason: why Kiln can't hold it; None where it can.

    """

    hold: Hold | None
    dtype: str = ""
    shape: tuple[int, ...] = ()
    axis: int = 0
    group_size: int = 0
    reason: str | None = None


def holding(found: Fit, suffixes: Container[str]) -> Holding:
    """How Kiln stores a module.

    Args:
        found: a fit without faults.
        suffixes: of the module's tensors.

    """
    hold = found.template.holds
    if isinstance(hold, str):
        return Holding(None, reason=hold)
    for reason in _reasons(hold, found.values, suffixes):
        return Holding(None, reason=reason)
    values = {"E": (), **found.values}
    shape = next((one.of(values) for one in parse(hold.shape)), None)
    group = number(hold.group, values)
    if shape is None or not shape or group is None:
        return Holding(None, reason="the config does not say in which groups")
    width = found.values.get("b")
    return Holding(hold, hold.dtype.format(b=width), shape, hold.axis % len(shape), group)


def _reasons(hold: Hold, values: Values, suffixes: Container[str]) -> Iterator[str]:
    for suffix, reason in hold.unless:
        if suffix in suffixes:
            yield reason
    if hold.dtype.format(b=values.get("b")) not in DTYPES.values():
        yield f"elements of {values.get('b')} bits"
    if hold.whole is not None and number(hold.whole, values) is None:
        yield PART_WORDS
