"""The files of one model put together: one file, or shards with or without an index."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kiln_check.checkpoints.checkpoint_rules import finding
from kiln_check.checkpoints.folder import Folder, Place
from kiln_check.checkpoints.formats.header import SourceFile, SourceTensor
from kiln_check.checkpoints.formats.registry import read_file
from kiln_check.checkpoints.formats.splits import Shard, judge_splits
from kiln_check.checkpoints.index import Index, Listed, read_index
from kiln_check.checkpoints.links import AnyName
from kiln_check.checkpoints.shards import Missing, number_of_total
from kiln_check.paths import checkpoint_at
from kiln_check.report import Finding
from kiln_check.spans import FileFingerprint, fingerprint_of
from kiln_check.text import plural, printable, quote

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
        valid_copies: of tensors that are in several files, by name, the file whose copy
            belongs to the model: the one that the index names, else the first.

    """

    path: str
    files: tuple[SourceFile, ...]
    companions: tuple[str, ...]
    configs: Mapping[str, dict[str, Any]]
    in_unread_files: Container[str]
    findings: Sequence[Finding]
    fingerprints: Mapping[str, FileFingerprint]
    consulted: Sequence[str] = ()
    valid_copies: Mapping[str, str] = {}

    def tensors(self) -> dict[str, SourceTensor]:
        """All tensors by name; of two with one name, the one that belongs to the model."""
        return {
            tensor.name: tensor
            for file in self.files
            for tensor in _tensors_of(file)
            if self.valid_copies.get(tensor.name, file.path) == file.path
        }


class _Files(NamedTuple):
    """The files that hold a checkpoint's tensors, and what is wrong with how they belong together."""

    files: Sequence[SourceFile]
    fingerprints: Mapping[str, FileFingerprint]
    in_unread_files: Container[str]
    findings: Sequence[Finding]
    valid_copies: Mapping[str, str]


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Read the headers of the files of the checkpoint that a path means.

    Args:
        path: a .safetensors or .gguf file, an index, or a folder with one checkpoint. The
            configs in a folder belong to its checkpoint.

    Raises:
        OSError: a file can't be read. A shard that is not there is a finding.
        PathError: the path means no checkpoint, or several.

    """
    return read_place(checkpoint_at(os.fspath(path)), with_companions=os.path.isdir(path))


def read_place(place: Place, folder: Folder | None = None, *, with_companions: bool = False) -> Checkpoint:
    """Read the headers of the files of a checkpoint.

    Args:
        place: where they are.
        folder: what is known of their folder, where several checkpoints of it are read.
        with_companions: whether the configs in the folder belong to it; those beside an
            index always do.

    Raises:
        OSError: a file can't be read. A shard that is not there is a finding.

    """
    configs = (Folder(os.path.dirname(place.path)) if folder is None else folder).configs
    read = _read_files(place) if place.files else _read_indexed(place.path)
    by_file = [one for file in read.files for one in file.findings]
    faulty = {one.name for one in by_file if one.rule in UNREAD}
    kept = tuple(configs.fingerprints) if with_companions or not place.files else ()
    return Checkpoint(
        place.path,
        tuple(read.files),
        kept if place.files else (place.path, *kept),
        configs.objects,
        _Unread(read.in_unread_files, faulty) if faulty else read.in_unread_files,
        [*configs.findings, *read.findings, *by_file],
        {**configs.fingerprints, **read.fingerprints},
        place.consulted,
        read.valid_copies,
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


def _tensors_of(file: SourceFile) -> Iterator[SourceTensor]:
    yield from file.tensors
    yield from file.truncated


def _read_files(place: Place) -> _Files:
    """Files without an index."""
    fingerprints = _fingerprints(place.files)
    files = [read_file(path) for path in place.files]
    findings = [] if place.missing is None else [_shards_missing(place.path, place.missing)]
    copies = {name: tensors[0].path for name, tensors in _copies(files).items()}
    doubles = _doubles(files, {}, copies)
    splits = judge_splits(
        [Shard(file, number_of_total(os.path.basename(file.path))) for file in files],
        whole=len(files) > 1 and place.missing is None,
    )
    is_part = place.missing is not None or place.is_part or any(map(_is_unread, files))
    unread: Container[str] = AnyName() if is_part else ()
    return _Files(files, fingerprints, unread, [*findings, *splits, *doubles], copies)


def _read_indexed(path: str) -> _Files:
    """The files that an index names; one that is not there is a finding."""
    own = fingerprint_of(path)
    index = read_index(path)
    folder = os.path.dirname(path)
    by_file: dict[str, list[Listed]] = {}
    for listed in index.weight_map.values():
        by_file.setdefault(listed.file, []).append(listed)
    names = sorted(filter(_is_plain, by_file))
    fingerprints = _fingerprints(os.path.join(folder, name) for name in names)
    files = []
    there = set()
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            files.append(read_file(os.path.join(folder, name)))
            there.add(name)
    copies = _valid_copies(index, files)
    findings = [
        *index.findings,
        *(_file_missing(index, name, by_file[name]) for name in sorted(by_file) if name not in there),
        *_unlisted(index, files),
        *_absent(index, files),
        *_doubles(files, index.weight_map, copies),
        *_wrong_total(index, files),
    ]
    read = {os.path.basename(file.path) for file in files if not _is_unread(file)}
    unread = {name for name, listed in index.weight_map.items() if listed.file not in read}
    return _Files(files, {path: own, **fingerprints}, unread, findings, copies)


def _fingerprints(paths: Iterable[str]) -> dict[str, FileFingerprint]:
    """The states of files by their paths, without those that have none: reading says what is wrong."""
    found = {}
    for path in paths:
        with contextlib.suppress(OSError, ValueError):
            found[path] = fingerprint_of(path)
    return found


def _is_plain(name: str) -> bool:
    """Whether a name is that of a .safetensors file in the same folder."""
    has_path = any(sign in name for sign in "/\\\0") or os.path.basename(name) != name
    return name.endswith(".safetensors") and not has_path


def _file_missing(index: Index, name: str, mentions: Sequence[Listed]) -> Finding:
    if _is_plain(name):
        count = plural(len(mentions), "tensor")
        message = f"the index names {quote(name)} for {count}; there is no such file beside it"
    else:
        message = f"the index names {quote(name)}, which is no .safetensors file beside it"
    first = mentions[0]
    return finding("shard-missing", message, index.path, first.offset, first.length, field="weight_map")


def _shards_missing(path: str, missing: Missing) -> Finding:
    are = "is" if missing.num_missing == 1 else "are"
    message = (
        f"of {missing.total} shards {missing.num_missing} {are} missing, the first {quote(missing.first)}"
    )
    return finding("shard-missing", message, path)


def _unlisted(index: Index, files: Sequence[SourceFile]) -> Iterator[Finding]:
    """Tensors that the index does not name, where it can be read to its end."""
    for file in files if not index.findings else ():
        shown = printable(os.path.basename(file.path))
        for tensor in _tensors_of(file):
            if tensor.name not in index.weight_map:
                message = f"tensor {quote(tensor.name)} is in {shown}, but not in the index"
                place = (tensor.entry_offset, tensor.entry_length)
                yield finding("index-unlisted", message, file.path, *place, name=tensor.name)


def _absent(index: Index, files: Sequence[SourceFile]) -> Iterator[Finding]:
    """Tensors that the index names and that are not where it says."""
    holders: dict[str, list[str]] = {}
    understood: set[str] = set()
    for file in files:
        base = os.path.basename(file.path)
        if not any(one.rule in UNREAD for one in file.findings):
            understood.add(base)
        for tensor in _tensors_of(file):
            holders.setdefault(tensor.name, []).append(base)
    for name, listed in index.weight_map.items():
        found = holders.get(name, [])
        if listed.file in understood and listed.file not in found:
            other = f", but in {found[0]}" if found else ""
            where = printable(f"is in {listed.file}; it is not{other}")
            message = f"the index says that tensor {quote(name)} {where}"
            place = (listed.offset, listed.length)
            yield finding("index-absent", message, index.path, *place, name=name, field="weight_map")


def _copies(files: Sequence[SourceFile]) -> dict[str, list[SourceTensor]]:
    """The tensors that are in several files, by name, in the order of the files."""
    first: dict[str, SourceTensor] = {}
    found: dict[str, list[SourceTensor]] = {}
    for file in files:
        for tensor in _tensors_of(file):
            other = first.setdefault(tensor.name, tensor)
            if other is not tensor:
                found.setdefault(tensor.name, [other]).append(tensor)
    return found


def _valid_copies(index: Index, files: Sequence[SourceFile]) -> dict[str, str]:
    """Of each tensor that is in several files, the file that the index names, else the first."""
    valid = {}
    for name, copies in _copies(files).items():
        listed = index.weight_map.get(name)
        paths = [copy.path for copy in copies]
        named = [path for path in paths if listed is not None and os.path.basename(path) == listed.file]
        valid[name] = (named or paths)[0]
    return valid


def _doubles(
    files: Sequence[SourceFile], weight_map: Mapping[str, Listed], valid_copies: Mapping[str, str]
) -> Iterator[Finding]:
    """Copies of a tensor that do not belong to the model.

    A loader that goes by the index takes the copy that the index names. transformers (from_pretrained, of a
    sharded checkpoint) and vLLM (its iterator over safetensors files) take from the index which files there
    are, and read each whole, by name: the last copy stays. So a copy before the one that the index names is
    left over and does no harm; one after it takes its place.
    """
    order = {file.path: number for number, file in enumerate(files)}
    for name, copies in _copies(files).items():
        valid = valid_copies[name]
        base = os.path.basename(valid)
        listed = weight_map.get(name)
        is_named = listed is not None and listed.file == base
        for copy in copies:
            if copy.path == valid:
                continue
            other = os.path.basename(copy.path)
            both = f"is in {base} and in {other}"
            comes_last = order[copy.path] > order[valid]
            if not is_named:
                which = "and nothing says which of the two counts"
            elif comes_last:
                which = f"the index names {base}, but loaders that read whole files keep the copy in {other}"
            else:
                which = f"the index names {base}, which comes last too; the copy in {other} is left over"
            yield finding(
                "two-shards",
                f"tensor {quote(name)} {printable(f'{both}; {which}')}",
                copy.path,
                copy.entry_offset,
                copy.entry_length,
                name=name,
                value=copy.text(),
                level="error" if comes_last or not is_named else "warning",
            )


def _wrong_total(index: Index, files: Sequence[SourceFile]) -> Iterator[Finding]:
    """A total_size that is the size neither of the named tensors nor of all that the files hold."""
    if index.total_size is None or index.findings:
        return
    lengths = {
        (os.path.basename(file.path), tensor.name): tensor.length
        for file in files
        for tensor in _tensors_of(file)
    }
    named = [(listed.file, name) for name, listed in index.weight_map.items()]
    if any(one not in lengths for one in named):
        return
    total = sum(lengths[one] for one in named)
    said, offset, length = index.total_size
    if said not in (total, sum(lengths.values())):
        message = f"the index says total_size {said}; the tensors that it names have {plural(total, 'byte')}"
        yield finding("index-size", message, index.path, offset, length, field="total_size", value=str(said))
