"""The files of one model put together: one file, or shards with or without an index."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple

from kiln_check.checkpoints.checkpoint_rules import finding
from kiln_check.checkpoints.formats.header import SourceFile, SourceTensor
from kiln_check.checkpoints.formats.registry import SUFFIXES, read_file
from kiln_check.checkpoints.formats.splits import Shard, judge_splits
from kiln_check.checkpoints.index import INDEX_SUFFIX, Index, Listed, read_index
from kiln_check.checkpoints.links import AnyName
from kiln_check.checkpoints.surroundings import Surroundings
from kiln_check.report import Finding
from kiln_check.spans import FileFingerprint, fingerprint_of
from kiln_check.text import plural, printable, quote

NUMBERED = re.compile(rf"(.+)-(\d{{5,6}})-of-(\d{{5,6}})({'|'.join(map(re.escape, SUFFIXES))})", re.DOTALL)
"""The name of a shard: which one of how many."""


UNREAD = (
    "not-weights",
    "header-magic",
    "header-version",
    "header-length",
    "header-text",
    "header-entry",
    "source-rank",
)
"""Findings after which a file may hold tensors that are not known."""


class Checkpoint(NamedTuple):
    """A model's files, from their headers.

    Attributes:
        path: the file that stands for all: the index, or the first.
        files: those that hold tensors, in order.
        companions: paths of other files that belong to the model: the index and configs.
        configs: what the configs hold, by file name.
        in_unread_files: names of tensors in files of the model that were not read.
        findings: what is wrong with the files and how they belong together.
        fingerprints: of each file that was read, by its path, the state before that.
        consulted: paths of indexes that were read only to learn which names a file.

    """

    path: str
    files: tuple[SourceFile, ...]
    companions: tuple[str, ...]
    configs: Mapping[str, dict[str, Any]]
    in_unread_files: Container[str]
    findings: list[Finding]
    fingerprints: Mapping[str, FileFingerprint]
    consulted: Sequence[str] = ()

    def tensors(self) -> dict[str, SourceTensor]:
        """All tensors by name; of two with one name, the first."""
        found: dict[str, SourceTensor] = {}
        for file in self.files:
            for tensor in (*file.tensors, *file.truncated):
                found.setdefault(tensor.name, tensor)
        return found


def read_checkpoint(
    path: str,
    shards: Sequence[str] = (),
    *,
    with_companions: bool = False,
    surroundings: Surroundings | None = None,
) -> Checkpoint:
    """Read the headers of a checkpoint's files.

    Args:
        path: a file of a format that is read, or an index.
        shards: the files of a checkpoint without an index; `path` is one of them.
        with_companions: whether the config files beside it belong to it; those beside
            an index always do.
        surroundings: what is known of folders already, where several are checked.

    Raises:
        OSError: a file can't be read. A shard that is not there is a finding.
        ValueError: neither a file's name nor its first bytes are those of a format.

    """
    surroundings = Surroundings() if surroundings is None else surroundings
    configs = surroundings.configs(os.path.dirname(path))
    findings = list(configs.findings)
    fingerprints = dict(configs.fingerprints)
    companions = list(configs.fingerprints) if with_companions or path.endswith(INDEX_SUFFIX) else []
    consulted: Sequence[str] = ()
    in_unread_files: Container[str] = ()
    if path.endswith(INDEX_SUFFIX):
        fingerprints[path] = fingerprint_of(path)
        index = read_index(path)
        findings += index.findings
        files = _read_listed(index, findings, fingerprints)
        read = {os.path.basename(file.path) for file in files if not _is_unread(file)}
        in_unread_files = {name for name, listed in index.weight_map.items() if listed.file not in read}
        _compare(index, files, findings)
        companions = [path, *companions]
    else:
        files = [_read_fingerprinted(shard, fingerprints) for shard in shards or (path,)]
        if shards:
            missing = _missing_numbers(shards)
            findings += missing
            in_unread_files = AnyName() if missing or any(map(_is_unread, files)) else ()
        else:
            listed_in_other_files = surroundings.in_unread_files(path)
            if listed_in_other_files is not None:
                in_unread_files = listed_in_other_files
            elif NUMBERED.fullmatch(os.path.basename(path)):
                in_unread_files = AnyName()
            consulted = surroundings.consulted
    split = [Shard(file, _numbered(file.path)) for file in files]
    findings += judge_splits(
        split, whole=bool(shards) and "shard-missing" not in {one.rule for one in findings}
    )
    _find_doubles(files, findings)
    for file in files:
        findings += file.findings
    faulty = {one.name for file in files for one in file.findings if one.rule in UNREAD}
    return Checkpoint(
        path,
        tuple(files),
        tuple(companions),
        configs.objects,
        _Unread(in_unread_files, faulty) if faulty else in_unread_files,
        findings,
        fingerprints,
        consulted,
    )


def _is_unread(file: SourceFile) -> bool:
    """Whether a finding on the whole file leaves all of its tensors unknown."""
    return any(one.name is None and one.rule in UNREAD for one in file.findings)


class _Unread(Container[str]):
    """Names in files that were not read, and names whose entries could not be."""

    def __init__(self, in_unread_files: Container[str], faulty: Container[str | None]) -> None:
        self._in_unread_files = in_unread_files
        self._faulty = faulty

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self._faulty or name in self._in_unread_files)


def _read_fingerprinted(path: str, fingerprints: dict[str, FileFingerprint]) -> SourceFile:
    """Read the header of one file; see `read_file`. Its state before that goes among `fingerprints`."""
    with contextlib.suppress(OSError, ValueError):  # reading says what is wrong
        fingerprints[path] = fingerprint_of(path)
    return read_file(path)


def _read_listed(
    index: Index, findings: list[Finding], fingerprints: dict[str, FileFingerprint]
) -> list[SourceFile]:
    """The files that an index names; one that is not there is a finding."""
    folder = os.path.dirname(index.path)
    by_file: dict[str, list[Listed]] = {}
    for listed in index.weight_map.values():
        by_file.setdefault(listed.file, []).append(listed)
    files = []
    for name, mentions in sorted(by_file.items()):
        fault = None
        if not _is_plain(name):
            fault = f"the index names {quote(name)}, which is no .safetensors file beside it"
        else:
            try:
                files.append(_read_fingerprinted(os.path.join(folder, name), fingerprints))
            except FileNotFoundError:
                count = plural(len(mentions), "tensor")
                fault = f"the index names {quote(name)} for {count}; there is no such file beside it"
        if fault is not None:
            first = mentions[0]
            findings.append(
                finding("shard-missing", fault, index.path, first.offset, first.length, field="weight_map")
            )
    return files


def _is_plain(name: str) -> bool:
    """Whether a name is that of a .safetensors file in the same folder."""
    has_path = any(sign in name for sign in "/\\\0") or os.path.basename(name) != name
    return name.endswith(".safetensors") and not has_path


def _compare(index: Index, files: Sequence[SourceFile], findings: list[Finding]) -> None:
    """Each tensor is where the index says, and the index says it of each."""
    holders: dict[str, list[str]] = {}
    understood: set[str] = set()
    for file in files:
        base = os.path.basename(file.path)
        shown = printable(base)
        if not any(one.rule in UNREAD for one in file.findings):
            understood.add(base)
        for tensor in (*file.tensors, *file.truncated):
            holders.setdefault(tensor.name, []).append(base)
            if tensor.name not in index.weight_map and not index.findings:
                message = f"tensor {quote(tensor.name)} is in {shown}, but not in the index"
                place = (tensor.entry_offset, tensor.entry_length)
                findings.append(finding("index-unlisted", message, file.path, *place, name=tensor.name))
    for name, listed in index.weight_map.items():
        found = holders.get(name, [])
        if listed.file in understood and listed.file not in found:
            other = f", but in {found[0]}" if found else ""
            where = printable(f"is in {listed.file}; it is not{other}")
            message = f"the index says that tensor {quote(name)} {where}"
            place = (listed.offset, listed.length)
            findings.append(
                finding("index-absent", message, index.path, *place, name=name, field="weight_map")
            )


def _numbered(path: str) -> tuple[int, int] | None:
    """Which of how many files one is by its name, counted from 1; None where the name does not say."""
    match = NUMBERED.fullmatch(os.path.basename(path))
    return None if match is None else (int(match[2]), int(match[3]))


def _missing_numbers(shards: Sequence[str]) -> list[Finding]:
    """What is missing of shards that are numbered."""
    found = [match for shard in shards if (match := NUMBERED.fullmatch(os.path.basename(shard)))]
    if not found:
        return []
    stem, _, total, suffix = found[0].groups()
    there = {int(match[2]) for match in found}
    missing = [number for number in range(1, int(total) + 1) if number not in there]
    if not missing:
        return []
    first = f"{stem}-{missing[0]:05d}-of-{total}{suffix}"
    are = "is" if len(missing) == 1 else "are"
    message = f"of {int(total)} shards {len(missing)} {are} missing, the first {quote(first)}"
    return [finding("shard-missing", message, shards[0])]


def _find_doubles(files: Sequence[SourceFile], findings: list[Finding]) -> None:
    first: dict[str, SourceTensor] = {}
    for file in files:
        for tensor in (*file.tensors, *file.truncated):
            other = first.setdefault(tensor.name, tensor)
            if other is not tensor:
                both = f"is in {os.path.basename(other.path)} and in {os.path.basename(tensor.path)}"
                message = f"tensor {quote(tensor.name)} {printable(both)}"
                place = (tensor.entry_offset, tensor.entry_length)
                findings.append(finding("two-shards", message, tensor.path, *place, name=tensor.name))
