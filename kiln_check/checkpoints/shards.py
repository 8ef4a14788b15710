"""Shards without an index: files of one checkpoint, told by the numbers in their names.

`model-00001-of-00002` says how many there are. Other numbers, `out-00001` or `rank-0-part-1`, number shards
where the files hold different tensors; the same tensors under other numbers are other models, such as
`epoch-1` and `epoch-2`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import count
from typing import NamedTuple

NUMBER_OF_TOTAL = re.compile(r"(.*?)([0-9]+)([-_]of[-_])([0-9]+)(.*)", re.DOTALL)
"""A shard's name that says which one of how many it is, as `model-00001-of-00002.fp16.safetensors`."""

FREELY_NUMBERED = (".safetensors",)
"""How the names end that may have other numbers; gguf-split writes "-of-" alone."""

_NUMBER = re.compile(r"[0-9]+")

TensorNames = Callable[[str], Collection[str]]
"""Gives the names of the tensors in a file."""


def number_of_total(name: str) -> tuple[int, int] | None:
    """Which of how many files one is by its name; None where the name does not say."""
    found = NUMBER_OF_TOTAL.fullmatch(name)
    return None if found is None else (int(found[2]), int(found[4]))


class Missing(NamedTuple):
    """Shards that are not there.

    Attributes:
        num_missing: how many.
        total: how many shards there are to be.
        first: the name of the first that is missing.

    """

    num_missing: int
    total: int
    first: str


class Shards(NamedTuple):
    """Files that make one checkpoint.

    Attributes:
        names: of the files, in order.
        missing: what their numbers leave out; None where they leave nothing out.

    """

    names: tuple[str, ...]
    missing: Missing | None = None


def shards_among(names: Iterable[str], tensor_names: TensorNames) -> list[Shards]:
    """Part the names of one folder's files into checkpoints; a file without a number is one by itself.

    Args:
        names: of files of checkpoints.
        tensor_names: is asked for files whose names differ in numbers alone, and don't say
            how many there are.

    """
    totals: dict[tuple[object, ...], list[str]] = {}
    alike: dict[str, list[str]] = {}
    found = []
    for name in sorted(names):
        numbered = NUMBER_OF_TOTAL.fullmatch(name)
        if numbered is not None:
            stem, _, of, total, rest = numbered.groups()
            totals.setdefault((stem, of, int(total), rest), []).append(name)
        elif name.endswith(FREELY_NUMBERED) and _NUMBER.search(name):
            alike.setdefault(_NUMBER.sub("#", name), []).append(name)
        else:
            found.append(Shards((name,)))
    found += [Shards(tuple(_by_number(one)), _missing_of_total(one)) for one in totals.values()]
    for group in alike.values():
        found += _freely_numbered(_by_number(group), tensor_names)
    return found


def _numbers(name: str) -> tuple[int, ...]:
    return tuple(map(int, _NUMBER.findall(name)))


def _by_number(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (_numbers(name), name))


def _missing_of_total(names: Sequence[str]) -> Missing | None:
    """What is missing of shards that say how many there are, counted from 1, or from 0 where there is a 0."""
    first = NUMBER_OF_TOTAL.fullmatch(names[0])
    assert first is not None
    stem, number, of, total, rest = first.groups()
    found = [NUMBER_OF_TOTAL.fullmatch(name) for name in names]
    there = {int(one[2]) for one in found if one is not None}
    begin = 0 if 0 in there else 1
    end = begin + int(total)
    absent = int(total) - sum(begin <= one < end for one in there)
    if absent <= 0:
        return None
    lowest = next(one for one in count(begin) if one not in there)
    return Missing(absent, int(total), f"{stem}{lowest:0{len(number)}d}{of}{total}{rest}")


def _freely_numbered(names: list[str], tensor_names: TensorNames) -> list[Shards]:
    """Files whose names differ in numbers alone: one checkpoint, or one for each first number.

    Numbers that leave out more than there are number no shards.
    """
    if len(names) == 1:
        return [Shards(tuple(names))]
    numbers = [_numbers(name) for name in names]
    differing = [place for place, values in enumerate(zip(*numbers, strict=True)) if len(set(values)) > 1]
    missing = _missing_between(names, numbers, differing)
    if (missing is None or missing.num_missing <= len(names)) and not _are_same_tensors(names, tensor_names):
        return [Shards(tuple(names), missing)]
    if len(differing) < 2:
        return [Shards((name,)) for name in names]
    parts: dict[int, list[str]] = {}
    for name, values in zip(names, numbers, strict=True):
        parts.setdefault(values[differing[0]], []).append(name)
    return [shards for part in parts.values() for shards in _freely_numbered(part, tensor_names)]


def _are_same_tensors(names: Sequence[str], tensor_names: TensorNames) -> bool:
    """Whether most tensors of one of the files are in others too."""
    by_file = [set(tensor_names(name)) for name in names]
    holders = Counter(tensor for tensors in by_file for tensor in tensors)
    return any(2 * sum(holders[tensor] > 1 for tensor in tensors) > len(tensors) for tensors in by_file)


def _missing_between(
    names: Sequence[str], numbers: Sequence[tuple[int, ...]], differing: Sequence[int]
) -> Missing | None:
    """What the numbers leave out: each that differs counts from 0 or 1 up, anew for those before it."""
    values: dict[tuple[int, ...], set[int]] = {}
    example: dict[tuple[int, ...], str] = {}
    lowest = [min(one[place] for one in numbers) for place in differing]
    for name, own in zip(names, numbers, strict=True):
        path = tuple(own[place] for place in differing)
        for depth, value in enumerate(path):
            values.setdefault(path[:depth], set()).add(value)
            example.setdefault(path[:depth], name)
    absent, first = 0, ""
    for prefix, there in sorted(values.items()):
        depth = len(prefix)
        begin = min(lowest[depth], 1)
        gaps = max(there) + 1 - begin - len(there)
        if gaps and not absent:
            number = next(one for one in count(begin) if one not in there)
            first = _with_number(example[prefix], differing[depth], number)
        absent += gaps
    return Missing(absent, len(names) + absent, first) if absent else None


def _with_number(name: str, place: int, number: int) -> str:
    """A name with another number at a place, written as wide as the one that is there."""
    found = list(_NUMBER.finditer(name))[place]
    return f"{name[: found.start()]}{number:0{len(found[0])}d}{name[found.end() :]}"
