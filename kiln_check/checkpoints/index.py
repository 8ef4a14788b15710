"""The index of a sharded checkpoint: which tensor is in which file."""

from __future__ import annotations

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


class Listed(NamedTuple):
    """Where an index says that a tensor is: a file's name, and where it says so."""

    file: str
    offset: int
    length: int


class Index(NamedTuple):
    """An index.

    Attributes:
        path: its file.
        weight_map: for each tensor by its name, where the index says that it is.
        findings: what is wrong with the index by itself.

    """

    path: str
    weight_map: dict[str, Listed]
    findings: list[Finding]


def read_index(path: str) -> Index:
    """Read an index.

    Raises OSError when it can't be read.
    """
    source = open_file(path)
    try:
        size = source.size()
        if size > LONGEST_INDEX:
            message = f"the index has {size} bytes; {LONGEST_INDEX} are read"
            return Index(path, {}, [finding("header-length", message, path, 0, size)])
        raw = source.read(0, size)
    finally:
        source.close()
    index = Index(path, {}, [])
    text = Text(raw)
    try:
        _read_top(text, index)
    except UnicodeDecodeError as error:
        message = f"the index is not UTF-8: byte {error.start} is 0x{raw[error.start]:02x}"
        index.findings.append(finding("header-text", message, path, error.start, 1))
    except JsonError as error:
        offset = text.byte_offset(error.position)
        message = f"the index is not JSON as it should be at byte {offset}: {error}"
        index.findings.append(finding("header-text", message, path, offset, min(1, size - offset)))
    return index


def _read_top(text: Text, index: Index) -> None:
    """Raise JsonError for anything but an object with a weight_map."""

    def read_value(characters: str, position: int, key: str) -> tuple[object, int]:
        if key == "weight_map":
            return None, _read_weight_map(text, characters, position, index)
        return None, skip_value(characters, position)

    characters = text.decode()
    top = Members(characters, after_space(characters, 0), read_value)
    keys = [member.key for member in top]
    if "weight_map" not in keys:
        raise JsonError("there is no weight_map", 0)
    if after_space(characters, top.end) != len(characters):
        raise JsonError("more after the object's end", top.end)
    if keys.count("weight_map") > 1:
        index.findings.append(finding("duplicate-key", '"weight_map" stands twice', index.path))
    elif not index.weight_map:
        index.findings.append(finding("index-absent", "the index names no tensor", index.path))


def _read_weight_map(text: Text, characters: str, position: int, index: Index) -> int:
    weight_map = Members(characters, position, string)
    for member in weight_map:
        offset = text.byte_offset(member.start)
        place = (offset, text.byte_offset(member.end) - offset)
        if member.key not in index.weight_map:
            index.weight_map[member.key] = Listed(member.value, *place)
            continue
        if not _already_found(index, member):
            message = f"tensor {quote(member.key)} stands twice in the index"
            index.findings.append(finding("duplicate-key", message, index.path, *place, name=member.key))
    return weight_map.end


def _already_found(index: Index, member: Member) -> bool:
    last = index.findings[-1] if index.findings else None
    return last is not None and last.name == member.key
