"""Judges modules: what a config declares of one, or what alone fits it; each signature once."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence, Sized

from kiln_check.checkpoints.conventions.engine import (
    Fault,
    Fit,
    Members,
    Parameters,
    fit,
    unreadable,
)
from kiln_check.checkpoints.conventions.registry import (
    marks,
    readers,
    suffixes,
)
from kiln_check.checkpoints.conventions.shapes import parse, unknown
from kiln_check.checkpoints.conventions.template import (
    FLOATS,
    Declared,
    Excluded,
    Scheme,
    Slot,
    Tool,
)
from kiln_check.checkpoints.formats.header import SourceTensor
from kiln_check.checkpoints.links import (
    NOT_KNOWN,
    AnyName,
)
from kiln_check.checkpoints.module_findings import (
    excluded_finding,
    otherwise_finding,
    plain_finding,
)
from kiln_check.checkpoints.modules import Module
from kiln_check.checkpoints.outcome import (
    EXTRAS,
    NOWHERE,
    PACKED,
    PLAIN,
    PLAIN_SUFFIXES,
    SURE_SCALES,
    Elsewhere,
    Outcome,
    held_to,
    is_plain,
    is_scaled,
    may_be,
    nearest,
    reason_for_one,
)
from kiln_check.checkpoints.undeclared import undeclared
from kiln_check.text import quote

NOT_SPREAD: Parameters = {"spread": False}


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


def marked_tool(named: Iterable[str]) -> Tool | None:
    """The one tool that suffixes of a checkpoint's tensors tell of, if there is one."""
    by_mark = marks()
    found = {by_mark[suffix].name: by_mark[suffix] for suffix in named if suffix in by_mark}
    return next(iter(found.values())) if len(found) == 1 else None


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
        return PLAIN if is_plain(members) else undeclared(members, given, elsewhere)
    if not declared.templates:
        if is_plain(members):
            return PLAIN
        return Outcome(declared.format, reason=NOT_KNOWN, tool=_name(declared))
    if given.get("spread") is not True and not _concerns(declared, members):
        return _unconcerned(declared, members)
    parameters = {**given, **declared.parameters}
    fits = [fit(one, members, parameters, elsewhere) for one in declared.templates if may_be(one, parameters)]
    if not fits:
        return Outcome(declared.format, reason=NOT_KNOWN, tool=_name(declared))
    found = nearest(fits, members)
    disagreeing = tuple(_disagreements(found, given, declared))
    return held_to(found._replace(faults=found.faults + disagreeing), members, elsewhere, parameters)


def _disagreements(found: Fit, given: Parameters, declared: Declared) -> Iterator[Fault]:
    """What a payload of a module says in one way and a config in another."""
    weight = found.template.slots[0].suffix
    for name, value in given.items():
        said = declared.parameters.get(name, value)
        if said != value and isinstance(said, int) and not isinstance(value, bool):
            yield Fault("declared", weight, f"{name} {value} by its own tensors", f"{name} {said}")


def _unconcerned(declared: Declared, members: Members) -> Outcome:
    """A module with nothing of the declared format: plain, or quantized otherwise."""
    if is_plain(members):
        if declared.named and ".weight" in members:
            return Outcome("plain", finding=lambda module: plain_finding(module, declared))
        return PLAIN
    has_scale = is_scaled(members) or any(suffix in SURE_SCALES for suffix in members)
    if has_scale and not PLAIN_SUFFIXES.issuperset(members):
        return Outcome("other", finding=lambda module: otherwise_finding(module, declared))
    return Outcome("other", reason=reason_for_one(members))


def _name(declared: Declared) -> str:
    """Tool and format as they print on one line."""
    words = (declared.tool, declared.format)
    return " ".join(one if one.isprintable() else quote(one) for one in words if one)


def _excluded(excluded: Excluded, members: Members) -> Outcome:
    """A module that the config leaves out is plain; a scale beside packed bits says that it is not."""
    weight = members.get(".weight_packed", members.get(".weight", members.get("")))
    scales = [suffix for suffix in members if suffix not in PLAIN_SUFFIXES]
    if weight is None or weight[0] not in PACKED or not scales:
        return PLAIN
    return Outcome("excluded", finding=lambda module: excluded_finding(module, excluded))


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
