"""The files of a checkpoint, what is linked by which template, and what is not and why, as lines of text."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kiln_check.checkpoints.formats.ggml_types import about, is_known
from kiln_check.checkpoints.formats.header import SourceFile, SourceTensor
from kiln_check.checkpoints.links import COUNT, FAULTY, IN_UNREAD_FILES, NOT_KNOWN, Link, Unlinked
from kiln_check.constants import FINDINGS_SHOWN
from kiln_check.report import Weight
from kiln_check.text import quote


class Weights(NamedTuple):
    """The quantized weights of a checkpoint; see `Report`."""

    linked: tuple[Weight, ...]
    verified: tuple[Weight, ...]
    unverified: tuple[Weight, ...]


def link_lines(links: Sequence[Link], unlinked: Sequence[Unlinked]) -> Iterator[str]:
    """What is linked and what is verified, a line for each template; then what is not, with names."""
    kinds = Counter(_kind(link) for link in links)
    for kind, count in sorted(kinds.items(), key=_most_first):
        yield f"linked {count}: {kind}"
    kept = Counter(f"{one.template}, not linked: {one.reason}" for one in unlinked if is_verified(one))
    for kind, count in sorted(kept.items(), key=_most_first):
        yield f"verified {count}: {kind}"
    by_reason: dict[str, list[Unlinked]] = {}
    for one in unlinked:
        if not is_verified(one):
            by_reason.setdefault(one.reason, []).append(one)
    for reason, ones in by_reason.items():
        yield f"not verified {len(ones)}: {reason}"
        for one in ones[:FINDINGS_SHOWN]:
            yield f"  {quote(one.weight)}{': ' if one.detail else ''}{one.detail}"
        if len(ones) > FINDINGS_SHOWN:
            yield f"  and {len(ones) - FINDINGS_SHOWN} more"


def is_verified(one: Unlinked) -> bool:
    """Whether a weight that is not linked fits a template."""
    return one.template is not None and one.reason not in (IN_UNREAD_FILES, NOT_KNOWN, FAULTY, COUNT)


def weights_of(
    links: Iterable[Link], unlinked: Iterable[Unlinked], tensors: Iterable[SourceTensor]
) -> Weights:
    """The weights of a report, but for those that a finding tells of.

    Args:
        links: those that Kiln links.
        unlinked: those that stay as they are.
        tensors: all of the checkpoint; GGUF's types that are blocks with scales count as verified.

    """
    linked = [Weight(one.weight, one.tool, one.template, None, one.scale, one.outer) for one in links]
    verified: list[Weight] = []
    unverified: list[Weight] = []
    for one in unlinked:
        weight = Weight(one.weight, one.tool, one.template, one.reason)
        (verified if is_verified(one) else unverified).append(weight)
    foreign = [one for one in tensors if one.type.dtype == "foreign"]
    verified += [
        Weight(one.name, "GGUF", one.source_dtype, about(one.type)) for one in foreign if is_known(one.type)
    ]
    unverified += [
        Weight(one.name, "GGUF", None, about(one.type)) for one in foreign if not is_known(one.type)
    ]
    return Weights(tuple(linked), tuple(verified), tuple(unverified))


def file_lines(files: Sequence[SourceFile]) -> Iterator[str]:
    """A line with the names of a checkpoint's files, where they are several."""
    names = [os.path.basename(file.path) for file in files]
    if len(names) > 1:
        more = [f"{len(names) - FINDINGS_SHOWN} more"] if len(names) > FINDINGS_SHOWN else []
        yield f"files {len(names)}: {', '.join([*names[:FINDINGS_SHOWN], *more])}"


def foreign_lines(tensors: Iterable[SourceTensor]) -> Iterator[str]:
    """A line for each type of GGUF that Kiln has not, with what is known of it."""
    foreign = (tensor for tensor in tensors if tensor.type.dtype == "foreign")
    kinds = Counter(f"{tensor.source_dtype}, {about(tensor.type)}" for tensor in foreign)
    for kind, count in sorted(kinds.items(), key=_most_first):
        yield f"foreign {count}: {kind}"


def _kind(link: Link) -> str:
    scheme = 1 if link.outer is None else 2
    return f"{link.template}, scheme {scheme}, {link.dtype} with {link.scale_dtype} scales"


def _most_first(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]
