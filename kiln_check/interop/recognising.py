"""Which tensor of a checkpoint is the scale of which."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from typing import NamedTuple

from kiln_check.interop.config import Config
from kiln_check.interop.conventions import E8M0_CALLED, FORMS, OUTERS, Form, scale_is_due
from kiln_check.interop.described import SourceTensor
from kiln_check.interop.pairs import ELSEWHERE, MISSING, Link, Pair, Unlinked
from kiln_check.interop.rules import finding
from kiln_check.rules.finding import Finding
from kiln_check.rules.view import quote

SURE_SCALES = (".weight_scale", ".weight_scale_inv")
"""Suffixes that only a scale has; others are also used for tensors of other meaning."""


class Recognition(NamedTuple):
    """What became of the pairs that names make.

    Attributes:
        links: those that Kiln can hold.
        unlinked: weights that stay as they are, with the reason.
        findings: scales that are missing, unused, or of a wrong shape.

    """

    links: list[Link]
    unlinked: list[Unlinked]
    findings: list[Finding]


class Beside:
    """Names that may be in files that are not read: all of them."""

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str)


def recognise(
    tensors: Mapping[str, SourceTensor],
    config: Config,
    payload: Callable[[SourceTensor], bytes],
    elsewhere: Container[str] = (),
) -> Recognition:
    """Pair weights with scales, by their names, and judge each pair by its convention.

    Args:
        tensors: all of a checkpoint, by name.
        config: what the files beside it say.
        payload: reads the payload of a small tensor.
        elsewhere: names of tensors in files of the model that are not read.

    Raises OSError when a payload can't be read.

    """
    found = Recognition([], [], [])
    paired: set[str] = set()
    for pair, form in _pairs(tensors, config, payload, elsewhere):
        outcome = form.judge(pair)
        if outcome is None or pair.weight.name in paired:
            continue
        paired.add(pair.weight.name)
        if isinstance(outcome, Link):
            found.links.append(outcome)
            continue
        found.unlinked.append(outcome)
        if outcome.fault is not None:
            found.findings.append(outcome.fault)
    for tensor in tensors.values():
        if tensor.name not in paired:
            _look_at_unpaired(tensor, tensors, config, elsewhere, found)
    return found


def _pairs(
    tensors: Mapping[str, SourceTensor],
    config: Config,
    payload: Callable[[SourceTensor], bytes],
    elsewhere: Container[str],
) -> Iterator[tuple[Pair, Form]]:
    """Each weight with each scale that a form gives it."""
    for name, scale in tensors.items():
        for form in FORMS:
            if not name.endswith(form.scale):
                continue
            base = name[: -len(form.scale)]
            weight = tensors.get(base + form.weight)
            if weight is not None:
                hints = config.of(base)
                yield Pair(weight, scale, base, hints, tensors, elsewhere, payload), form


def _look_at_unpaired(
    tensor: SourceTensor,
    tensors: Mapping[str, SourceTensor],
    config: Config,
    elsewhere: Container[str],
    found: Recognition,
) -> None:
    """A tensor without a pair: a weight whose scale is due, or a scale without a weight."""
    weights = _weights_of(tensor)
    if weights and not any(name in tensors or name in elsewhere for name in weights):
        message = f"nothing uses {quote(tensor.name)} ({tensor.text()}): there is no {quote(weights[0])}"
        found.findings.append(_on(tensor, "scale-unused", message))
    scales = _scales_due(tensor, config)
    if not scales or any(name in tensors for name in scales):
        return
    if any(name in elsewhere for name in scales):
        found.unlinked.append(Unlinked(tensor.name, ELSEWHERE, f"{quote(scales[0])}"))
        return
    message = f"{quote(tensor.name)} ({tensor.text()}) has no scale: there is no {quote(scales[0])}"
    fault = _on(tensor, "scale-missing", message)
    found.findings.append(fault)
    found.unlinked.append(Unlinked(tensor.name, MISSING, f"there is no {quote(scales[0])}", fault))


def _weights_of(tensor: SourceTensor) -> list[str]:
    """The names of weights that a scale or outer scale may belong to; none for any other tensor."""
    name = tensor.name
    for suffix, weights in OUTERS:
        if name.endswith(suffix):
            return [name[: -len(suffix)] + weight for weight in weights]
    is_scale = tensor.called in (*E8M0_CALLED, "F8_E4M3") or name.endswith(SURE_SCALES)
    return [
        name[: -len(form.scale)] + form.weight for form in FORMS if is_scale and name.endswith(form.scale)
    ]


def _scales_due(tensor: SourceTensor, config: Config) -> list[str]:
    """The names of which one must be there for a weight; none where no scale is due."""
    name = tensor.name
    due = []
    for form in FORMS:
        if form.weight and name.endswith(form.weight):
            module = name[: -len(form.weight)]
            if scale_is_due(tensor, form.weight, config.of(module)):
                due.append(module + form.scale)
    return due


def _on(tensor: SourceTensor, rule: str, message: str) -> Finding:
    return finding(
        rule, message, tensor.path, tensor.entry_offset, tensor.entry_length, name=tensor.name, field="name"
    )
