"""The files of one model put together: one file, or shards with or without an index."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Container, Mapping, Sequence
from typing import NamedTuple

from kiln_check.interop.config import Config
from kiln_check.interop.described import SourceFile, SourceTensor
from kiln_check.interop.files import open_file
from kiln_check.interop.index import INDEX_SUFFIX, Index, Listed, read_index
from kiln_check.interop.neighbours import Neighbours
from kiln_check.interop.pairs import Beside
from kiln_check.interop.rules import finding
from kiln_check.interop.safetensors import read_safetensors
from kiln_check.output import Stamp, stamp_of
from kiln_check.render import printable
from kiln_check.rules.finding import Finding
from kiln_check.rules.view import number_of, quote
from kiln_check.source import Source

Reader = Callable[[Source, str], SourceFile]


def _read_gguf(source: Source, path: str) -> SourceFile:
    from kiln_check.interop.gguf import read_gguf

    return read_gguf(source, path)


READERS: dict[str, Reader] = {".safetensors": read_safetensors, ".gguf": _read_gguf}
"""By the end of a file's name."""

NUMBERED = re.compile(r"(.+)-(\d{5,6})-of-(\d{5,6})(\.safetensors|\.gguf)", re.DOTALL)
"""The name of a shard: which one of how many."""


UNREAD = ("header-length", "header-text", "header-entry", "source-rank")
"""Findings after which a file may hold tensors that are not known."""


class Checkpoint(NamedTuple):
    """A model's files, from their headers.

    Attributes:
        path: the file that stands for all: the index, or the first.
        files: those that hold tensors, in order.
        companions: paths of other files that belong to the model: the index and configs.
        config: what the configs say.
        elsewhere: names of tensors in files of the model that were not read.
        findings: what is wrong with the files and how they belong together.
        stamps: of each file that was read, by its path, the state before that.
        consulted: paths of indexes that were read only to learn which names a file.

    """

    path: str
    files: tuple[SourceFile, ...]
    companions: tuple[str, ...]
    config: Config
    elsewhere: Container[str]
    findings: list[Finding]
    stamps: Mapping[str, Stamp]
    consulted: Sequence[str] = ()

    def tensors(self) -> dict[str, SourceTensor]:
        """All tensors by name; of two with one name, the first."""
        found: dict[str, SourceTensor] = {}
        for file in self.files:
            for tensor in (*file.tensors, *file.lost):
                found.setdefault(tensor.name, tensor)
        return found


def read_checkpoint(
    path: str,
    shards: Sequence[str] = (),
    *,
    with_companions: bool = False,
    neighbours: Neighbours | None = None,
) -> Checkpoint:
    """Read the headers of a checkpoint's files.

    Args:
        path: a .safetensors or .gguf file, or an index.
        shards: the files of a checkpoint without an index; `path` is one of them.
        with_companions: whether the config files beside it belong to it; those beside
            an index always do.
        neighbours: what is known of folders already, where several are checked.

    Raises:
        OSError: a file can't be read. A shard that is not there is a finding.
        ValueError: the file's name has none of the endings.

    """
    neighbours = Neighbours() if neighbours is None else neighbours
    configs = neighbours.configs(os.path.dirname(path))
    findings = list(configs.findings)
    stamps = dict(configs.stamps)
    companions = list(configs.stamps) if with_companions or path.endswith(INDEX_SUFFIX) else []
    consulted: Sequence[str] = ()
    elsewhere: Container[str] = ()
    if path.endswith(INDEX_SUFFIX):
        stamps[path] = stamp_of(path)
        index = read_index(path)
        findings += index.findings
        files = _read_listed(index, findings, stamps)
        read = {os.path.basename(file.path) for file in files}
        elsewhere = {name for name, listed in index.weight_map.items() if listed.file not in read}
        _compare(index, files, findings)
        companions = [path, *companions]
    else:
        files = [_read_stamped(shard, stamps) for shard in shards or (path,)]
        if shards:
            missing = _missing_numbers(shards)
            findings += missing
            elsewhere = Beside() if missing else ()
        else:
            listed_elsewhere = neighbours.elsewhere(path)
            if listed_elsewhere is not None:
                elsewhere = listed_elsewhere
            elif NUMBERED.fullmatch(os.path.basename(path)):
                elsewhere = Beside()
            consulted = neighbours.consulted
    _find_doubles(files, findings)
    for file in files:
        findings += file.findings
    faulty = {one.name for file in files for one in file.findings if one.rule in UNREAD}
    return Checkpoint(
        path,
        tuple(files),
        tuple(companions),
        configs.config,
        _Unread(elsewhere, faulty) if faulty else elsewhere,
        findings,
        stamps,
        consulted,
    )


class _Unread(Container[str]):
    """Names in files that were not read, and names whose entries could not be."""

    def __init__(self, elsewhere: Container[str], faulty: Container[str | None]) -> None:
        self._elsewhere = elsewhere
        self._faulty = faulty

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self._faulty or name in self._elsewhere)


def _read_stamped(path: str, stamps: dict[str, Stamp]) -> SourceFile:
    """Read the header of one file; see `read_file`. Its state before that goes among `stamps`."""
    with contextlib.suppress(OSError, ValueError):  # reading says what is wrong
        stamps[path] = stamp_of(path)
    return read_file(path)


def read_file(path: str) -> SourceFile:
    """Read the header of one file.

    Raises OSError when it can't be read, ValueError where its name has none of the
    endings.
    """
    reader = reader_of(path)
    source = open_file(path)
    try:
        return reader(source, path)
    finally:
        source.close()


def reader_of(path: str) -> Reader:
    """What reads the header of a file of this name.

    Raises ValueError where the name has none of the endings.
    """
    for suffix, reader in READERS.items():
        if path.endswith(suffix):
            return reader
    raise ValueError(f"{quote(path)} ends with none of {', '.join(READERS)}")


def _read_listed(index: Index, findings: list[Finding], stamps: dict[str, Stamp]) -> list[SourceFile]:
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
                files.append(_read_stamped(os.path.join(folder, name), stamps))
            except FileNotFoundError:
                count = number_of(len(mentions), "tensor")
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
        for tensor in (*file.tensors, *file.lost):
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
        for tensor in (*file.tensors, *file.lost):
            other = first.setdefault(tensor.name, tensor)
            if other is not tensor:
                both = f"is in {os.path.basename(other.path)} and in {os.path.basename(tensor.path)}"
                message = f"tensor {quote(tensor.name)} {printable(both)}"
                place = (tensor.entry_offset, tensor.entry_length)
                findings.append(finding("two-shards", message, tensor.path, *place, name=tensor.name))
