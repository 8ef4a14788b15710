"""What is linked by which template, and what is not and why, as lines of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from kiln_check.checkpoints.formats.ggml_types import about
from kiln_check.checkpoints.formats.header import SourceTensor
from kiln_check.checkpoints.links import Link, Unlinked
from kiln_check.constants import FINDINGS_SHOWN
from kiln_check.text import quote


def link_lines(links: Sequence[Link], unlinked: Sequence[Unlinked]) -> Iterator[str]:
    """A line for each kind of link, and for each reason, with the names of those not linked."""
    kinds = Counter(_kind(link) for link in links)
    for kind, count in sorted(kinds.items(), key=_most_first):
        yield f"linked {count}: {kind}"
    by_reason: dict[str, list[Unlinked]] = {}
    for one in unlinked:
        by_reason.setdefault(one.reason, []).append(one)
    for reason, ones in by_reason.items():
        yield f"not linked {len(ones)}: {reason}"
        for one in ones[:FINDINGS_SHOWN]:
            yield f"  {quote(one.weight)}: {one.detail}"
        if len(ones) > FINDINGS_SHOWN:
            yield f"  and {len(ones) - FINDINGS_SHOWN} more"


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
