"""The screen: the rules' own predicates on columns, and a proof of what no predicate can say.

A slice of the directory that fits the cache is looked at at a time. It may clear too
few tensors, never too many.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_
from types import SimpleNamespace
from typing import Any

import numpy as np

from kiln_check.directory import LEN_DESCRIPTOR, Directory
from kiln_check.rules.container import DataRange, NameRange
from kiln_check.rules.rule import Rule
from kiln_check.rules.subjects import File
from kiln_check.rules.table import RULES
from kiln_check.screen_names import unverified_names
from kiln_check.screen_overlap import overlapping
from kiln_check.screen_subjects import Column, Columns, Others

LINKS = {"scale": "scale_index", "outer": "outer_index"}
"""How a predicate calls another tensor, and the field that points at it."""

ROWS = 16384
"""Tensors in a slice: 512 KiB of directory, and as much again for what is made of it."""


class _Asked:
    """Notes what a predicate asks of a tensor, by answering for none."""

    def __getattr__(self, name: str) -> Any:
        value = _Asked() if name in ("file", *LINKS) else np.empty(0, np.uint64)
        self.__dict__[name] = value
        return value


def _asked(rules: Sequence[type[Rule]]) -> dict[str, Any]:
    """What the predicates of some rules ask of a tensor, by name."""
    asked = _Asked()
    for rule in rules:
        rule.holds(asked)
    return vars(asked)


def _by_applies(rules: Sequence[type[Rule]]) -> list[tuple[Any, list[type[Rule]]]]:
    """Rules by which tensors they are about."""
    groups: dict[Any, list[type[Rule]]] = {}
    for rule in rules:
        groups.setdefault(rule.applies, []).append(rule)
    return list(groups.items())


_ON_COLUMNS = [rule for rule in RULES if rule.for_tensor and rule.on_columns]

_LINKED_RULES = [rule for rule in _ON_COLUMNS if not _asked([rule]).keys().isdisjoint(LINKS)]
"""The rules about another tensor, which may stand anywhere in the directory."""

_LOCAL = _by_applies([rule for rule in _ON_COLUMNS if rule not in _LINKED_RULES])

_LINKED = [(applies, rules, _asked(rules)) for applies, rules in _by_applies(_LINKED_RULES)]

_OF_OTHERS = {name for *_, asked in _LINKED for link in LINKS if link in asked for name in vars(asked[link])}
"""What the rules ask of other tensors."""


def unverified(directory: Directory, rows: int = ROWS) -> list[int]:
    """The tensors of a whole directory that are not proved sound; ascending.

    Raises OSError when the directory or the names can't be read.
    """
    if not directory.descriptors:
        return []
    count = len(directory.descriptors) // LEN_DESCRIPTOR
    if directory.names is None:
        return list(range(count))
    whole = _Whole(File(directory), count)
    for start in range(0, count, rows):
        end = min(start + rows, count)
        whole.take(directory.descriptors.read(start * LEN_DESCRIPTOR, end * LEN_DESCRIPTOR), start)
    whole.follow_links()
    sound = whole.sound
    sound[overlapping(whole.start, whole.end)] = False
    sound[unverified_names(directory.names, whole.ofs_name, whole.len_name, rows)] = False
    indexes: list[int] = np.flatnonzero(~sound).tolist()
    return indexes


class _Whole:
    """What is found out of all tensors, slice by slice.

    Attributes:
        sound: whether a tensor keeps the rules that were looked at.
        start, end: the payload's range in bytes; 0 and 0 if it is empty or out of range.
        ofs_name, len_name: the fields; a name out of range has length 0.
        others: what the rules ask of other tensors, and whether that is sure.
        links: of tensors that point at others: the rules about those, the tensors'
            indexes, what the rules ask of them, and the indexes at which they point.

    """

    def __init__(self, file: File, count: int) -> None:
        self.file = file
        self.sound = np.empty(count, np.bool_)
        self.start = np.empty(count, np.uint64)
        self.end = np.empty(count, np.uint64)
        self.ofs_name = np.empty(count, np.uint32)
        self.len_name = np.empty(count, np.uint16)
        self.others: dict[str, Column] = {}
        self.links: list[tuple[list[type[Rule]], Column, SimpleNamespace, dict[str, Column]]] = []

    def take(self, descriptors: bytes, first: int) -> None:
        """Look at one slice, whose first tensor has the index `first`."""
        t = Columns(self.file, descriptors, first)
        here = slice(first, first + len(t.index))
        held: dict[type[Rule], Column] = {}
        sound = t.sure
        for applies, rules in _LOCAL:
            held.update((rule, rule.holds(t)) for rule in rules)
            keep = reduce(and_, [held[rule] for rule in rules])
            sound = sound & (keep if applies is None else keep | ~applies(t))
        self.sound[here] = sound
        present = held[DataRange] & (t.len_data != 0)
        self.start[here] = np.where(present, t.ofs_data, 0)
        self.end[here] = np.where(present, t.ofs_data + t.len_data, 0)
        self.ofs_name[here] = t.ofs_name
        self.len_name[here] = np.where(held[NameRange], t.len_name, 0)
        self._keep(t, here)

    def _keep(self, t: Columns, here: slice) -> None:
        """Keep of a slice what the rules about other tensors ask."""
        for name in ("sure", *_OF_OTHERS):
            column = getattr(t, name)
            if name not in self.others:
                self.others[name] = np.empty(len(self.sound), column.dtype)
            self.others[name][here] = column
        for applies, rules, asked in _LINKED:
            among = np.flatnonzero(applies(t))
            if among.size:
                some = t.only(among)
                fields = {name: getattr(some, name) for name in asked if name not in ("file", *LINKS)}
                links = {link: getattr(some, LINKS[link]) for link in LINKS if link in asked}
                asker = SimpleNamespace(file=self.file, **fields)
                self.links.append((rules, among + here.start, asker, links))

    def follow_links(self) -> None:
        """Look at what tensors point at, once all have been looked at."""
        all_sure = self.others["sure"].all()
        for rules, indexes, t, links in self.links:
            sound = np.ones(len(indexes), np.bool_)
            for link, column in links.items():
                others = Others(self.others, column)
                setattr(t, link, others)
                if not all_sure:
                    sound &= others.sure
            for rule in rules:
                sound &= rule.holds(t)
            if not sound.all():
                self.sound[indexes[~sound]] = False
