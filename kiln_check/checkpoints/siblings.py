"""Modules that differ in a number alone have the same tensors, dtypes and shapes.

A module is compared with those whose names differ from its own in one number: the same expert of other
layers, the other experts of its layer. It deviates where, for each such number, at least two siblings agree
on something else, and more of them than on what the module has.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kiln_check.checkpoints.checkpoint_rules import finding
from kiln_check.checkpoints.modules import Module
from kiln_check.checkpoints.outcome import EXTRAS
from kiln_check.report import Finding
from kiln_check.text import plural, quote

_NUMBER = re.compile(r"\d+")


class Sibling(NamedTuple):
    """A module as it is compared.

    Attributes:
        module: the one.
        sort: what only modules of the same sort have in common: "plain", or what it was held to.
        lengths: of its weight in elements, outermost first; None where they are not known.
        template: name of the one that it fits, where no config declares it; None where there is none.

    """

    module: Module
    sort: str
    lengths: tuple[int, ...] | None
    template: str | None = None


def deviations(modules: Sequence[Sibling], in_unread_files: Container[str]) -> list[Finding]:
    """A finding for each module that deviates from what its siblings agree on.

    Args:
        modules: those that no other finding tells of.
        in_unread_files: names of tensors that may be in files that are not read.

    """
    findings: list[Finding] = []
    for family in _families(modules):
        findings += _compared(family, _sort_and_weight, _suffixes, _suffix_finding, in_unread_files)
        quantized = [one for one in family if one.sort != "plain"]
        findings += _compared(quantized, _sort_and_suffixes, _dtypes, _dtype_finding, in_unread_files)
    accused = {one.name for one in findings}
    findings += [one for one in _shape_deviations(modules) if one.name not in accused]
    findings += _lost_extras(modules, in_unread_files)
    return findings


def _families(modules: Iterable[Sibling]) -> list[list[Sibling]]:
    """Modules whose names differ in numbers alone, where they are not all alike."""
    families: dict[str, list[Sibling]] = {}
    for one in modules:
        families.setdefault(_NUMBER.sub("#", one.module.name), []).append(one)
    return [family for family in families.values() if len({(one.sort, _dtypes(one)) for one in family}) > 1]


def _suffixes(one: Sibling) -> frozenset[str]:
    return frozenset(one.module.tensors)


def _dtypes(one: Sibling) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((suffix, tensor.source_dtype) for suffix, tensor in one.module.tensors.items()))


def _sort_and_weight(one: Sibling) -> Hashable:
    weight = one.module.tensors.get(".weight", one.module.tensors.get(""))
    return one.sort, None if weight is None else weight.source_dtype


def _sort_and_suffixes(one: Sibling) -> Hashable:
    return one.sort, _suffixes(one)


def _compared(
    family: Sequence[Sibling],
    group: Callable[[Sibling], Hashable],
    feature: Callable[[Sibling], Hashable],
    report: Callable[[Sibling, Sibling, int], tuple[str, str]],
    in_unread_files: Container[str],
) -> Iterator[Finding]:
    """Findings on modules whose feature deviates from that of most siblings of the same group."""
    groups: dict[Hashable, list[Sibling]] = {}
    for one in family:
        groups.setdefault(group(one), []).append(one)
    for members in groups.values():
        for one, other, count in _deviating(members, feature):
            if one.template is not None and one.template != other.template:
                continue
            suffix, message = report(one, other, count)
            if one.module.name + suffix not in in_unread_files:
                yield _finding(one, suffix, message)


def _deviating(
    members: Sequence[Sibling], feature: Callable[[Sibling], Hashable]
) -> Iterator[tuple[Sibling, Sibling, int]]:
    """Each that deviates, with one that has what most siblings have, and their count."""
    features = [feature(one) for one in members]
    if len(set(features)) < 2:
        return
    beside: dict[tuple[int, str], list[int]] = {}
    keys = []
    for index, one in enumerate(members):
        own = list(_positions(one.module.name))
        keys.append(own)
        for key in own:
            beside.setdefault(key, []).append(index)
    tallies = {key: Counter(features[index] for index in indexes) for key, indexes in beside.items()}
    for index, one in enumerate(members):
        shared = [key for key in keys[index] if len(beside[key]) > 1]
        found = [_outvoted(features[index], tallies[key]) for key in shared]
        if found and all(found):
            most, count = max((one for one in found if one is not None), key=lambda pair: pair[1])
            yield one, next(o for o, f in zip(members, features, strict=True) if f == most), count


def _positions(name: str) -> Iterator[tuple[int, str]]:
    """For each number in a name, the name without it."""
    parts = name.split(".")
    for index, part in enumerate(parts):
        if part.isdecimal():
            yield index, ".".join((*parts[:index], "#", *parts[index + 1 :]))


def _outvoted(own: Hashable, tally: Counter[Hashable]) -> tuple[Hashable, int] | None:
    most, count = tally.most_common(1)[0]
    return (most, count) if most != own and count > tally[own] else None


def _suffix_finding(one: Sibling, other: Sibling, count: int) -> tuple[str, str]:
    lost = [suffix for suffix in other.module.tensors if suffix not in one.module.tensors]
    more = [suffix for suffix in one.module.tensors if suffix not in other.module.tensors]
    suffix = (lost or more)[0]
    called = quote(one.module.name + suffix)
    like = _like(other, suffix, count)
    return suffix, f"{called} is missing; {like} it" if lost else f"{called} is there; {like} none"


def _like(other: Sibling, suffix: str, count: int) -> str:
    have = "has" if count == 1 else "have"
    sample = quote(other.module.name + suffix)
    return f"{plural(count, 'module')} that differ in a number alone, see {sample}, {have}"


def _dtype_finding(one: Sibling, other: Sibling, count: int) -> tuple[str, str]:
    for suffix, tensor in one.module.tensors.items():
        theirs = other.module.tensors[suffix]
        if theirs.source_dtype != tensor.source_dtype:
            break
    called = quote(tensor.name)
    return suffix, f"{called} is {tensor.source_dtype}; {_like(other, suffix, count)} {theirs.source_dtype}"


def _shape_deviations(modules: Sequence[Sibling]) -> Iterator[Finding]:
    """Weights whose shape is the siblings' transposed, or has a length that nothing else in the layer has."""
    families: dict[Hashable, list[Sibling]] = {}
    for one in modules:
        if one.lengths is not None and one.sort != "plain":
            families.setdefault((_NUMBER.sub("#", one.module.name), one.sort), []).append(one)
    layers: dict[str, Counter[int]] | None = None
    for family in families.values():
        for one, other, count in _deviating(family, lambda sibling: sibling.lengths):
            layers = _lengths_by_layer(modules) if layers is None else layers
            if _is_wrong(one, other, layers):
                assert one.lengths is not None
                assert other.lengths is not None
                suffix = next(iter(one.module.tensors))
                message = (
                    f"{quote(one.module.name)} has a weight of {list(one.lengths)} elements; "
                    f"{_like(other, '', count)} {list(other.lengths)}"
                )
                yield _finding(one, suffix, message)


def _lengths_by_layer(modules: Iterable[Sibling]) -> dict[str, Counter[int]]:
    """How many modules of a layer have a length, by the layer's name."""
    found: dict[str, Counter[int]] = {}
    for one in modules:
        lengths = set(one.lengths or ())
        for tensor in one.module.tensors.values():
            if one.lengths is None or len(tensor.shape) == 1:
                lengths.update(tensor.shape)
        found.setdefault(_layer(one.module.name), Counter()).update(lengths)
    return found


def _layer(name: str) -> str:
    parts = name.split(".")
    return ".".join(parts[: next((i + 1 for i, part in enumerate(parts) if part.isdecimal()), len(parts))])


def _is_wrong(one: Sibling, other: Sibling, layers: Mapping[str, Counter[int]]) -> bool:
    assert one.lengths is not None
    assert other.lengths is not None
    if len(one.lengths) == len(other.lengths) >= 2 and one.lengths == (
        *other.lengths[:-2],
        other.lengths[-1],
        other.lengths[-2],
    ):
        return True
    here = layers[_layer(one.module.name)]
    changed = [a for a, b in zip(one.lengths, other.lengths, strict=False) if a != b]
    return len(one.lengths) != len(other.lengths) or any(here[length] < 2 for length in changed)


def _lost_extras(modules: Sequence[Sibling], in_unread_files: Container[str]) -> Iterator[Finding]:
    """Modules of nothing but a scale of activations, lost where siblings with the same parts have one."""
    extras = [one for one in modules if one.module.tensors and EXTRAS.issuperset(one.module.tensors)]
    if not extras:
        return
    wanted = {_NUMBER.sub("#", one.module.name) for one in extras}
    parts: dict[str, set[tuple[str, str]]] = {}
    for one in modules:
        name = one.module.name
        at = name.rfind(".")
        while at > 0:
            parent = name[:at]
            if _NUMBER.sub("#", parent) in wanted:
                parts.setdefault(parent, set()).add((name[at:], one.sort))
            at = name.rfind(".", 0, at)
    present = {one.module.name for one in extras}
    having: dict[Hashable, list[Sibling]] = {}
    for one in extras:
        having.setdefault(_kind(one.module.name, parts), []).append(one)
    lacking: dict[Hashable, list[str]] = {}
    for parent in parts:
        if parent not in present:
            lacking.setdefault(_kind(parent, parts), []).append(parent)
    by_name = {one.module.name: one for one in modules}
    for kind, parents in lacking.items():
        with_it = having.get(kind, [])
        if len(with_it) < 2 or len(parents) >= len(with_it):
            continue
        suffix = next(iter(with_it[0].module.tensors))
        for parent in parents:
            if parent + suffix not in in_unread_files:
                part = by_name[parent + min(parts[parent])[0]]
                message = f"{quote(parent + suffix)} is missing; {_like(with_it[0], suffix, len(with_it))} it"
                yield _finding(part, next(iter(part.module.tensors)), message)


def _kind(name: str, parts: Mapping[str, set[tuple[str, str]]]) -> Hashable:
    """What modules that may lack the same have in common: the name without numbers, and the parts."""
    return _NUMBER.sub("#", name), frozenset(parts.get(name, ()))


def _finding(one: Sibling, suffix: str, message: str) -> Finding:
    at = one.module.tensors.get(suffix) or next(iter(one.module.tensors.values()))
    return finding(
        "unlike-siblings",
        message,
        at.path,
        at.entry_offset,
        at.entry_length,
        name=at.name,
        value=at.text(),
    )
