"""Holds each module of a checkpoint to a template: what its config declares, or what alone fits it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from kiln_check.checkpoints.conventions.engine import (
    Holding,
)
from kiln_check.checkpoints.conventions.registry import (
    suffixes,
    tools,
    weight_suffixes,
)
from kiln_check.checkpoints.conventions.template import (
    Scheme,
)
from kiln_check.checkpoints.formats.header import SourceTensor
from kiln_check.checkpoints.links import (
    FAULTY,
    TOO_LARGE,
    Link,
    Unlinked,
)
from kiln_check.checkpoints.module_findings import (
    module_findings,
)
from kiln_check.checkpoints.module_judge import NOT_SPREAD, Judge, given_by, marked_tool
from kiln_check.checkpoints.modules import Module, Suffixes, modules_of
from kiln_check.checkpoints.outcome import (
    BARE,
    PLAIN,
    Outcome,
)
from kiln_check.checkpoints.siblings import Sibling, deviations
from kiln_check.checkpoints.spread import spread_modules
from kiln_check.constants import LARGEST_GROUP, LONGEST_DIMENSION
from kiln_check.report import Finding


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
    deviating = deviations(siblings, in_unread_files)
    unlike = {one.name: one for one in deviating}
    unlinked = [
        one._replace(reason=FAULTY, finding=unlike[one.weight]) if one.weight in unlike else one
        for one in found.unlinked
    ]
    return Held(found.links, unlinked, [*found.findings, *deviating])


def sibling_of(module: Module, outcome: Outcome) -> Sibling:
    """A module as it is compared with its siblings."""
    if not outcome.bare or outcome.sort == PLAIN.sort:
        return Sibling(module, outcome.sort, outcome.lengths)
    template = None if outcome.fit is None else outcome.fit.template.name
    return Sibling(module, BARE, outcome.lengths, template)


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
