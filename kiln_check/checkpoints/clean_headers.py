"""Headers of safetensors files that are clean, and the indexes that name their tensors.

Nothing here finds a fault: what is out of the usual raises UnusualError, and another reader says what it is.

- JSON of ASCII without escapes, whole numbers alone. Each key stands once: an entry has ten quotation marks,
  and there are no more in the text than entries and metadata have.
- Payloads lie side by side, each at a multiple of its element's size and as long as dtype and shape ask for,
  from the header's end to the file's.
- An index names each tensor of each file once, and no other.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import Any, NamedTuple, NoReturn, TypeAlias

from kiln_check.checkpoints.formats.files import open_file
from kiln_check.checkpoints.formats.safetensors import LEN_LENGTH, TYPES
from kiln_check.constants import LONGEST_HEADER, LONGEST_INDEX, LONGEST_NAME
from kiln_check.generated.kiln_v2_records import MAX_RANK

METADATA = "__metadata__"

SUFFIX = ".safetensors"

QUOTES = 10
"""Quotation marks of an entry: around its name, three keys, and the dtype."""

MOST_COMMAS = MAX_RANK + 4
"""Commas of an entry, and more: a list that is longer than any shape is not read into memory."""

Signature: TypeAlias = "tuple[str | int, ...]"
"""The dtype and the dimensions of a tensor."""


class UnusualError(ValueError):
    """A file that another reader must look at."""


class CleanHeader(NamedTuple):
    """The header of one file.

    Attributes:
        len_head: bytes before the payloads.
        size: of the file in bytes.
        signatures: of each tensor, by name, in the order of payloads.
        offsets: where the payloads start, in bytes from the start of the file.
        metadata: what the header says besides.

    """

    len_head: int
    size: int
    signatures: dict[str, Signature]
    offsets: list[int]
    metadata: Mapping[str, str]


class Lengths(NamedTuple):
    """What a signature says of a tensor.

    Attributes:
        payload: bytes of it.
        element: bytes of one; 1 where it has fewer.
        is_flat: whether a dimension is 0 or 1, which truth values equal.

    """

    payload: int
    element: int
    is_flat: bool


def read_clean(path: str, lengths: dict[Signature, Lengths]) -> CleanHeader:
    """Read the header of a safetensors file.

    Args:
        path: the file.
        lengths: what signatures say, as far as it is known; grows.

    Raises:
        OSError: it can't be read.
        UnusualError: it is out of the usual.

    """
    name = os.path.basename(path)
    if not name.endswith(SUFFIX) or not name.isprintable():
        raise UnusualError("a file's name out of the usual")
    text, size = _header_text(path)
    quotes = text.count('"')
    if text.count(",") > MOST_COMMAS * (1 + quotes // QUOTES):
        raise UnusualError("lists out of the usual")
    header = _parsed(text)
    metadata = _metadata(text, header.pop(METADATA, None))
    of_metadata = 2 + 4 * len(metadata) if f'"{METADATA}"' in text else 0
    if quotes != QUOTES * len(header) + of_metadata or not header or "" in header:
        raise UnusualError("a key twice, or one too many")
    len_head = LEN_LENGTH + len(text)
    offsets = _put_signatures(header, len_head, size, lengths)
    return CleanHeader(len_head, size, header, offsets, metadata)


def _header_text(path: str) -> tuple[str, int]:
    source = open_file(path)
    try:
        size = source.size()
        length = int.from_bytes(source.read(0, LEN_LENGTH), "little")
        if size < LEN_LENGTH or length > LONGEST_HEADER or LEN_LENGTH + length > size:
            raise UnusualError("a header of another length")
        raw = source.read(LEN_LENGTH, length)
    finally:
        source.close()
    if not raw.isascii() or not raw.startswith(b"{"):
        raise UnusualError("no plain JSON")
    if any(one in raw for one in (b"\\", b"\x7f", b"-0")):
        raise UnusualError("text out of the usual")
    return raw.decode("ascii"), size


Pairs: TypeAlias = "list[tuple[str, Any]]"


def _parsed(text: str, made: Callable[[Pairs], dict[str, Any]] | None = None) -> dict[str, Any]:
    """The JSON object in a text; `made` makes each object of its keys and values."""

    def refuse(_: str) -> NoReturn:
        raise UnusualError("a number that is not whole")

    try:
        found = json.loads(text, parse_float=refuse, parse_constant=refuse, object_pairs_hook=made)
    except UnusualError:
        raise
    except (ValueError, RecursionError) as error:
        raise UnusualError("no JSON") from error
    if not isinstance(found, dict) or max(map(len, found), default=0) > LONGEST_NAME:
        raise UnusualError("no object of tensors")
    return found


def _metadata(text: str, metadata: object) -> Mapping[str, str]:
    """The metadata; that each of its keys stands once, all quotation marks of the text tell."""
    if metadata is None and f'"{METADATA}"' not in text:
        return {}
    if not isinstance(metadata, dict) or text.count(f'"{METADATA}"') != 1:
        raise UnusualError("metadata that are no object")
    if not all(isinstance(value, str) for value in metadata.values()):
        raise UnusualError("metadata that are not text")
    return metadata


def _put_signatures(
    header: dict[str, Any], len_head: int, size: int, lengths: dict[Signature, Lengths]
) -> list[int]:
    """Put signatures in the place of a header's entries, and return where payloads start."""
    offsets = []
    position = 0
    try:
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            signature = (entry["dtype"], *entry["shape"])
            known = lengths.get(signature)
            if known is None:
                known = lengths[signature] = _lengths(signature)
            length, element, is_flat = known
            offset = len_head + begin
            if begin != position or end - begin != length or offset % element:
                raise UnusualError("a payload out of order")
            if (begin < 2 or is_flat) and not _are_whole((*entry["shape"], begin, end)):
                raise UnusualError("a truth value in the place of a number")
            header[name] = signature
            offsets.append(offset)
            position = end
    except (KeyError, TypeError, ValueError) as error:
        raise UnusualError("an entry of another form") from error
    if not position or len_head + position != size:
        raise UnusualError("a file of another length")
    return offsets


def _are_whole(values: Iterable[object]) -> bool:
    return all(type(one) is int for one in values)


def _lengths(signature: Signature) -> Lengths:
    """What a signature says; raises UnusualError where no tensor can have it."""
    dtype, *shape = signature
    type_ = TYPES.get(dtype) if isinstance(dtype, str) else None
    sizes = [one for one in shape if type(one) is int and 0 <= one < 1 << 63]
    if type_ is None or len(shape) > MAX_RANK or len(sizes) < len(shape):
        raise UnusualError("a dtype or shape out of the usual")
    bits = prod(sizes) * type_.bits
    if bits % 8 or bits >= 1 << 63:
        raise UnusualError("part of a byte, or too much")
    return Lengths(bits // 8, max(1, type_.bits // 8), any(one < 2 for one in sizes))


class CleanIndex(NamedTuple):
    """An index.

    Attributes:
        weight_map: names of files by those of tensors.
        total_size: of its metadata; None where there is none.

    """

    weight_map: dict[str, str]
    total_size: int | None


def read_clean_index(path: str) -> CleanIndex:
    """Read an index; raises as `read_clean` does."""
    text = _index_text(path)
    found = _parsed(text, _with_each_key_once)
    weight_map = found.get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise UnusualError("no weight_map")
    if not all(_is_usual(value) for key, value in found.items() if key != "weight_map"):
        raise UnusualError("members out of the usual")
    files: dict[str, str] = {}
    for name, file in weight_map.items():
        if not isinstance(file, str):
            raise UnusualError("a file without a name")
        if file not in files:
            files[file] = _plain(file)
        weight_map[name] = files[file]
    return CleanIndex(weight_map, _total_size(found.get("metadata")))


def _is_usual(value: object) -> bool:
    """Whether a value is text, a number of at most 64 bits, nothing, or an object of these."""
    scalars = value.values() if isinstance(value, dict) else (value,)
    return all(
        one is None or isinstance(one, str) or (isinstance(one, int) and abs(one) < 1 << 64)
        for one in scalars
    )


def _with_each_key_once(pairs: Pairs) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise UnusualError("a key twice")
    return found


def _index_text(path: str) -> str:
    source = open_file(path)
    try:
        size = source.size()
        if size > LONGEST_INDEX:
            raise UnusualError("an index of another length")
        raw = source.read(0, size)
    finally:
        source.close()
    if not raw.isascii() or b"\\" in raw:
        raise UnusualError("no plain JSON")
    return raw.decode("ascii")


def _plain(name: str) -> str:
    """The name of a .safetensors file in the same folder; raises UnusualError for another."""
    if not name.endswith(SUFFIX) or os.path.basename(name) != name:
        raise UnusualError("a file out of the usual")
    return name


def _total_size(metadata: object) -> int | None:
    total = metadata.get("total_size") if isinstance(metadata, dict) else None
    if total is not None and type(total) is not int:
        raise UnusualError("a total that is no whole number")
    return total
