"""The index of a sharded checkpoint: which tensor is in which file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kiln_check.checkpoints.checkpoint_rules import finding
from kiln_check.checkpoints.formats.files import open_file
from kiln_check.checkpoints.formats.json_scan import (
    JsonError,
    Member,
    Members,
    Text,
    after_space,
    skip_value,
    string,
)
from kiln_check.constants import LONGEST_INDEX
from kiln_check.report import Finding
from kiln_check.text import quote

INDEX_SUFFIX = ".index.json"

_INDEX_NAME = re.compile(r"(.+)\.index(?:\.[^.]+)?\.json", re.DOTALL)
"""With a variant before the end, such as fp16, as diffusers and transformers name them."""

_WHOLE_NUMBER = re.compile(r"([0-9]{1,20})(?:\.0+)?")


def is_index_name(name: str) -> bool:
    """Whether a file of this name is an index: `X.index.json` or `X.index.<variant>.json`."""
    return _INDEX_NAME.fullmatch(name) is not None


def is_safetensors_index_name(name: str) -> bool:
    """Whether a file of this name is an index of safetensors files, and not one of PyTorch's own."""
    found = _INDEX_NAME.fullmatch(name)
    return found is not None and found[1].endswith(".safetensors")


class Listed(NamedTuple):
    """Where an index says that a tensor is: a file's name, and where it says so."""

    file: str
    offset: int
    length: int


class TotalSize(NamedTuple):
    """What an index says that all tensors have in bytes, and where it says so."""

    size: int
    offset: int
    length: int


class Index(NamedTuple):
    """An index.

    Attributes:
        path: its file.
        weight_map: for each tensor by its name, where the index says that it is.
        total_size: of its metadata; None where there is none, or no whole number.
        findings: what is wrong with the index by itself.

    """

    path: str
    weight_map: Mapping[str, Listed]
    total_size: TotalSize | None
    findings: Sequence[Finding]


def read_index(path: str) -> Index:
    """Read an index.

    Raises OSError when it can't be read.
    """
    source = open_file(path)
    try:
        size = source.size()
        if size > LONGEST_INDEX:
            message = f"the index has {size} bytes; {LONGEST_INDEX} are read"
            return Index(path, {}, None, [finding("header-length", message, path, 0, size)])
        raw = source.read(0, size)
    finally:
        source.close()
    reading = _Reading(path, Text(raw))
    try:
        reading.read()
    except UnicodeDecodeError as error:
        message = f"the index is not UTF-8: byte {error.start} is 0x{raw[error.start]:02x}"
        reading.findings.append(finding("header-text", message, path, error.start, 1))
    except JsonError as error:
        offset = reading.text.byte_offset(error.position)
        message = f"the index is not JSON as it should be at byte {offset}: {error}"
        reading.findings.append(finding("header-text", message, path, offset, min(1, size - offset)))
    return Index(path, reading.weight_map, reading.total_size, reading.findings)


class _Reading:
    """What is known of an index so far; a fault in the middle leaves what came before it."""

    def __init__(self, path: str, text: Text) -> None:
        self.path = path
        self.text = text
        self.weight_map: dict[str, Listed] = {}
        self.total_size: TotalSize | None = None
        self.findings: list[Finding] = []

    def read(self) -> None:
        """Raise JsonError for anything but an object with a weight_map."""
        characters = self.text.decode()
        top = Members(characters, after_space(characters, 0), self._read_value)
        keys = [member.key for member in top]
        if "weight_map" not in keys:
            raise JsonError("there is no weight_map", 0)
        if after_space(characters, top.end) != len(characters):
            raise JsonError("more after the object's end", top.end)
        if keys.count("weight_map") > 1:
            self.findings.append(finding("duplicate-key", '"weight_map" stands twice', self.path))
        elif not self.weight_map:
            self.findings.append(finding("index-absent", "the index names no tensor", self.path))

    def _read_value(self, characters: str, position: int, key: str) -> tuple[object, int]:
        if key == "weight_map":
            return None, self._read_weight_map(characters, position)
        if key == "metadata" and characters[position : position + 1] == "{":
            return None, self._read_metadata(characters, position)
        return None, skip_value(characters, position)

    def _read_metadata(self, characters: str, position: int) -> int:
        def read_value(characters: str, position: int, key: str) -> tuple[str, int]:
            end = skip_value(characters, position)
            return characters[position:end] if key == "total_size" else "", end

        metadata = Members(characters, position, read_value)
        for member in metadata:
            number = _WHOLE_NUMBER.fullmatch(member.value)
            if number is not None:
                self.total_size = TotalSize(int(number[1]), *self._place(member))
        return metadata.end

    def _read_weight_map(self, characters: str, position: int) -> int:
        weight_map = Members(characters, position, string)
        for member in weight_map:
            place = self._place(member)
            if member.key not in self.weight_map:
                self.weight_map[member.key] = Listed(member.value, *place)
            elif not self.findings or self.findings[-1].name != member.key:
                message = f"tensor {quote(member.key)} stands twice in the index"
                self.findings.append(finding("duplicate-key", message, self.path, *place, name=member.key))
        return weight_map.end

    def _place(self, member: Member) -> tuple[int, int]:
        """Where a member is in the file: offset and length in bytes."""
        offset = self.text.byte_offset(member.start)
        return offset, self.text.byte_offset(member.end) - offset
