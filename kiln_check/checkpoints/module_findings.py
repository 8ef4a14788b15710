"""What is wrong with a module that was held to a template, as findings."""

from __future__ import annotations

from kiln_check.checkpoints.checkpoint_rules import finding
from kiln_check.checkpoints.conventions.engine import Fault, Fit
from kiln_check.checkpoints.conventions.template import Declared, Excluded
from kiln_check.checkpoints.formats.header import SourceTensor
from kiln_check.checkpoints.modules import Module
from kiln_check.checkpoints.outcome import EXTRAS
from kiln_check.report import Finding
from kiln_check.text import quote


def module_findings(module: Module, fit: Fit) -> list[Finding]:
    """A finding for each fault of a module; see `Fault`.

    Args:
        module: the one at fault.
        fit: how it compares with the template that it is held to.

    """
    return [_finding(module, fit, fault) for fault in fit.faults]


def _finding(module: Module, fit: Fit, fault: Fault) -> Finding:
    weight = fit.template.slots[0].suffix
    own = module.tensors.get(fault.suffix)
    at = own or module.tensors.get(weight) or next(iter(module.tensors.values()))
    called = quote(module.name + fault.suffix)
    by = fit.template.name
    match fault.kind:
        case "missing":
            is_weight = fault.suffix == weight and weight not in EXTRAS
            rule = "scale-unused" if is_weight else "scale-missing"
            beside = _beside(module, fault, weight)
            message = f"{called} is missing{beside}; {by} has {fault.expected} there"
        case "declared":
            message = (
                f"{called} is {at.text()}; the config says {fault.working}, and {by} has {fault.expected}"
            )
            return _at("other-format", message, at)
        case "payload":
            message = f"{called} {at.text()} holds nothing that {by} can have there"
            return _at("scale-shape", message, at)
        case "left":
            rule = "other-format"
            message = f"{called} {at.text()} belongs to no module of {by}"
        case _:
            rule = "scale-shape" if fault.suffix != weight else "packed-shape"
            rule = "other-format" if fault.kind == "dtype" and fault.suffix == weight else rule
            beside = _beside(module, fault, weight)
            message = f"{called} is {at.text()}{beside}; {by} has {fault.expected} there"
    return _at(rule, message, at, fault.kind, fault.working or None)


def _beside(module: Module, fault: Fault, weight: str) -> str:
    """Another tensor of the module that the fault is seen by: the weight, or beside the weight a scale."""
    suffix = weight if fault.suffix != weight else next((one for one in module.tensors if one != weight), "")
    other = module.tensors.get(suffix)
    return "" if other is None or suffix == fault.suffix else f" beside {quote(other.name)} {other.text()}"


def excluded_finding(module: Module, excluded: Excluded) -> Finding:
    """A module that a config leaves as it is, and that is quantized."""
    at = _weight(module)
    message = (
        f"{quote(at.name)} {at.text()} is quantized; {excluded.tool}'s config excludes it "
        f"by {quote(excluded.pattern)}"
    )
    return _at("other-format", message, at)


def otherwise_finding(module: Module, declared: Declared) -> Finding:
    """A module that is quantized in another format than a config says."""
    at = _weight(module)
    others = [one for one in module.tensors.values() if one is not at]
    beside = f" beside {quote(others[0].name)} {others[0].text()}" if others else ""
    format_ = declared.format if declared.format.isprintable() else quote(declared.format)
    message = (
        f"{quote(at.name)} {at.text()}{beside} is in another format than "
        f"the config says: {declared.tool} {format_}".rstrip()
    )
    return _at("other-format", message, at)


def plain_finding(module: Module, declared: Declared) -> Finding:
    """A module that a config names as quantized, and that is not."""
    at = _weight(module)
    message = (
        f"{quote(at.name)} {at.text()} is not quantized; the config names it as "
        f"{declared.tool} {declared.format}"
    )
    return _at("other-format", message, at)


def _weight(module: Module) -> SourceTensor:
    first = next(iter(module.tensors.values()))
    return next(
        (module.tensors[one] for one in (".weight_packed", ".weight") if one in module.tensors), first
    )


_FIELDS = {"shape": "shape", "dtype": "dtype"}


def _at(rule: str, message: str, at: SourceTensor, kind: str = "", working: str | None = None) -> Finding:
    return finding(
        rule,
        message,
        at.path,
        at.entry_offset,
        at.entry_length,
        name=at.name,
        field=_FIELDS.get(kind, ""),
        working=working,
        value=at.text(),
    )
