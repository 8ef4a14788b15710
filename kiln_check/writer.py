"""Tensors into a file: layout first, then one atomic write."""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from kiln_check.arrays import KILN_NAMES, PACKED_BITS, pack
from kiln_check.atomic import Piece, write_atomically
from kiln_check.constants import ALIGNMENT, NONE, SCALES, SCALES_AND_OUTER
from kiln_check.errors import KilnError
from kiln_check.generated.kiln_v2_records import (
    DESCRIPTOR,
    DESCRIPTOR_STRUCT,
    DTYPES,
    HEADER,
    HEADER_SIZES,
    HEADER_STRUCT,
    MAGIC,
    MAX_RANK,
    NO_AXIS,
    NO_INDEX,
    VERSION,
)
from kiln_check.source import Buffer, BytesSource
from kiln_check.spans import Span
from kiln_check.text import quote

if TYPE_CHECKING:
    from numpy.typing import NDArray

CODES = {name: code for code, name in DTYPES.items()}

Data: TypeAlias = "Buffer | Span | NDArray[Any]"


class NewTensor(NamedTuple):
    """A tensor to be written.

    Attributes:
        dtype: a name of the layout page's table, such as "e2m1" or "f32".
        shape: length of each dimension in elements, outermost first.
        data: the payload: a buffer or a Span of another file, whose bytes are stored
            as they are; or an array of the same dtype and shape, which is stored
            row-major, little-endian and, for elements of 4 and 6 bits, packed. An array
            of uint8 is taken for bytes, whatever the dtype.
        scale: name of the scale tensor, for schemes 1 and 2.
        outer: name of the outer scale, for scheme 2.
        axis: the axis along which `group_size` elements share a scale, counted from 0.
        group_size: number of elements that one scale covers along `axis`.
        foreign_tag: foreign only: the writer's own code for the block layout.
        block_elements: foreign only: elements in one block.
        block_bytes: foreign only: bytes in one block.

    """

    dtype: str
    shape: Sequence[int]
    data: Data
    scale: str | None = None
    outer: str | None = None
    axis: int | None = None
    group_size: int = 0
    foreign_tag: int = 0
    block_elements: int = 0
    block_bytes: int = 0

    @property
    def scheme(self) -> int:
        """2 with an outer scale, 1 with a scale alone, else 0 (Quantization page, the schemes)."""
        if self.outer is not None:
            return SCALES_AND_OUTER
        return NONE if self.scale is None else SCALES


class Layout(NamedTuple):
    """Where everything of a file goes.

    Attributes:
        head: header, directory and names.
        size: size of the whole file in bytes.
        pieces: each stored payload once, in the order of the file.

    """

    head: bytes
    size: int
    pieces: list[Piece]


def write(
    path: str | os.PathLike[str],
    tensors: Mapping[str, NewTensor | NDArray[Any]],
    *,
    progress: bool = False,
) -> None:
    """Write a Kiln file.

    The directory has the order of `tensors`. Payloads start at multiples of 64
    bytes. Two tensors whose data is the same object, the same memory of arrays, or
    equal spans, share one payload. The file appears under its name whole or not at all.

    Args:
        path: the file to write; one that is there is replaced.
        tensors: by name; an array stands for a NewTensor of its dtype and shape.
        progress: show a bar while payloads are copied, if standard error is a terminal.

    Raises:
        KilnError: `check` would reject the file, or a number does not fit its field.
        OSError: the file can't be written, or a span can't be read.

    """
    from kiln_check.checking import check_source

    layout = lay_out({name: as_new_tensor(tensor) for name, tensor in tensors.items()})
    report = check_source(BytesSource(layout.head, layout.size), os.fspath(path))
    if not report.ok:
        first = report.findings[0]
        raise KilnError(f"not written, {first.rule}: {first.message}", report)
    write_layout(path, layout, progress=progress)


def write_layout(path: str | os.PathLike[str], layout: Layout, *, progress: bool = False) -> None:
    """Write a layout that is known to be sound; see `write`.

    Raises OSError.
    """
    if not progress:
        write_atomically(path, layout.head, layout.size, layout.pieces)
        return
    from tqdm import tqdm

    total = sum(data_length(piece.data) for piece in layout.pieces)
    with tqdm(total=total, unit="B", unit_scale=True, desc=os.path.basename(path), disable=None) as bar:
        write_atomically(path, layout.head, layout.size, layout.pieces, bar.update)


def as_new_tensor(tensor: NewTensor | NDArray[Any]) -> NewTensor:
    """A NewTensor whose data is bytes as they are stored; an array gives its own dtype and shape.

    An array of one byte an element may hold any dtype's bytes. Any other must be of the
    tensor's dtype and shape; elements of 4 and 6 bits are packed.

    Raises KilnError for an array that is not, or whose dtype Kiln does not have.
    """
    if not isinstance(tensor, NewTensor):
        if not _is_array(tensor):
            raise KilnError(f"expected a NewTensor or an array, not {type(tensor).__name__}")
        tensor = NewTensor(_kiln_dtype(tensor), tensor.shape, tensor)
    array: Any = tensor.data
    if not _is_array(array):
        return tensor
    if array.dtype.name != "uint8":
        found = _kiln_dtype(array)
        if (found, array.shape) != (tensor.dtype, tuple(tensor.shape)):
            wanted = f"{tensor.dtype} {list(tensor.shape)}"
            raise KilnError(f"an array of {found} {list(array.shape)} is no {wanted}; give its bytes")
        if found in PACKED_BITS:
            return tensor._replace(data=pack(array, found))
    return tensor._replace(data=_plain(array))


def _kiln_dtype(array: Any) -> str:
    if array.dtype.name not in KILN_NAMES:
        raise KilnError(f"an array of {array.dtype} can't be stored: Kiln has no such dtype")
    return KILN_NAMES[array.dtype.name]


def _is_array(data: object) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(data, numpy.ndarray)


def _plain(array: Any) -> Any:
    """The array's bytes, row-major and little-endian, as a flat array; copied only if need be."""
    import numpy as np

    ordered = np.ascontiguousarray(array)
    if ordered.dtype.byteorder == ">" or (ordered.dtype.byteorder == "=" and sys.byteorder == "big"):
        ordered = ordered.astype(ordered.dtype.newbyteorder("<"))
    return ordered.reshape(-1).view(np.uint8)


def lay_out(tensors: Mapping[str, NewTensor]) -> Layout:
    """Place header, directory, names and payloads of a file; judge nothing.

    Raises KilnError when a link names no tensor, a dtype is unknown, or a number
    does not fit its field.
    """
    names = [_encode(name) for name in tensors]
    indexes = {name: index for index, name in enumerate(tensors)}
    pool = b"".join(names)
    end_of_names = HEADER["itemsize"] + DESCRIPTOR["itemsize"] * len(names) + len(pool)
    offsets, size, pieces = _place(tensors.values(), end_of_names)
    header = {
        "magic": MAGIC,
        "version": VERSION,
        "reserved1": 0,
        "num_tensors": len(names),
        "len_names": len(pool),
        "len_file": size,
        "reserved2": bytes(HEADER_SIZES["reserved2"]),
    }
    parts = [_pack(HEADER, HEADER_STRUCT, header, None)]
    ofs_name = 0
    for (name, tensor), raw, ofs_data in zip(tensors.items(), names, offsets, strict=True):
        fields = _fields(name, tensor, indexes)
        fields.update(ofs_name=ofs_name, len_name=len(raw), ofs_data=ofs_data)
        parts.append(_pack(DESCRIPTOR, DESCRIPTOR_STRUCT, fields, name))
        ofs_name += len(raw)
    return Layout(b"".join([*parts, pool]), size, pieces)


def data_length(data: Data) -> int:
    """Size of a payload in bytes."""
    if isinstance(data, Span):
        return data.length
    buffer: Any = data
    return memoryview(buffer).nbytes


def _encode(name: str) -> bytes:
    if not isinstance(name, str):
        raise KilnError(f"the name {name!r} is no text")
    try:
        return name.encode("utf-8")
    except UnicodeEncodeError as error:
        raise KilnError(f"the name {quote(name)} can't be written as UTF-8") from error


def _place(tensors: Iterable[NewTensor], end_of_names: int) -> tuple[list[int], int, list[Piece]]:
    """Where each payload starts, the size of the file, and what is to be copied where."""
    offsets: list[int] = []
    pieces: list[Piece] = []
    placed: dict[object, int] = {}
    end = end_of_names
    for tensor in tensors:
        data = tensor.data
        length = data_length(data)
        identity = _identity(data, length)
        ofs_data = placed.get(identity) if length else None
        if ofs_data is None:
            ofs_data = -(-end // ALIGNMENT) * ALIGNMENT
            placed[identity] = ofs_data
            end = ofs_data + length
            pieces.append(Piece(ofs_data, data))
        offsets.append(ofs_data)
    return offsets, end, pieces


def _identity(data: Data, length: int) -> object:
    """What is equal for payloads that are one: by arrays' memory, for their views are made anew."""
    if isinstance(data, Span):
        return data
    interface = getattr(data, "__array_interface__", None)
    return (id(data) if interface is None else interface["data"], length)


def _fields(name: str, tensor: NewTensor, indexes: Mapping[str, int]) -> dict[str, Any]:
    """The fields of a descriptor, without those that say where name and payload are."""
    if not isinstance(tensor.dtype, str) or tensor.dtype not in CODES:
        raise KilnError(f"tensor {quote(name)}: there is no dtype {quote(str(tensor.dtype))}")
    rank = len(tensor.shape)
    if rank > MAX_RANK:
        raise KilnError(f"tensor {quote(name)}: rank {rank}; the greatest is {MAX_RANK}")
    if tensor.outer is not None and tensor.scale is None:
        raise KilnError(f"tensor {quote(name)}: an outer scale needs a scale")
    if tensor.axis is None and tensor.scale is not None:
        raise KilnError(f"tensor {quote(name)}: a scale needs the axis that its groups run along")
    if tensor.axis is not None and not 0 <= tensor.axis < rank:
        raise KilnError(f"tensor {quote(name)}: axis {tensor.axis} is not one of 0 to {rank - 1}")
    return {
        "dtype": CODES[tensor.dtype],
        "rank": rank,
        "scheme": tensor.scheme,
        "quant_axis": NO_AXIS if tensor.axis is None else tensor.axis,
        "reserved1": 0,
        "group_size": tensor.group_size,
        "scale_index": _index_of(tensor.scale, name, indexes),
        "outer_index": _index_of(tensor.outer, name, indexes),
        "foreign_tag": tensor.foreign_tag,
        "len_data": data_length(tensor.data),
        "block_elements": tensor.block_elements,
        "block_bytes": tensor.block_bytes,
        "reserved2": 0,
        "shape": [*tensor.shape, *[0] * (MAX_RANK - rank)],
    }


def _index_of(link: str | None, name: str, indexes: Mapping[str, int]) -> int:
    if link is None:
        return int(NO_INDEX)
    if link not in indexes:
        raise KilnError(f"tensor {quote(name)} names {quote(link)}, which is not among the tensors")
    return indexes[link]


def _pack(record: Mapping[str, Any], form: str, fields: Mapping[str, Any], tensor: str | None) -> bytes:
    """The bytes of the header, or of the descriptor of `tensor`."""
    values: list[Any] = []
    for name in record["names"]:
        value = fields[name]
        values += value if isinstance(value, list) else [value]
    try:
        return struct.pack(form, *values)
    except struct.error as error:
        owner = "the header" if tensor is None else f"tensor {quote(tensor)}"
        raise KilnError(f"{owner}: a number does not fit its field: {error}") from error
