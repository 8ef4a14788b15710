"""Which tensor of a checkpoint is the scale of which."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping
from typing import NamedTuple

from kiln_check.checkpoints.checkpoint_rules import finding
from kiln_check.checkpoints.config import Config
from kiln_check.checkpoints.conventions.expected import OTHER_WEIGHTS, OUTERS, expected_scales, weights_of
from kiln_check.checkpoints.conventions.forms import FORMS, Form
from kiln_check.checkpoints.conventions.pairs import IN_UNREAD_FILES, MISSING, SHARED, Pair
from kiln_check.checkpoints.formats.header import SourceTensor
from kiln_check.checkpoints.links import Link, Unlinked
from kiln_check.generated.kiln_v2_records import MAX_RANK
from kiln_check.report import Finding
from kiln_check.text import quote

COMPANION_SUFFIXES = (
    *(suffix for suffix, _ in OUTERS),
    ".weight_zero_point",
    ".weight_g_idx",
    ".weight_shape",
    ".biases",
)
"""Suffixes of tensors that a convention looks at beside a weight and its scale."""

PACKED = ("U8", "I8", "U32", "I32", "F8_E4M3", "F8_E5M2", "F4")
"""Dtypes whose elements mean nothing without a scale, where a sibling has one."""


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


def recognise(
    tensors: Mapping[str, SourceTensor],
    config: Config,
    payload: Callable[[SourceTensor], bytes],
    in_unread_files: Container[str] = (),
) -> Recognition:
    """Pair weights with scales, by their names, and judge each pair by its convention.

    Args:
        tensors: all of a checkpoint, by name.
        config: what the files beside it say.
        payload: reads the payload of a small tensor.
        in_unread_files: names of tensors in files of the model that are not read.

    Raises OSError when a payload can't be read.

    """
    found = Recognition([], [], [])
    forms: dict[str, Form] = {}
    for pair, form in _pairs(tensors, config, payload, in_unread_files):
        outcome = None if pair.weight.name in forms else form.judge(pair)
        if outcome is None:
            continue
        forms[pair.weight.name] = form
        if isinstance(outcome, Link):
            found.links.append(outcome)
            continue
        found.unlinked.append(outcome)
        if outcome.finding is not None:
            found.findings.append(outcome.finding)
    _part_shared(tensors, found)
    unpaired = _Unpaired(tensors, config, in_unread_files, forms)
    for tensor in tensors.values():
        if tensor.name not in forms and len(tensor.shape) <= MAX_RANK:
            unpaired.look_at(tensor, found)
    return found


def _pairs(
    tensors: Mapping[str, SourceTensor],
    config: Config,
    payload: Callable[[SourceTensor], bytes],
    in_unread_files: Container[str],
) -> Iterator[tuple[Pair, Form]]:
    """Each weight with each scale that a form gives it; none with more dimensions than Kiln has."""
    for name, scale in tensors.items():
        for form in FORMS:
            if not name.endswith(form.scale):
                continue
            base = name[: -len(form.scale)]
            names = (name, base + form.weight, *(base + suffix for suffix in COMPANION_SUFFIXES))
            weight = tensors.get(base + form.weight)
            if weight is not None and all(
                len(tensors[one].shape) <= MAX_RANK for one in names if one in tensors
            ):
                hints = config.hints_for(base)
                yield Pair(weight, scale, base, hints, tensors, in_unread_files, payload), form


def _part_shared(tensors: Mapping[str, SourceTensor], found: Recognition) -> None:
    """Take back links that claim one tensor: a scale belongs to one weight, and is no weight itself."""
    claims: dict[str, list[Link]] = {}
    for link in found.links:
        for name in filter(None, (link.weight, link.scale, link.outer)):
            claims.setdefault(name, []).append(link)
    parted: set[str] = set()
    for name, links in claims.items():
        if len(links) < 2:
            continue
        weights = " and ".join(f"{quote(link.weight)} ({tensors[link.weight].text()})" for link in links)
        message = f"{quote(name)} ({tensors[name].text()}) belongs to one weight, and both {weights} claim it"
        found.findings.append(_on(tensors[name], "scale-unused", message))
        found.unlinked.extend(
            Unlinked(link.weight, SHARED, quote(name), found.findings[-1])
            for link in links
            if link.weight not in parted
        )
        parted.update(link.weight for link in links)
    if parted:
        found.links[:] = [link for link in found.links if link.weight not in parted]


class _Unpaired:
    """Looks at tensors without a pair: weights whose scale is due, and scales without a weight."""

    def __init__(
        self,
        tensors: Mapping[str, SourceTensor],
        config: Config,
        in_unread_files: Container[str],
        forms: Mapping[str, Form],
    ) -> None:
        """Take all tensors, and the forms by which weights of theirs are paired."""
        self._tensors, self._config, self._in_unread_files = tensors, config, in_unread_files
        self._used = frozenset(forms.values())
        self._siblings = {
            _pattern(tensors[name]): form
            for name, form in forms.items()
            if tensors[name].source_dtype in PACKED
        }

    def look_at(self, tensor: SourceTensor, found: Recognition) -> None:
        """Add what is wrong with a tensor."""
        weights = weights_of(tensor, self._config, self._used)
        module = tensor.name.rpartition(".")[0]
        owners = (*weights, *(module + suffix for suffix in OTHER_WEIGHTS))
        if weights and not any(name in self._tensors or name in self._in_unread_files for name in owners):
            message = f"nothing uses {quote(tensor.name)} ({tensor.text()}): there is {_none_of(weights)}"
            found.findings.append(_on(tensor, "scale-unused", message))
        scales = expected_scales(tensor, self._config, self._tensors) or self._expected_as_of_siblings(tensor)
        if not scales or any(name in self._tensors for name in (*scales, *_named_scales(tensor))):
            return
        if any(name in self._in_unread_files for name in scales):
            found.unlinked.append(Unlinked(tensor.name, IN_UNREAD_FILES, quote(scales[0])))
            return
        detail = f"there is {_none_of(scales)}"
        message = f"{quote(tensor.name)} ({tensor.text()}) has no scale: {detail}"
        fault = _on(tensor, "scale-missing", message)
        found.findings.append(fault)
        found.unlinked.append(Unlinked(tensor.name, MISSING, detail, fault))

    def _expected_as_of_siblings(self, tensor: SourceTensor) -> list[str]:
        """The scale's name, where a weight that differs in numbers alone, such as a layer's, has one."""
        form = self._siblings.get(_pattern(tensor)) if tensor.source_dtype in PACKED else None
        return [] if form is None else [tensor.name[: len(tensor.name) - len(form.weight)] + form.scale]


def _pattern(tensor: SourceTensor) -> tuple[str, str]:
    """What the names of a module in each layer have in common, and the dtype."""
    return re.sub("[0-9]+", "0", tensor.name), tensor.source_dtype


def _named_scales(tensor: SourceTensor) -> list[str]:
    """The names of scales of a weight by any convention."""
    name = tensor.name
    return [name[: len(name) - len(form.weight)] + form.scale for form in FORMS if name.endswith(form.weight)]


def _none_of(names: list[str]) -> str:
    """`no "a"`, `neither "a" nor "b"`."""
    quoted = [quote(name) for name in dict.fromkeys(names)]
    return f"no {quoted[0]}" if len(quoted) == 1 else f"neither {' nor '.join(quoted)}"


def _on(tensor: SourceTensor, rule: str, message: str) -> Finding:
    return finding(
        rule, message, tensor.path, tensor.entry_offset, tensor.entry_length, name=tensor.name, field="name"
    )
