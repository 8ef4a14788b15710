"""GGUF files that one was split into: what each says of all of them, beside their names.

What readers refuse is as in llama.cpp, src/llama-model-loader.cpp: the first file
says how many there are and how many tensors they hold, each file which one it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kiln_check.checkpoints.checkpoint_rules import finding
from kiln_check.checkpoints.formats.header import SourceFile, SplitKey
from kiln_check.checkpoints.formats.registry import GGUF
from kiln_check.report import Finding
from kiln_check.text import plural

NUMBER, COUNT, TENSORS = "split.no", "split.count", "split.tensors.count"


class Shard(NamedTuple):
    """A file, and which of how many its name says that it is, counted from 1; None where it says neither."""

    file: SourceFile
    numbered: tuple[int, int] | None


def judge_splits(shards: Sequence[Shard], *, whole: bool) -> Iterator[Finding]:
    """Find what the headers of split files say other than their names, and than each other.

    Args:
        shards: of one checkpoint, by name.
        whole: whether all files are there by their names.

    """
    split = [shard for shard in shards if shard.file.split is not None]
    for shard in split:
        yield from _against_name(shard)
    if not whole or len(split) < 2:
        return
    said = [shard for shard in split if shard.file.split]
    if said:
        yield from _lacking(split)
        yield from _tensors(split)
        return
    message = f"none of {plural(len(split), 'file')} has {COUNT}; llama.cpp loads the first alone"
    yield finding("split-count", message, split[0].file.path, field=COUNT, level="warning")


def _against_name(shard: Shard) -> Iterator[Finding]:
    """Number and count as the header has them, and as the name."""
    number, count = _said(shard, NUMBER), _said(shard, COUNT)
    if shard.numbered is not None:
        in_name, total = shard.numbered
        if count is not None and max(count.value, 1) != total:
            yield _finding(shard, COUNT, f"{COUNT} is {count.value}; by its name it is one of {total} files")
        if number is not None and number.value != in_name - 1:
            fault = f"{NUMBER} is {number.value}, counted from 0; by its name it is file {in_name}"
            yield _finding(shard, NUMBER, fault)
    elif count is not None and count.value > 1 and shard.file.path.endswith(GGUF.suffix):
        others = f"-00001-of-{count.value:05d}{GGUF.suffix}"
        fault = f"{COUNT} is {count.value}; llama.cpp finds the others only by a name that ends with {others}"
        yield _finding(shard, COUNT, fault)


def _lacking(shards: Sequence[Shard]) -> Iterator[Finding]:
    """Keys that a loader looks for and a file has not."""
    for position, shard in enumerate(shards):
        for key in (NUMBER,) if position else (COUNT, TENSORS):
            if _said(shard, key) is None:
                yield _finding(shard, key, f"the header has no {key}, which the other files have or ask for")


def _tensors(shards: Sequence[Shard]) -> Iterator[Finding]:
    """How many tensors the first file says that all hold."""
    said = _said(shards[0], TENSORS)
    held = sum(len(shard.file.tensors) + len(shard.file.truncated) for shard in shards)
    if said is not None and said.value != held and not any(_has_unread(shard.file) for shard in shards):
        fault = f"{TENSORS} is {said.value}; {plural(len(shards), 'file')} hold {plural(held, 'tensor')}"
        yield _finding(shards[0], TENSORS, fault)


def _has_unread(file: SourceFile) -> bool:
    """Whether an entry of the header could not be read."""
    return any(one.rule.startswith(("header-", "source-", "duplicate-")) for one in file.findings)


def _said(shard: Shard, key: str) -> SplitKey | None:
    return (shard.file.split or {}).get(key)


def _finding(shard: Shard, key: str, message: str) -> Finding:
    said = _said(shard, key)
    place = (0, 0) if said is None else (said.offset, said.length)
    return finding("split-count", message, shard.file.path, *place, field=key)
