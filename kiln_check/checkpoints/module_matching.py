"""Holds each module of a checkpoint to a template: what its config declares, or what alone fits it."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
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
    unreadable,
)
from kiln_check.checkpoints.conventions.registry import (
    bare_templates,
    marks,
    readers,
    suffixes,
    tools,
    weight_suffixes,
)
from kiln_check.checkpoints.conventions.shapes import parse, unknown
from kiln_check.checkpoints.conventions.template import (
    FLOATS,
    Declared,
    Excluded,
    Hold,
    Scheme,
    Slot,
    Template,
    Tool,
)
from kiln_check.checkpoints.formats.header import SourceTensor
from kiln_check.checkpoints.links import (
    AMBIGUOUS,
    FAULTY,
    IN_UNREAD_FILES,
    NOT_KNOWN,
    TOO_LARGE,
    UNSAID,
    AnyName,
    Link,
    Unlinked,
)
from kiln_check.checkpoints.module_findings import (
    excluded_finding,
    module_findings,
    otherwise_finding,
    plain_finding,
)
from kiln_check.checkpoints.modules import Module, Suffixes, modules_of
from kiln_check.checkpoints.siblings import EXTRAS, Sibling, deviations
from kiln_check.checkpoints.spread import spread_modules
from kiln_check.constants import LARGEST_GROUP, LONGEST_DIMENSION
from kiln_check.report import Finding
from kiln_check.text import plural, quote

PLAIN_SUFFIXES = frozenset(("", ".weight", *(slot.suffix for slot in COMPANION_SLOTS)))
"""Suffixes of modules that are not quantized."""

PACKED = frozenset(
    ("U8", "I8", "U32", "I32", "F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F4", "F6_E2M3", "F6_E3M2")
)
"""Dtypes of weights that are quantized."""


class Held(NamedTuple):
    """What became of the modules of a checkpoint.

    Attributes:
        links: weights that Kiln links with their scales.
        unlinked: weights that stay as they are, with the reason.
        findings: what is wrong with modules.

    """

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
    judge = Judge(
        schemes, in_unread_files, marked_tool(suffix for one in modules.values() for suffix in one.tensors)
    )
    found = Held([], [], [])
    siblings = []
    lost = [module for name, module in experts.modules.items() if name not in modules]
    for module in (*modules.values(), *lost):
        if module.name in experts.covered:
            continue
        whole = experts.modules.get(module.name, module)
        members = {suffix: (one.source_dtype, one.shape) for suffix, one in whole.tensors.items()}
        given = given_by(whole, payload, experts.parameters.get(module.name, NOT_SPREAD))
        outcome = judge.outcome(whole.name, members, given)
        add_outcome(found, whole, outcome)
        if not outcome.faults and outcome.finding is None:
            siblings.append(sibling_of(module, outcome))
    found.findings.extend(deviations(siblings, in_unread_files))
    return found


def marked_tool(named: Iterable[str]) -> Tool | None:
    """The one tool that suffixes of a checkpoint's tensors tell of, if there is one."""
    by_mark = marks()
    found = {by_mark[suffix].name: by_mark[suffix] for suffix in named if suffix in by_mark}
    return next(iter(found.values())) if len(found) == 1 else None


def sibling_of(module: Module, outcome: Outcome) -> Sibling:
    """A module as it is compared with its siblings."""
    if not outcome.bare or outcome.sort == _PLAIN.sort:
        return Sibling(module, outcome.sort, outcome.lengths)
    template = None if outcome.fit is None else outcome.fit.template.name
    return Sibling(module, BARE, outcome.lengths, template)


NOT_SPREAD: Parameters = {"spread": False}


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


_PLAIN = Outcome("plain")

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


class Judge:
    """Judges modules; each signature once.

    A module is given by its name, by dtype and shape of its tensors, and by what their payloads give.
    """

    def __init__(
        self, schemes: Sequence[Scheme], in_unread_files: Container[str] = (), marked: Tool | None = None
    ) -> None:
        """Take what configs declare, names in files that are not read, and the tool that names tell of."""
        self._schemes, self._in_unread_files = schemes, in_unread_files
        self._all_read = isinstance(in_unread_files, Sized) and not len(in_unread_files)
        self._known: dict[object, Outcome] = {}
        self._identities: dict[int, tuple[Declared, object]] = {}
        self._marks = marks()
        self._all_suffixes = sorted(suffixes())
        self._marked = marked if not schemes else None

    def outcome(self, name: str, members: Members, given: Parameters, signature: object = None) -> Outcome:
        """What is made of a module; `signature` stands for members and given, where it is known."""
        declared, bare = self._declared(name, members)
        elsewhere = self._elsewhere(name)
        if signature is None:
            signature = tuple(members.items()), tuple(given.items())
        key = (self._identity(declared), signature, elsewhere)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _judged(declared, members, given, elsewhere)._replace(bare=bare)
        return known

    def _identity(self, declared: Declared | Excluded | None) -> object:
        """What tells whether two modules are declared alike; schemes may give one object for many."""
        if not isinstance(declared, Declared):
            return declared
        number = id(declared)
        known = self._identities.get(number)
        if known is None or known[0] is not declared:
            identity = declared.tool, declared.format, tuple(declared.parameters.items()), declared.named
            known = self._identities[number] = declared, identity
        return known[1]

    def _elsewhere(self, module: str) -> Elsewhere:
        names = self._in_unread_files
        if self._all_read:
            return NOWHERE
        if isinstance(names, AnyName):
            return Elsewhere(frozenset(self._all_suffixes), False)
        return Elsewhere(frozenset(one for one in self._all_suffixes if module + one in names), True)

    def _declared(self, name: str, members: Members) -> tuple[Declared | Excluded | None, bool]:
        """What is said of a module, and whether no config says it: then a name that one tool has may."""
        declared = None
        for scheme in self._schemes:
            declared = scheme.of(name)
            if declared is not None:
                break
        tool = next((self._marks[suffix] for suffix in members if suffix in self._marks), None)
        if tool is not None and (declared is None or (declared.tool != tool.name and tool.is_apart)):
            return Declared(tool.name, "", tool.templates), True
        if declared is None and self._marked is not None and _is_of(self._marked, members):
            return Declared(self._marked.name, "", self._marked.templates), True
        return declared, declared is None


def _is_of(tool: Tool, members: Members) -> bool:
    """Whether a module of a checkpoint whose other modules name a tool is quantized by it."""
    own = {slot.suffix for template in tool.templates for slot in template.slots}
    return len(members) > 1 and any(suffix in own and suffix not in PLAIN_SUFFIXES for suffix in members)


def given_by(module: Module, payload: Callable[[SourceTensor], bytes], spread: Parameters) -> Parameters:
    """What the payloads of a module's small tensors give; raises OSError where one can't be read."""
    by_suffix = readers()
    if by_suffix.keys().isdisjoint(module.tensors):
        return spread
    given = dict(spread)
    for suffix, tensor in module.tensors.items():
        for slot in by_suffix.get(suffix, ()):
            if slot.gives is None or not _may_give(slot, tensor):
                continue
            raw = payload(tensor)
            try:
                given.update(slot.gives(raw))
            except ValueError:
                if any(raw):  # heads are kept with zeros in the place of payloads
                    given[unreadable(slot)] = True
    return given


def _may_give(slot: Slot, tensor: SourceTensor) -> bool:
    """Whether a tensor has a dtype and a number of elements that its slot may have."""
    shapes = parse(slot.shape)
    is_shape = any(unknown(one, {}) or one.of({}) == tensor.shape for one in shapes)
    return is_shape and tensor.source_dtype in slot.dtypes.split()


def _judged(
    declared: Declared | Excluded | None,
    members: Members,
    given: Parameters,
    elsewhere: Elsewhere,
) -> Outcome:
    if isinstance(declared, Excluded):
        return _excluded(declared, members)
    if declared is None:
        return _PLAIN if _is_plain(members) else _bare(members, given, elsewhere)
    if not declared.templates:
        if _is_plain(members):
            return _PLAIN
        return Outcome(declared.format, reason=NOT_KNOWN, tool=_name(declared))
    if given.get("spread") is not True and not _concerns(declared, members):
        return _unconcerned(declared, members)
    parameters = {**given, **declared.parameters}
    fits = [
        fit(one, members, parameters, elsewhere) for one in declared.templates if _may_be(one, parameters)
    ]
    if not fits:
        return Outcome(declared.format, reason=NOT_KNOWN, tool=_name(declared))
    found = _nearest(fits, members)
    disagreeing = tuple(_disagreements(found, given, declared))
    return _held(found._replace(faults=found.faults + disagreeing), members, elsewhere, parameters)


def _disagreements(found: Fit, given: Parameters, declared: Declared) -> Iterator[Fault]:
    """What a payload of a module says in one way and a config in another."""
    weight = found.template.slots[0].suffix
    for name, value in given.items():
        said = declared.parameters.get(name, value)
        if said != value and isinstance(said, int) and not isinstance(value, bool):
            yield Fault("declared", weight, f"{name} {value} by its own tensors", f"{name} {said}")


def _unconcerned(declared: Declared, members: Members) -> Outcome:
    """A module with nothing of the declared format: plain, or quantized otherwise."""
    if _is_plain(members):
        if declared.named and ".weight" in members:
            return Outcome("plain", finding=lambda module: plain_finding(module, declared))
        return _PLAIN
    is_scaled = _is_scaled(members) or any(suffix in SURE_SCALES for suffix in members)
    if is_scaled and not PLAIN_SUFFIXES.issuperset(members):
        return Outcome("other", finding=lambda module: otherwise_finding(module, declared))
    return Outcome("other")


def _name(declared: Declared) -> str:
    """Tool and format as they print on one line."""
    format_ = declared.format if declared.format.isprintable() else quote(declared.format)
    return f"{declared.tool} {format_}".rstrip()


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
        if weight.suffix in EXTRAS and any(slot.suffix in members for slot in template.slots):
            return True
        if weight.suffix in members and members[weight.suffix][0] in PACKED and not _is_plain_name(members):
            return True
        for slot in others:
            if slot.suffix in members and slot.suffix not in PLAIN_SUFFIXES:
                is_sure = "weight" in slot.suffix or weight.suffix in members or len(members) > 1
                if is_sure or _is_scale(slot, members[slot.suffix]):
                    return True
    return False


def _is_scale(slot: Slot, member: tuple[str, tuple[int, ...]]) -> bool:
    """Whether a tensor that stands alone is a scale: norms have a `.scale` too, of one dimension."""
    dtype, shape = member
    return dtype in slot.dtypes.split() and (dtype not in FLOATS.split() or len(shape) > 1)


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


def _held(found: Fit, members: Members, elsewhere: Elsewhere, parameters: Parameters) -> Outcome:
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


def _bare(members: Members, given: Parameters, elsewhere: Elsewhere) -> Outcome:
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
        names = _one_of(one.template.name for one in right)
        if any(one.reason == IN_UNREAD_FILES for one in held):
            return Outcome(BARE, reason=IN_UNREAD_FILES, tool=names)
        if len({_stored(one) for one in held}) > 1:
            return Outcome(BARE, reason=AMBIGUOUS, tool=names)
        return held[0]._replace(tool=_one_of(one.template.tool for one in right), template=names)
    possible = [one for one in fits if not one.faults]
    if possible:
        return _held(possible[0], members, elsewhere, given)
    if misshapen := _misshapen(fits, members):
        return _held(_nearest(misshapen, members), members, elsewhere, given)
    if fits or not _is_scale_alone(members):
        return Outcome(BARE, reason=NOT_KNOWN if _is_scaled(members) else None)
    return _unused(members, elsewhere)


def _one_of(names: Iterable[str]) -> str:
    """A name, or of several that can't be told apart how many there are."""
    first, *others = dict.fromkeys(names)
    return f"undeclared, as {first} or {plural(len(others), 'other')}" if others else first


def _misshapen(fits: Sequence[Fit], members: Members) -> list[Fit]:
    """Of modules whose names tell: the fits with wrong shapes alone, else those that all lack one tensor."""
    if not _is_telling(members):
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


ANY_SCALE = ".scale"
"""A suffix that tools give to their scales of which no template tells."""


def _is_telling(members: Members) -> bool:
    """Whether a module has a tensor by whose suffix alone it is quantized."""
    return any(suffix not in PLAIN_SUFFIXES and suffix != ANY_SCALE for suffix in members)


def _is_scaled(members: Members) -> bool:
    """Whether a module has a packed weight and something beside it."""
    return len(members) > 1 and any(
        suffix in members and members[suffix][0] in PACKED for suffix in weight_suffixes()
    )


SURE_SCALES = (
    *(".weight_scale", ".weight_scale_inv", ".weight_scale_2", ".weight_global_scale"),
    *("_weight_scale", "_weight_scale_2"),
)
"""Suffixes that only a scale has."""


MANY = 4
"""Tensors by whose suffixes together a module without a weight is known."""


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
    nearest = _nearest([fit(one, members, {}) for one in templates], members)
    weight = nearest.template.slots[0].suffix
    lost = tuple(fault for fault in nearest.faults if fault.suffix == weight)
    return _held(nearest._replace(faults=lost), members, elsewhere, {})


def add_outcome(found: Held, module: Module, outcome: Outcome) -> None:
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
    template, tool = outcome.fit.template, outcome.tool or outcome.fit.template.tool
    name = outcome.template or template.name
    weight = _weight_name(module, outcome)
    hold = held.hold
    fits_kiln = max(held.shape, default=0) <= LONGEST_DIMENSION and 1 <= held.group_size <= LARGEST_GROUP
    if hold is None or not fits_kiln:
        reason = TOO_LARGE if held.reason is None else held.reason
        found.unlinked.append(Unlinked(weight, reason, name, None, tool, name))
        return
    scale = module.tensors[hold.scale]
    outer = None if hold.outer is None else module.tensors[hold.outer].name
    found.links.append(
        Link(
            tool,
            name,
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
    for suffix in (*names, *weight_suffixes()):
        if suffix in module.tensors:
            return module.tensors[suffix].name
    return first
