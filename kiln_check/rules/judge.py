"""Applies the rules to a directory: each once, and only where what it needs holds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from kiln_check.directory import LEN_DESCRIPTOR, LEN_HEADER, Directory
from kiln_check.generated.kiln_v2_records import (
    DESCRIPTOR,
    DESCRIPTOR_SIZES,
    HEADER,
    HEADER_SIZES,
    NO_AXIS,
    NO_INDEX,
    PAGE_NAMES,
)
from kiln_check.report import Finding
from kiln_check.rules.fault import Fault
from kiln_check.rules.rule import DIRECTORY, Rule, Subject
from kiln_check.rules.subjects import File, Row
from kiln_check.rules.table import BY_NAME, RULES
from kiln_check.rules.view import View

HEADER_OFFSETS = dict(zip(HEADER["names"], HEADER["offsets"], strict=True))
DESCRIPTOR_OFFSETS = dict(zip(DESCRIPTOR["names"], DESCRIPTOR["offsets"], strict=True))

FILE_RULES = tuple(rule for rule in RULES if rule.for_file)
TENSOR_RULES = tuple(rule for rule in RULES if rule.for_tensor)
TENSOR_RULES_BY_SCHEME = [
    (applies, tuple(rules)) for applies, rules in groupby(TENSOR_RULES, lambda rule: rule.applies)
]
"""Rules that follow one another in the table and are about the same tensors."""

ORDER = {rule.name: number for number, rule in enumerate(RULES)}


def judge(directory: Directory, unverified: Sequence[int] | None = None) -> list[Finding]:
    """Return every finding, in the order of the rules and then of the tensors.

    `unverified` are the tensors to judge, ascending; None means all. A tensor that is
    left out must be known to be sound.

    Raises OSError when names are read on demand and can't be.
    """
    tensors: Sequence[int] = range(directory.num_tensors or 0) if unverified is None else unverified
    file = File(directory, tensors if directory.whole else ())
    view = View(file)
    findings = _judge_one(view, None, FILE_RULES, {DIRECTORY} if directory.whole else set())
    for index in file.tensors:
        if not _is_sound(file.tensor(index)):
            findings += _judge_one(view, index, TENSOR_RULES, {DIRECTORY})
    findings.sort(key=lambda finding: ORDER[finding.rule])
    return findings


def _is_sound(tensor: Row) -> bool:
    """Whether every rule for tensors holds: what a rule needs comes before it in the table."""
    for applies, rules in TENSOR_RULES_BY_SCHEME:
        if applies is None or applies(tensor):
            for rule in rules:
                if not rule.holds(tensor):
                    return False
    return True


def _judge_one(view: View, index: int | None, rules: tuple[type[Rule], ...], held: set[str]) -> list[Finding]:
    subject = view.file if index is None else view.tensor(index)
    findings = []
    for rule in rules:
        if held.issuperset(rule.needs) and _links_hold(subject, rule):
            if _keeps(subject, rule):
                held.add(rule.name)
            else:
                findings.append(_finding(view, index, rule, rule.explain(view, index)))
    return findings


def _keeps(subject: Subject, rule: type[Rule]) -> bool:
    return (rule.applies is not None and not rule.applies(subject)) or bool(rule.holds(subject))


def _links_hold(tensor: Subject, rule: type[Rule]) -> bool:
    """Whether the tensor's scale and outer, where it has them, are as `rule` needs."""
    if rule.applies is None or not rule.applies(tensor):
        return True
    return all(_holds(tensor.scale, name) for name in rule.of_scale) and all(
        _holds(tensor.outer, name) for name in rule.of_outer
    )


def _holds(tensor: Row, name: str) -> bool:
    rule = BY_NAME[name]
    needs_hold = all(need == DIRECTORY or _holds(tensor, need) for need in rule.needs)
    return needs_hold and _keeps(tensor, rule)


def _finding(view: View, index: int | None, rule: type[Rule], fault: Fault) -> Finding:
    field = fault.field or rule.field
    offset, length = _field_range(view, index, field, fault.entry)
    name = None if index is None else view.file.directory.name(index)
    value = _value_text(view, index, field, fault.entry)
    data = view.file.directory.head_bytes(offset, length)
    page_field = PAGE_NAMES.get(field, field)
    return Finding(
        rule.name,
        rule.status,
        index,
        name,
        page_field,
        offset,
        length,
        fault.message,
        fault.working,
        data,
        value,
    )


def _field_range(view: View, index: int | None, field: str, entry: int | None) -> tuple[int, int]:
    """Offset in the file and size, in bytes, of a field or of one entry of it."""
    if index is not None:
        offset = LEN_HEADER + index * LEN_DESCRIPTOR + DESCRIPTOR_OFFSETS[field]
        length = DESCRIPTOR_SIZES[field]
        if entry is None:
            return offset, length
        return offset + entry * (length // 8), length // 8
    if field != "magic" and view.file.size < LEN_HEADER:
        return view.file.size, 0
    return HEADER_OFFSETS[field], HEADER_SIZES[field]


def _value_text(view: View, index: int | None, field: str, entry: int | None) -> str:
    """The field and its value: `scale_index = 1`; empty where no one number is there to show."""
    if field == "version":
        return f"version = {view.file.version}"
    fields = (view.file.directory.fields or {}) if index is None else vars(view.tensor(index))
    value = fields.get(field)
    if entry is not None and value is not None:
        field, value = f"{field}[{entry}]", value[entry]
    if not isinstance(value, int):
        return ""
    is_code = field == "dtype" or value == {"quant_axis": NO_AXIS}.get(field, NO_INDEX)
    return f"{PAGE_NAMES.get(field, field)} = {f'0x{value:04X}' if is_code else value}"
