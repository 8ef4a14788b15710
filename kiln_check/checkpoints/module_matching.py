"""Holds each module of a checkpoint to a template: what its config declares, or what alone fits it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from kiln_check.checkpoints.conventions.engine import (
    COMPANION_SLOTS,
    Fault,
    Fit,
    Holding,
    Members,
    Parameters,
    fit,
    holding,
    is_expected,
)
from kiln_check.checkpoints.conventions.forms import FORMS
from kiln_check.checkpoints.conventions.registry import bare_templates, marks, readers, suffixes, tools
from kiln_check.checkpoints.conventions.shapes import Value
from kiln_check.checkpoints.conventions.template import Declared, Excluded, Hold, Scheme, Template
from kiln_check.checkpoints.formats.header import SourceTensor
from kiln_check.checkpoints.links import (
    AMBIGUOUS,
    FAULTY,
    IN_UNREAD_FILES,
    NOT_KNOWN,
    TOO_LARGE,
    UNSAID,
    Link,
    Unlinked,
)
from kiln_check.checkpoints.matching import COMPANION_SUFFIXES
from kiln_check.checkpoints.module_findings import excluded_finding, module_findings, plain_finding
from kiln_check.checkpoints.modules import Module, Suffixes, modules_of
from kiln_check.checkpoints.siblings import Sibling, deviations
from kiln_check.checkpoints.spread import spread_modules
from kiln_check.constants import LARGEST_GROUP, LONGEST_DIMENSION
from kiln_check.report import Finding

PLAIN_SUFFIXES = frozenset(("", ".weight", *(slot.suffix for slot in COMPANION_SLOTS)))
"""Suffixes of modules that are not quantized."""

PACKED = frozenset(
    ("U8", "I8", "U32", "I32", "F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F4", "F6_E2M3", "F6_E3M2")
)
"""Dtypes of weights that are quantized."""


_PAIRED = frozenset((*(one for form in FORMS for one in (form.weight, form.scale)), *COMPANION_SUFFIXES))
"""Suffixes of the weights and scales that `matching` pairs where no config tells of them."""


class Held(NamedTuple):
    """What became of the modules that a tool tells of.

    Attributes:
        names: of their tensors.
        links: weights that Kiln links with their scales.
        unlinked: weights that stay as they are, with the reason.
        findings: what is wrong with modules.

    """

    names: set[str]
    links: list[Link]
    unlinked: list[Unlinked]
    findings: list[Finding]


def hold_modules(
    tensors: Mapping[str, SourceTensor],
    schemes: Sequence[Scheme],
    payload: Callable[[SourceTensor], bytes],
    in_unread_files: Container[str] = (),
) -> Held:
    """Hold each module to the template that its config declares, or that alone fits it.

    Args:
        tensors: all of a checkpoint, by name.
        schemes: what the configs beside it declare.
        payload: reads the payload of a small tensor.
        in_unread_files: names of tensors in files of the model that are not read.

    Raises OSError when a payload can't be read.

    """
    modules = modules_of(tensors, Suffixes(suffixes()))
    experts = spread_modules(modules, tools())
    judge = _Judge(schemes, payload, in_unread_files)
    found = Held(set(), [], [], [])
    siblings = []
    for module in modules.values():
        if module.name in experts.covered:
            found.names.update(one.name for one in module.tensors.values())
            continue
        whole = experts.modules.get(module.name, module)
        outcome = judge.outcome(whole, experts.parameters.get(module.name, _NOT_SPREAD))
        if outcome is None:
            continue
        found.names.update(one.name for one in module.tensors.values())
        _add(found, whole, outcome)
        if not outcome.faults and outcome.finding is None:
            siblings.append(Sibling(module, outcome.sort, outcome.lengths))
    found.findings.extend(deviations(siblings, in_unread_files))
    return found


_NOT_SPREAD: Parameters = {"spread": False}


class Outcome(NamedTuple):
    """What is made of all modules of one signature.

    Attributes:
        sort: what siblings have in common: "plain", or tool and format, or what was declared.
        fit: the template's that the module was held to; None where it was held to none.
        holding: how Kiln stores it.
        faults: how it differs from the template.
        reason: why it was held to none.
        tool: the tool, where it is known.
        finding: words a finding on a module that no template tells of.
        lengths: of the weight in elements, where they are known.

    """

    sort: str
    fit: Fit | None = None
    holding: Holding | None = None
    faults: tuple[Fault, ...] = ()
    reason: str | None = None
    tool: str | None = None
    finding: Callable[[Module], Finding] | None = None
    lengths: tuple[int, ...] | None = None


_PLAIN = Outcome("plain")


class _Judge:
    """Judges modules; each signature once."""

    def __init__(
        self,
        schemes: Sequence[Scheme],
        payload: Callable[[SourceTensor], bytes],
        in_unread_files: Container[str],
    ) -> None:
        self._schemes, self._payload, self._in_unread_files = schemes, payload, in_unread_files
        self._known: dict[object, Outcome] = {}
        self._readers = readers()
        self._marks = marks()
        self._own = suffixes() - PLAIN_SUFFIXES - _PAIRED
        self._all_read = in_unread_files == ()

    def outcome(self, module: Module, spread: Parameters) -> Outcome | None:
        """What is made of a module; None where neither a config nor a name tells of it."""
        declared = self._declared(module)
        if declared is None and self._own.isdisjoint(module.tensors):
            return None
        members = {suffix: (one.source_dtype, one.shape) for suffix, one in module.tensors.items()}
        given = self._given(module, spread)
        if not self._all_read:
            elsewhere = _Elsewhere(module.name, self._in_unread_files)
            return _judged(declared, members, given, elsewhere)
        key = (_identity(declared), tuple(members.items()), tuple(given.items()))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _judged(declared, members, given, ())
        return known

    def _declared(self, module: Module) -> Declared | Excluded | None:
        declared = None
        for scheme in self._schemes:
            declared = scheme.of(module.name)
            if declared is not None:
                break
        for suffix in module.tensors:
            tool = self._marks.get(suffix)
            if tool is not None and (declared is None or declared.tool != tool.name):
                return Declared(tool.name, "", tool.templates)
        return declared

    def _given(self, module: Module, spread: Parameters) -> dict[str, Value | bool]:
        given = dict(spread)
        for suffix, tensor in module.tensors.items():
            slot = self._readers.get(suffix)
            if slot is None or slot.gives is None or tensor.source_dtype not in slot.dtypes.split():
                continue
            try:
                given.update(slot.gives(self._payload(tensor)))
            except ValueError:
                continue
        return given


def _identity(declared: Declared | Excluded | None) -> object:
    if isinstance(declared, Declared):
        return declared.tool, declared.format, tuple(declared.parameters.items()), declared.named
    return declared


class _Elsewhere(Container[str]):
    """Suffixes of a module's tensors that may be in files that are not read."""

    def __init__(self, module: str, in_unread_files: Container[str]) -> None:
        self._module, self._in_unread_files = module, in_unread_files

    def __contains__(self, suffix: object) -> bool:
        return isinstance(suffix, str) and self._module + suffix in self._in_unread_files


def _judged(
    declared: Declared | Excluded | None,
    members: Members,
    given: Parameters,
    elsewhere: Container[str],
) -> Outcome:
    if isinstance(declared, Excluded):
        return _excluded(declared, members)
    if declared is None:
        return _PLAIN if _is_plain(members) else _bare(members, given, elsewhere)
    if not declared.templates:
        if _is_plain(members):
            return _PLAIN
        return Outcome(declared.format, reason=NOT_KNOWN, tool=f"{declared.tool} {declared.format}".rstrip())
    if not _concerns(declared, members):
        if not declared.named or not _is_plain(members) or ".weight" not in members:
            return _PLAIN if _is_plain(members) else Outcome("other", reason=None)
        return Outcome("plain", finding=lambda module: plain_finding(module, declared))
    parameters = {**given, **declared.parameters}
    fits = [
        fit(one, members, parameters, elsewhere) for one in declared.templates if _may_be(one, parameters)
    ]
    if not fits:
        return Outcome(declared.format, reason=NOT_KNOWN, tool=f"{declared.tool} {declared.format}".rstrip())
    return _held(_nearest(fits, members), members, elsewhere, parameters)


def _excluded(excluded: Excluded, members: Members) -> Outcome:
    """A module that the config leaves out is plain; a scale beside packed bits says that it is not."""
    weight = members.get(".weight_packed", members.get(".weight", members.get("")))
    scales = [suffix for suffix in members if suffix not in PLAIN_SUFFIXES]
    if weight is None or weight[0] not in PACKED or not scales:
        return _PLAIN
    return Outcome("excluded", finding=lambda module: excluded_finding(module, excluded))


def _is_plain(members: Members) -> bool:
    weight = members.get(".weight", members.get("", ("F32", ())))
    return weight[0] not in PACKED and all(suffix in PLAIN_SUFFIXES for suffix in members)


def _concerns(declared: Declared, members: Members) -> bool:
    """Whether a module has a weight that is packed, or another tensor, of the declared formats."""
    for template in declared.templates:
        weight, *others = template.slots
        if weight.suffix in members and members[weight.suffix][0] in PACKED and not _is_plain_name(members):
            return True
        for slot in others:
            if slot.suffix in members and slot.suffix not in PLAIN_SUFFIXES:
                is_sure = "weight" in slot.suffix or weight.suffix in members
                if is_sure or members[slot.suffix][0] in slot.dtypes.split():
                    return True
    return False


def _is_plain_name(members: Members) -> bool:
    """Whether all there is is one tensor without a suffix, of fewer dimensions than a weight has."""
    return set(members) == {""} and len(members[""][1]) < 3


def _may_be(template: Template, parameters: Parameters) -> bool:
    return all(parameters.get(name, value) == value for name, value in template.only.items())


def _nearest(fits: Sequence[Fit], members: Members) -> Fit:
    """The fit with the fewest faults, those of the weight counting twice; of equals a certain one."""

    def distance(found: Fit) -> tuple[int, bool, int]:
        weight = found.template.slots[0].suffix
        of_weight = sum(2 if one.suffix == weight else 1 for one in found.faults)
        return of_weight, not found.certain, -sum(slot.suffix in members for slot in found.template.slots)

    return min(fits, key=distance)


def _held(found: Fit, members: Members, elsewhere: Container[str], parameters: Parameters) -> Outcome:
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


def _is_apart(found: Fit, members: Members, elsewhere: Container[str], parameters: Parameters) -> bool:
    """Whether a tensor that decides how Kiln stores the module may be in another file."""
    hold = found.template.holds
    deciding = {slot.suffix for slot in found.template.slots if not slot.when}
    if isinstance(hold, Hold):
        deciding |= {suffix for suffix, _ in hold.unless}
    return any(
        slot.suffix in deciding
        and slot.suffix not in members
        and is_expected(slot, parameters) is not False
        and slot.suffix in elsewhere
        for slot in found.template.slots
    )


def _bare(members: Members, given: Parameters, elsewhere: Container[str]) -> Outcome:
    """Hold a module that no config declares to what alone fits it.

    Without a config it is at fault only where no format of a tool that names tensors so, with whatever
    parameters, has such shapes.
    """
    fits = [
        fit(template, members, given, elsewhere)
        for suffix in members
        for template in bare_templates(suffix)
        if _may_be(template, given) and members[suffix][0] in template.slots[0].dtypes.split()
    ]
    right = [one for one in fits if not one.faults and one.certain]
    if right:
        held = [_held(one, members, elsewhere, given) for one in right]
        first = held[0]
        same = all(_stored(one) == _stored(first) for one in held)
        if same or len({one.template.tool for one in right}) == 1:
            return first
        names = " or ".join(dict.fromkeys(one.template.name for one in right))
        return Outcome("bare", reason=AMBIGUOUS, tool=names)
    possible = [one for one in fits if not one.faults]
    if possible:
        return _held(possible[0], members, elsewhere, given)
    misshapen = [one for one in fits if all(fault.kind == "shape" for fault in one.faults)]
    if not misshapen and len({one.template.tool for one in fits}) == 1 and _is_telling(members):
        misshapen = [one for one in fits if all(fault.kind in ("shape", "missing") for fault in one.faults)]
    if misshapen:
        return _held(_nearest(misshapen, members), members, elsewhere, given)
    if fits or not _is_scale_alone(members):
        return Outcome("bare", reason=NOT_KNOWN if _is_scaled(members) else None)
    return _unused(members, elsewhere)


def _stored(outcome: Outcome) -> object:
    return None if outcome.holding is None else outcome.holding._replace(hold=None)


def _is_telling(members: Members) -> bool:
    """Whether a module has a tensor by whose suffix alone it is quantized."""
    return any(suffix not in PLAIN_SUFFIXES for suffix in members)


def _is_scaled(members: Members) -> bool:
    weight = members.get(".weight", members.get("", None))
    return _is_telling(members) and (weight is None or weight[0] in PACKED)


SURE_SCALES = (".weight_scale", ".weight_scale_inv", ".weight_scale_2", ".weight_global_scale")
"""Suffixes that only a scale has."""


def _is_scale_alone(members: Members) -> bool:
    return any(suffix in SURE_SCALES for suffix in members) and not any(
        bare_templates(suffix) for suffix in members
    )


def _unused(members: Members, elsewhere: Container[str]) -> Outcome:
    """A scale without a weight."""
    templates = [
        template
        for tool in tools()
        for template in tool.templates
        if all(any(slot.suffix == suffix for slot in template.slots) for suffix in members)
    ]
    if not templates or any(template.slots[0].suffix in elsewhere for template in templates):
        return Outcome("bare")
    return _held(_nearest([fit(one, members, {}) for one in templates], members), members, elsewhere, {})


def _add(found: Held, module: Module, outcome: Outcome) -> None:
    """Put what became of one module among the others."""
    if outcome.finding is not None:
        finding = outcome.finding(module)
        found.findings.append(finding)
        found.unlinked.append(Unlinked(_weight_name(module, outcome), FAULTY, "", finding))
        return
    weight = _weight_name(module, outcome)
    if outcome.faults:
        assert outcome.fit is not None
        faults = module_findings(module, outcome.fit)
        found.findings.extend(faults)
        template = outcome.fit.template.name
        found.unlinked.append(Unlinked(weight, FAULTY, "", faults[0], outcome.tool, template))
    elif outcome.holding is None:
        if outcome.reason is not None:
            found.unlinked.append(Unlinked(weight, outcome.reason, outcome.tool or "", None, outcome.tool))
    else:
        _add_held(found, module, outcome, outcome.holding)


def _add_held(found: Held, module: Module, outcome: Outcome, held: Holding) -> None:
    assert outcome.fit is not None
    template = outcome.fit.template
    weight = _weight_name(module, outcome)
    hold = held.hold
    fits_kiln = max(held.shape, default=0) <= LONGEST_DIMENSION and 1 <= held.group_size <= LARGEST_GROUP
    if hold is None or not fits_kiln:
        reason = TOO_LARGE if held.reason is None else held.reason
        found.unlinked.append(Unlinked(weight, reason, template.name, None, template.tool, template.name))
        return
    scale = module.tensors[hold.scale]
    outer = None if hold.outer is None else module.tensors[hold.outer].name
    found.links.append(
        Link(
            template.tool,
            template.name,
            weight,
            scale.name,
            outer,
            held.dtype,
            held.shape,
            held.axis,
            held.group_size,
            hold.scale_dtype or scale.type.dtype,
        )
    )


def _weight_name(module: Module, outcome: Outcome) -> str:
    """The name of the weight, or of the first tensor where there is none."""
    first = next(iter(module.tensors.values())).name
    names: Iterable[str] = () if outcome.fit is None else (outcome.fit.template.slots[0].suffix,)
    for suffix in (*names, ".weight", ""):
        if suffix in module.tensors:
            return module.tensors[suffix].name
    return first
