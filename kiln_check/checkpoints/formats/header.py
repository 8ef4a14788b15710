"""What a checkpoint's header says: files, and the tensors in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

from kiln_check.constants import BITS
from kiln_check.report import Finding


class Type(NamedTuple):
    """How a dtype of another format is stored in Kiln.

    Attributes:
        dtype: a name of the layout page's table.
        foreign_tag: foreign only: the other format's code of the block layout.
        block_elements: foreign only: elements in one block.
        block_bytes: foreign only: bytes in one block.

    """

    dtype: str
    foreign_tag: int = 0
    block_elements: int = 0
    block_bytes: int = 0

    @property
    def bits(self) -> int:
        """Width of an element; 0 for foreign."""
        return BITS[self.dtype]


class SourceTensor(NamedTuple):
    """A tensor where it lies in a checkpoint.

    Attributes:
        name: as the checkpoint has it.
        source_dtype: the dtype as the checkpoint calls it, such as "F8_E4M3" or "Q4_K".
        type: the same in Kiln.
        shape: length of each dimension in elements, outermost first.
        path: the file that it lies in.
        offset: where its payload starts, in bytes from the start of the file.
        length: size of its payload in bytes.
        entry_offset: where the file's header describes it, in bytes from the start
            of the file.
        entry_length: size of that description in bytes.

    """

    name: str
    source_dtype: str
    type: Type
    shape: tuple[int, ...]
    path: str
    offset: int
    length: int
    entry_offset: int
    entry_length: int

    @property
    def end(self) -> int:
        """The first byte after the payload."""
        return self.offset + self.length

    @property
    def num_elements(self) -> int:
        """Number of elements; exact."""
        return prod(self.shape)

    def text(self) -> str:
        """Dtype and shape: `F8_E4M3 [64, 6]`."""
        return f"{self.source_dtype} {list(self.shape)}"


class Gap(NamedTuple):
    """Bytes of a file that belong to no tensor and not to its header."""

    offset: int
    length: int


class SplitKey(NamedTuple):
    """What a key of a split GGUF file says, and where key and value stand: offset and length in bytes."""

    value: int
    offset: int
    length: int


class SourceFile(NamedTuple):
    """One file of a checkpoint, from its header.

    Attributes:
        path: the file.
        size: in bytes.
        len_head: bytes before the payloads: all of the header.
        tensors: those whose payload the file holds, in the order of their payloads.
        truncated: those whose payload it does not hold, or not whole.
        gaps: bytes between payloads or after the last.
        findings: what is wrong with the file.
        metadata: what the header says besides, as text; of safetensors only.
        split: what the header says of the files that one was split into, by key; None
            for a format that says nothing of it.

    """

    path: str
    size: int
    len_head: int
    tensors: Sequence[SourceTensor]
    truncated: Sequence[SourceTensor]
    gaps: Sequence[Gap]
    findings: Sequence[Finding]
    metadata: Mapping[str, str] = {}
    split: Mapping[str, SplitKey] | None = None
