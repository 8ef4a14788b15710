"""Clears checkpoints of safetensors in which nothing is out of the usual, in little time.

Like the screen of a Kiln file it only clears. Where anything is unusual it says nothing, and the checkpoint
is read tensor by tensor. It proves that

- headers and index are clean (`clean_headers`);
- each module is sound, one being judged for all of the same tensors, dtypes and shapes, and that those that
  differ in numbers alone are alike;
- no rule of the layout page is broken: the head of a Kiln file with one module of each kind is checked. The
  others differ in names, offsets and indexes, which are the writer's own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import NamedTuple

from kiln_check.checking import check_source
from kiln_check.checkpoints.clean_headers import (
    CleanIndex,
    Lengths,
    Signature,
    UnusualError,
    read_clean,
    read_clean_index,
)
from kiln_check.checkpoints.conventions.engine import Members, Parameters
from kiln_check.checkpoints.conventions.registry import (
    readers,
    schemes_of,
    suffixes,
    tools,
    weight_suffixes,
)
from kiln_check.checkpoints.conventions.template import METADATA, Scheme
from kiln_check.checkpoints.folder import Folder, Place
from kiln_check.checkpoints.formats.files import open_file
from kiln_check.checkpoints.formats.header import SourceFile, SourceTensor
from kiln_check.checkpoints.formats.safetensors import TYPES
from kiln_check.checkpoints.links import Unlinked
from kiln_check.checkpoints.module_judge import NOT_SPREAD, Judge, given_by, marked_tool
from kiln_check.checkpoints.module_matching import Held, add_outcome, sibling_of
from kiln_check.checkpoints.modules import Module, Suffixes
from kiln_check.checkpoints.outcome import EXTRAS, Outcome
from kiln_check.checkpoints.plan import PREFIX, add_link, new_tensor
from kiln_check.checkpoints.siblings import deviations
from kiln_check.checkpoints.summary import file_lines, link_lines, weights_of
from kiln_check.constants import LARGEST_CLEARED, LONGEST_SMALL_PAYLOAD
from kiln_check.report import OK, Report, Weight
from kiln_check.source import BytesSource, Source
from kiln_check.spans import FileFingerprint, OpenFiles
from kiln_check.writer import NewTensor, lay_out

_NUMBER = re.compile(r"\d+")


def clear(place: Place, folder: Folder) -> Report | None:
    """The report on a checkpoint in which nothing is out of the usual; else None.

    Args:
        place: where its files are.
        folder: what is known of their folder.

    Raises OSError when a file can't be read.

    """
    try:
        return _Clearing(place, folder).report()
    except UnusualError:
        return None


class _Part(NamedTuple):
    """Where a small tensor lies that tells of its module."""

    path: str
    offset: int
    signature: Signature


class _Clearing:
    """What is known of a checkpoint so far."""

    def __init__(self, place: Place, folder: Folder) -> None:
        self._place, self._folder = place, folder
        self._lengths: dict[Signature, Lengths] = {}
        self._modules: dict[str, list[str | Signature]] = {}
        self._parts: dict[str, _Part] = {}
        self._metadata: dict[str, str] = {}
        self._num_tensors = self._size = 0
        self._suffixes = Suffixes(suffixes())
        self._suffix_lengths: dict[str, int] = {}
        self._telling = readers().keys()
        self._shared = {name for tool in tools() for name in tool.spread}

    def report(self) -> Report:
        """The report; raises UnusualError where something is out of the usual, and OSError."""
        place, configs = self._place, self._folder.configs
        if place.missing is not None or place.is_part or configs.findings:
            raise UnusualError("a part of a checkpoint")
        kept = () if place.files else (place.path, *configs.fingerprints)
        if not all(os.path.basename(path).isprintable() for path in kept):
            raise UnusualError("a file's name out of the usual")
        paths = self._read()
        schemes = schemes_of({**configs.objects, METADATA: self._metadata})
        groups, judged = self._judged(schemes)
        if any(stem.startswith(PREFIX) for stem, _ in judged):
            raise UnusualError("a name that import keeps for itself")
        _compare(groups, judged)
        _check_rules(groups)
        links = [link for _, group in judged for link in group.held.links]
        unlinked = [one for stem, group in judged for one in group.unlinked(stem)]
        files = [SourceFile(path, 0, 0, (), (), (), ()) for path in paths]
        notes = (*file_lines(files), *link_lines(links, unlinked))
        linked = tuple(weight for stem, group in judged for weight in group.linked(stem))
        _, verified, unverified = weights_of((), unlinked, ())
        count = self._num_tensors + len(paths) + len(kept)
        return Report(place.path, OK, count, (), None, notes, linked, verified, unverified)

    def _read(self) -> Sequence[str]:
        """Read all files, and return their paths in order."""
        if self._place.files:
            for path in self._place.files:
                self._add(path, None)
            return self._place.files
        index = read_clean_index(self._place.path)
        folder = os.path.dirname(self._place.path)
        names = sorted(set(index.weight_map.values()))
        total = 0
        for name in names:
            total += self._add(os.path.join(folder, name), index)
        if self._num_tensors != len(index.weight_map) or index.total_size not in (None, total):
            raise UnusualError("an index of another checkpoint")
        return [os.path.join(folder, name) for name in names]

    def _add(self, path: str, index: CleanIndex | None) -> int:
        """Put a file's tensors among the modules, and return how many bytes they have."""
        try:
            header = read_clean(path, self._lengths)
        except FileNotFoundError as error:
            raise UnusualError("a file that is not there") from error
        if index is not None:
            files = map(index.weight_map.get, header.signatures)
            if list(files).count(os.path.basename(path)) != len(header.signatures):
                raise UnusualError("a tensor that the index has elsewhere")
        self._num_tensors += len(header.signatures)
        self._size += header.size
        if self._size > LARGEST_CLEARED:
            raise UnusualError("more bytes than a Kiln file may hold")
        self._metadata.update(header.metadata)
        modules, lengths, telling = self._modules, self._suffix_lengths, self._telling
        for (name, signature), offset in zip(header.signatures.items(), header.offsets, strict=True):
            dot = name.rfind(".")
            leaf = name[dot + 1 :]
            length = lengths.get(leaf)
            if length is None or dot < 0:
                stem, suffix = self._parted(name, leaf)
            else:
                stem, suffix = name[: len(name) - length], name[len(name) - length :]
            found = modules.get(stem)
            if found is None:
                modules[stem] = [suffix, signature]
            else:
                found += (suffix, signature)
            if suffix in telling:
                self._parts[name] = _Part(path, offset, signature)
        return header.size - header.len_head

    def _parted(self, name: str, leaf: str) -> tuple[str, str]:
        """A name's module and suffix; the suffix's length is kept for others of the same leaf."""
        length = self._suffixes.length_after(leaf)
        if length is not None:
            self._suffix_lengths[leaf] = length
        return self._suffixes.parted(name)

    def _judged(self, schemes: Sequence[Scheme]) -> tuple[list[_Group], list[tuple[str, _Group]]]:
        """All groups of modules, and each module's, in order."""
        kinds = _kinds(self._modules.values())
        judge = Judge(schemes, (), marked_tool(suffix for kind in kinds.values() for suffix in kind.members))
        groups: dict[tuple[int, int], _Group] = {}
        judged = []
        with OpenFiles(open_file) as files:
            for stem, found in self._modules.items():
                kind = kinds[tuple(found)]
                if not kind.has_weight and stem[stem.rfind(".") + 1 :] in self._shared:
                    raise UnusualError("experts that share a scale")
                given = self._given(stem, kind, files) if kind.is_telling else NOT_SPREAD
                signature = kind.number, tuple(given.items()) if kind.is_telling else None
                outcome = judge.outcome(stem, kind.members, given, signature)
                group = groups.get((kind.number, id(outcome)))
                if group is None:
                    group = groups[kind.number, id(outcome)] = _Group(stem, kind, outcome)
                judged.append((stem, group))
        self._modules.clear()
        return list(groups.values()), judged

    def _given(self, stem: str, kind: _Kind, files: OpenFiles[Source]) -> Parameters:
        """What the payloads of a module's small tensors give."""

        def payload(tensor: SourceTensor) -> bytes:
            return files.get(tensor.path).read(tensor.offset, min(tensor.length, LONGEST_SMALL_PAYLOAD))

        tensors = {}
        for suffix in kind.members:
            part = self._parts.get(stem + suffix)
            if part is not None:
                tensors[suffix] = _source(stem + suffix, part.signature, part.path, part.offset)
        return given_by(Module(stem, tensors), payload, NOT_SPREAD)


class _Kind(NamedTuple):
    """Modules of the same tensors, dtypes and shapes.

    Attributes:
        number: of the kind.
        members: dtype and shape by suffix.
        has_weight: whether one of them is a weight by its name.
        is_telling: whether a payload gives values.

    """

    number: int
    members: Members
    has_weight: bool
    is_telling: bool


def _kinds(modules: Iterable[list[str | Signature]]) -> dict[tuple[str | Signature, ...], _Kind]:
    telling = readers().keys()
    found: dict[tuple[str | Signature, ...], _Kind] = {}
    for module in modules:
        key = tuple(module)
        if key not in found:
            members = _members(key)
            has_weight = not members.keys().isdisjoint(weight_suffixes())
            found[key] = _Kind(len(found), members, has_weight, not telling.isdisjoint(members))
    return found


def _members(key: tuple[str | Signature, ...]) -> dict[str, tuple[str, tuple[int, ...]]]:
    members = {}
    for suffix, signature in zip(key[::2], key[1::2], strict=True):
        assert isinstance(suffix, str)
        if suffix in members:
            raise UnusualError("a tensor in two files")
        members[suffix] = str(signature[0]), tuple(one for one in signature[1:] if isinstance(one, int))
    return members


def _source(name: str, signature: Signature, path: str = "", offset: int = 0) -> SourceTensor:
    dtype, shape = str(signature[0]), tuple(one for one in signature[1:] if isinstance(one, int))
    type_ = TYPES[dtype]
    return SourceTensor(name, dtype, type_, shape, path, offset, prod(shape) * type_.bits // 8, 0, 0)


class _Group:
    """Modules of one kind and one outcome, by the first of them."""

    def __init__(self, stem: str, kind: _Kind, outcome: Outcome) -> None:
        self.stem, self.kind, self.outcome = stem, kind, outcome
        self.held = Held([], [], [])
        add_outcome(self.held, self.module(stem), outcome)
        if self.held.findings:
            raise UnusualError("a module that is at fault")

    def module(self, stem: str) -> Module:
        """One of its modules."""
        members = self.kind.members.items()
        return Module(
            stem, {suffix: _source(stem + suffix, (dtype, *shape)) for suffix, (dtype, shape) in members}
        )

    def linked(self, stem: str) -> Iterator[Weight]:
        """The linked weight of one of its modules."""
        cut = len(self.stem)
        for link in self.held.links:
            outer = None if link.outer is None else stem + link.outer[cut:]
            yield Weight(
                stem + link.weight[cut:], link.tool, link.template, None, stem + link.scale[cut:], outer
            )

    def unlinked(self, stem: str) -> Iterator[Unlinked]:
        """The weight of one of its modules that stays as it is."""
        cut = len(self.stem)
        for one in self.held.unlinked:
            yield one._replace(weight=stem + one.weight[cut:])


def _compare(groups: Sequence[_Group], judged: Sequence[tuple[str, _Group]]) -> None:
    """Raise UnusualError where modules that differ in numbers alone may not be alike."""
    families: dict[str, list[tuple[str, _Group]]] = {}
    for one in judged:
        families.setdefault(_NUMBER.sub("#", one[0]), []).append(one)
    mixed = [
        one for family in families.values() if len({id(group) for _, group in family}) > 1 for one in family
    ]
    siblings = [sibling_of(group.module(stem), group.outcome) for stem, group in mixed]
    if siblings and deviations(siblings, ()):
        raise UnusualError("a module unlike its siblings")
    if any(EXTRAS.issuperset(group.kind.members) for group in groups):
        _compare_extras(judged)


def _compare_extras(judged: Sequence[tuple[str, _Group]]) -> None:
    """Raise UnusualError where a module may have lost a scale of activations that stood alone."""
    extras = {stem for stem, group in judged if EXTRAS.issuperset(group.kind.members)}
    alike = {_NUMBER.sub("#", stem) for stem in extras}
    seen: set[str] = set()
    for stem, _ in judged:
        at = stem.rfind(".")
        while at > 0 and (parent := stem[:at]) not in seen:
            seen.add(parent)
            if parent not in extras and _NUMBER.sub("#", parent) in alike:
                raise UnusualError("a module that may have lost a scale")
            at = stem.rfind(".", 0, at)


def _check_rules(groups: Sequence[_Group]) -> None:
    """Raise UnusualError where a rule of the layout page finds fault with one module of each group."""
    tensors: dict[str, NewTensor] = {}
    for number, group in enumerate(groups):
        module = group.module(group.stem)
        fingerprint = FileFingerprint(0, 0, number, 0)
        tensors.update({one.name: new_tensor(one, fingerprint) for one in module.tensors.values()})
    for group in groups:
        for link in group.held.links:
            add_link(link, tensors)
    layout = lay_out(tensors)
    if check_source(BytesSource(layout.head, layout.size), "").findings:
        raise UnusualError("a rule that is broken")
