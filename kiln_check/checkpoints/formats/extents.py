"""Where the payloads of a file lie: in order, side by side, and all there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kiln_check.checkpoints.checkpoint_rules import finding
from kiln_check.checkpoints.formats.header import Gap, SourceTensor
from kiln_check.report import Finding, Level
from kiln_check.text import plural, quote


class Payloads(NamedTuple):
    """Tensors of one file by where their payloads lie; see SourceFile."""

    stored: list[SourceTensor]
    truncated: list[SourceTensor]
    gaps: list[Gap]
    findings: list[Finding]


def judge_payloads(
    tensors: Sequence[SourceTensor],
    path: str,
    len_head: int,
    size: int,
    *,
    alignment: int | None = None,
    all_known: bool = True,
) -> Payloads:
    """Sort tensors by their payloads; find what no tensor owns, what two share, what is not there.

    Args:
        tensors: of one file.
        path: the file.
        len_head: where its payloads begin, in bytes.
        size: of the file in bytes.
        alignment: GGUF only: what payloads are padded to, in bytes. Without it they
            follow without padding, each at a multiple of its element's size.
        all_known: whether the header was read without a fault; if not, a gap may
            belong to a tensor that could not be read, and is no finding.

    """
    ordered = sorted(tensors, key=lambda tensor: (tensor.offset, tensor.length))
    stored = [tensor for tensor in ordered if tensor.end <= size]
    truncated = [tensor for tensor in ordered if tensor.end > size]
    findings = _short(truncated, path, size) if truncated else []
    gaps: list[Gap] = []
    reach, reacher = len_head, None
    for tensor in stored:
        if tensor.offset > reach:
            gaps.append(Gap(reach, tensor.offset - reach))
            if all_known and tensor.offset - reach >= (alignment or 1):
                findings.append(_gap(tensor, reacher, reach))
        elif tensor.offset < reach:
            findings.append(_shared(tensor, reacher, reach))
        if tensor.end > reach:
            reach, reacher = tensor.end, tensor
    if reach < size and not truncated:
        gaps.append(Gap(reach, size - reach))
        if all_known and size - reach >= (alignment or 1):
            owner = "" if reacher is None else f", that of {quote(reacher.name)} ({reacher.text()})"
            message = f"{plural(size - reach, 'byte')} after the last payload{owner}, which ends at {reach}"
            findings.append(finding("payload-gap", message, path, reach, size - reach))
    misaligned = [one for one in stored if one.length and one.offset % (alignment or _element_bytes(one))]
    if misaligned:
        findings.append(_misaligned(misaligned, alignment))
    return Payloads(stored, truncated, gaps, findings)


def _short(truncated: Sequence[SourceTensor], path: str, size: int) -> list[Finding]:
    """One finding for all payloads that the file has not, or has not whole."""
    end = max(tensor.end for tensor in truncated)
    first = truncated[0]
    message = (
        f"the file has {plural(size, 'byte')}; its header describes {end}. "
        f"Not all there: {plural(len(truncated), 'tensor')}, the first {quote(first.name)}"
    )
    working = f"{first.offset} + {first.length} = {first.end}"
    return [finding("file-short", message, path, size, 0, name=first.name, field="payload", working=working)]


def _gap(tensor: SourceTensor, reacher: SourceTensor | None, reach: int) -> Finding:
    owner = "the header" if reacher is None else f"that of {quote(reacher.name)} ({reacher.text()})"
    message = (
        f"the payload of {quote(tensor.name)} starts at {tensor.offset}; {owner} ends at {reach}, "
        f"and the bytes between belong to no tensor"
    )
    return finding("payload-gap", message, tensor.path, reach, tensor.offset - reach, name=tensor.name)


def _shared(tensor: SourceTensor, reacher: SourceTensor | None, reach: int) -> Finding:
    owner = "the header" if reacher is None else f"that of {quote(reacher.name)}"
    message = f"the payload of {quote(tensor.name)} starts at {tensor.offset}; {owner} ends at {reach}"
    shared = min(tensor.end, reach) - tensor.offset
    return finding("payload-overlap", message, tensor.path, tensor.offset, max(shared, 0), name=tensor.name)


def _misaligned(tensors: Sequence[SourceTensor], asked: int | None) -> Finding:
    """One finding for all payloads out of alignment; a warning where the format asks for none."""
    first = tensors[0]
    alignment = asked or _element_bytes(first)
    message = (
        f"the payload of {quote(first.name)} ({first.text()}) starts at {first.offset}, "
        f"not at a multiple of {alignment}"
    )
    if len(tensors) > 1:
        message += f"; {len(tensors) - 1} more are out of alignment"
    working = f"{first.offset} mod {alignment} = {first.offset % alignment}"
    place = (first.path, first.offset, first.length)
    level: Level = "error" if asked else "warning"
    return finding("payload-align", message, *place, name=first.name, working=working, level=level)


def _element_bytes(tensor: SourceTensor) -> int:
    return max(1, tensor.type.bits // 8)
