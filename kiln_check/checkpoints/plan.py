"""A checkpoint as the tensors of one Kiln file.

The directory has the order of the bytes in the files, so that a file is given back
by writing one payload after the other: its head, under the name
`kiln.source/head/<file>`, then every tensor that follows up to the next head or
companion. Bytes between payloads are tensors too, `kiln.source/gap/<file>/<offset>`, and
so is a copy of a tensor that belongs to another file.
An index or config is one tensor, `kiln.source/file/<file>`.
"""

from __future__ import annotations

import os
from collections.abc import Container, Mapping
from typing import NamedTuple

from kiln_check.checkpoints.checkpoint import Checkpoint
from kiln_check.checkpoints.checkpoint_rules import ORDER, finding
from kiln_check.checkpoints.conventions.registry import schemes_of
from kiln_check.checkpoints.conventions.template import METADATA
from kiln_check.checkpoints.formats.files import open_file
from kiln_check.checkpoints.formats.header import Gap, SourceFile, SourceTensor
from kiln_check.checkpoints.links import Link, Unlinked
from kiln_check.checkpoints.module_matching import hold_modules
from kiln_check.constants import LONGEST_NAME, LONGEST_SMALL_PAYLOAD
from kiln_check.report import Finding
from kiln_check.spans import FileFingerprint, OpenFiles, Span
from kiln_check.text import quote
from kiln_check.writer import NewTensor

PREFIX = "kiln.source/"
HEAD = PREFIX + "head/"
GAP = PREFIX + "gap/"
FILE = PREFIX + "file/"


class Plan(NamedTuple):
    """What an import would write.

    Attributes:
        checkpoint: where it comes from.
        tensors: by name, in the order of the directory.
        links: the pairs that are linked.
        unlinked: the weights that are not, with the reason.
        findings: what is wrong beside the rules of the layout page, in verdict order.

    """

    checkpoint: Checkpoint
    tensors: dict[str, NewTensor]
    links: list[Link]
    unlinked: list[Unlinked]
    findings: list[Finding]


def plan(checkpoint: Checkpoint) -> Plan:
    """Plan the import of a checkpoint; no payload is read but small ones that tell a shape or a format.

    Raises OSError when one can't be read.
    """
    sources = checkpoint.tensors()
    findings = list(checkpoint.findings)
    with OpenFiles(open_file) as files:

        def payload(tensor: SourceTensor) -> bytes:
            """As far as the file holds it, and no more than a small one has."""
            return files.get(tensor.path).read(tensor.offset, min(tensor.length, LONGEST_SMALL_PAYLOAD))

        metadata = {key: value for file in checkpoint.files for key, value in file.metadata.items()}
        schemes = schemes_of({**checkpoint.configs, METADATA: metadata})
        held = hold_modules(sources, schemes, payload, checkpoint.in_unread_files)
    findings += held.findings
    tensors: dict[str, NewTensor] = {}
    for file in checkpoint.files:
        of_file, faults = _stored(file, checkpoint)
        tensors.update(of_file)
        findings += faults
    for path in checkpoint.companions:
        fingerprint = checkpoint.fingerprints[path]
        name, fault = _kept_name(FILE, path)
        tensors[name] = _bytes_of(Span(path, 0, fingerprint.size, fingerprint))
        findings += fault
    links = [link for link in held.links if add_link(link, tensors)]
    findings.sort(key=lambda one: ORDER[one.rule])
    return Plan(checkpoint, tensors, links, held.unlinked, findings)


def parts_of(file: SourceFile, leftover: Container[str] = ()) -> list[tuple[str, SourceTensor | Gap]]:
    """What follows a file's head, in the order of its bytes, by the names that import gives.

    Tensors whose names are in `leftover` belong to another file; they are bytes here.
    """
    base = _escaped(os.path.basename(file.path))
    gaps = list(file.gaps)
    parts: list[tuple[str, SourceTensor | Gap]] = []
    for tensor in file.tensors:
        if tensor.name not in leftover:
            parts.append((tensor.name, tensor))
        else:
            gaps.append(Gap(tensor.offset, tensor.length))
    parts += [(f"{GAP}{base}/{gap.offset}", gap) for gap in gaps]
    return sorted(parts, key=lambda part: (part[1].offset, part[1].length))


def _stored(file: SourceFile, checkpoint: Checkpoint) -> tuple[dict[str, NewTensor], list[Finding]]:
    """A file's head, its tensors and its gaps, in the order of its bytes; and those that can't be stored."""
    fingerprint = checkpoint.fingerprints[file.path]
    name, findings = _kept_name(HEAD, file.path)
    tensors = {name: _bytes_of(Span(file.path, 0, file.len_head, fingerprint))}
    leftover = {name for name, path in checkpoint.valid_copies.items() if path != file.path}
    for name, part in parts_of(file, leftover):
        if not isinstance(part, SourceTensor):
            tensors[name] = _bytes_of(Span(file.path, part.offset, part.length, fingerprint))
            continue
        fault = _storing_fault(part)
        if fault is None:
            tensors[name] = new_tensor(part, fingerprint)
        else:
            findings.append(fault)
    return tensors, findings


def _bytes_of(span: Span) -> NewTensor:
    return NewTensor("u8", [span.length], span)


def new_tensor(tensor: SourceTensor, fingerprint: FileFingerprint) -> NewTensor:
    """A tensor as import writes it, not linked; its file is in the fingerprint's state."""
    _, tag, block_elements, block_bytes = tensor.type
    span = Span(tensor.path, tensor.offset, tensor.length, fingerprint)
    return NewTensor(
        tensor.type.dtype,
        tensor.shape,
        span,
        foreign_tag=tag,
        block_elements=block_elements,
        block_bytes=block_bytes,
    )


def _storing_fault(tensor: SourceTensor) -> Finding | None:
    """Why a descriptor can't hold a tensor at all, if it can't."""
    place = (tensor.entry_offset, tensor.entry_length)
    length = len(tensor.name.encode())
    if length > LONGEST_NAME:
        message = f"the name {quote(tensor.name)} has {length} bytes; the most is {LONGEST_NAME}"
    elif tensor.name.startswith(PREFIX):
        message = f"tensor {quote(tensor.name)} has a name that import keeps for itself"
    else:
        return None
    return finding("source-name", message, tensor.path, *place, name=tensor.name, field="name")


def _kept_name(prefix: str, path: str) -> tuple[str, list[Finding]]:
    """A name of import's own for bytes of a file that are no tensor; and what is wrong with the file's."""
    base = os.path.basename(path)
    escaped = _escaped(base)
    if base == escaped:
        return prefix + base, []
    message = f"the file's name {quote(base)} can't be kept in a Kiln file"
    return prefix + escaped, [finding("source-name", message, path)]


def _escaped(name: str) -> str:
    """A file's name without what no name of a tensor may have."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return ascii(name)
    has_control = any(sign < " " or "\x7f" <= sign <= "\x9f" for sign in name)
    return ascii(name) if has_control else name


def add_link(link: Link, tensors: dict[str, NewTensor]) -> bool:
    """Set what a link says; False where one of its tensors can't be stored."""
    members = [link.weight, link.scale, *([link.outer] if link.outer is not None else [])]
    if not all(name in tensors for name in members):
        return False
    tensors[link.weight] = tensors[link.weight]._replace(
        dtype=link.dtype,
        shape=link.shape,
        scale=link.scale,
        outer=link.outer,
        axis=link.axis,
        group_size=link.group_size,
    )
    tensors[link.scale] = tensors[link.scale]._replace(dtype=link.scale_dtype)
    return True


def unlink(made: Plan, link: Link, sources: Mapping[str, SourceTensor], reason: Unlinked) -> None:
    """Take a link back: both tensors are again as the checkpoint, `sources`, has them."""
    for name in (link.weight, link.scale):
        made.tensors[name] = new_tensor(sources[name], made.checkpoint.fingerprints[sources[name].path])
    made.unlinked.append(reason)
