"""A checked file as a mapping of names to tensors, over a memory map."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kiln_check.checking import check_directory
from kiln_check.directory import Directory
from kiln_check.errors import KilnError
from kiln_check.generated.kiln_v2_records import DTYPES
from kiln_check.source import BytesSource, open_regular

if TYPE_CHECKING:
    from numpy.typing import NDArray


def open(path: str | os.PathLike[str], *, check: bool = True) -> KilnFile:
    """Open a Kiln file for reading.

    The file is mapped: it must not be made shorter while it is open.

    Args:
        path: the file.
        check: refuse a file that is not sound. Without it, what a descriptor says
            is handed out as it stands: for looking into a broken file.

    Raises:
        KilnError: the file is not sound; `report` says why. Without `check`, only
            when it has no directory that could be read.
        OSError: the file can't be read.

    """
    return KilnFile(path, check=check)


class Tensor:
    """One tensor of an open file: bits plus a description.

    Attributes:
        index: its place in the directory.

    """

    def __init__(self, file: KilnFile, index: int) -> None:
        self.index = index
        self._file = file
        self._descriptor = file._directory.descriptor(index)

    @property
    def name(self) -> str | None:
        """The name; None where it can't be read, in a file opened without a check."""
        return self._file._directory.name(self.index)

    @property
    def dtype(self) -> str:
        """A name of the layout page's table, such as "e2m1"; a number in hex if it has none."""
        code = self._descriptor.dtype
        name: str = DTYPES.get(code, f"0x{code:04x}")
        return name

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each dimension in elements, outermost first."""
        return tuple(self._descriptor.shape[: self._descriptor.rank])

    @property
    def offset(self) -> int:
        """Where the payload starts, in bytes from the start of the file."""
        return int(self._descriptor.ofs_data)

    @property
    def scheme(self) -> int:
        """0 none, 1 scales, 2 scales and outer."""
        return int(self._descriptor.scheme)

    @property
    def axis(self) -> int | None:
        """The axis along which `group_size` elements share a scale; None for scheme 0."""
        return self._descriptor.quant_axis if self._descriptor.has_axis else None

    @property
    def group_size(self) -> int:
        """Number of elements that one scale covers along `axis`; 0 for scheme 0."""
        return int(self._descriptor.group_size)

    @property
    def scale(self) -> Tensor | None:
        """The scale tensor; None for scheme 0."""
        return self._link(self._descriptor.scale_index)

    @property
    def outer(self) -> Tensor | None:
        """The outer scale; None for schemes 0 and 1."""
        return self._link(self._descriptor.outer_index)

    @property
    def foreign(self) -> tuple[int, int, int] | None:
        """(foreign_tag, block_elements, block_bytes) of a foreign tensor; else None."""
        if not self._descriptor.is_foreign:
            return None
        return self._descriptor.foreign_tag, self._descriptor.block_elements, self._descriptor.block_bytes

    def bytes(self) -> memoryview:
        """The stored bits, without a copy; a view that outlives the file's being closed.

        Raises ValueError when the file is closed already.
        """
        start = self._descriptor.ofs_data
        return self._file._view()[start : start + self._descriptor.len_data]

    def array(self, *, unpack: bool = False) -> NDArray[Any]:
        """The stored bits as a NumPy array, without a copy unless `unpack`.

        Elements of 4 and 6 bits come as they are stored, as a flat array of bytes;
        with `unpack`, one element a byte in the tensor's shape and of a dtype of the
        package ml_dtypes, as are bf16 and the floats of 8 bits. A foreign payload
        comes as a flat array of bytes. Nothing is scaled.

        Raises:
            ImportError: the dtype is one of ml_dtypes', which is absent.
            ValueError: the file is closed, or a dimension is longer than NumPy's can
                be; in a file opened without a check, the payload is too short.

        """
        from kiln_check.arrays import as_array

        return as_array(self.bytes(), self.dtype, self.shape, unpack=unpack)

    def __repr__(self) -> str:
        return f"<Tensor {self.index} {self.name!r}: {self.dtype} {list(self.shape)}, scheme {self.scheme}>"

    def _link(self, index: int) -> Tensor | None:
        known = index < (self._file._directory.num_tensors or 0)
        return self._file.at(index) if known else None


class KilnFile(Mapping[str, Tensor]):
    """An open file: names to tensors, in the order of the directory.

    A context manager; `close` ends it. Arrays and views that were handed out keep
    the memory map alive until they are gone.
    """

    def __init__(self, path: str | os.PathLike[str], *, check: bool) -> None:
        self._path = os.fspath(path)
        fd, size = open_regular(path)
        try:
            self._map = mmap.mmap(fd, 0, access=mmap.ACCESS_READ) if size else None
        finally:
            os.close(fd)
        self._bytes: memoryview | None = memoryview(self._map if self._map is not None else b"")
        self._source = BytesSource(self._bytes)
        try:
            self._directory = Directory(self._source)
            report = check_directory(self._directory, os.fspath(path))
            if not report.ok and (check or not self._directory.whole):
                first = report.findings[0]
                raise KilnError(f"{os.fspath(path)}: {report.verdict}, {first.rule}: {first.message}", report)
        except BaseException:
            self.close()
            raise
        self._indexes: dict[str, int] | None = None

    def at(self, index: int) -> Tensor:
        """Return a tensor by its place in the directory.

        Raises IndexError.
        """
        if not 0 <= index < (self._directory.num_tensors or 0):
            raise IndexError(f"there is no tensor {index}")
        return Tensor(self, index)

    def __repr__(self) -> str:
        state = "closed" if self._bytes is None else f"{self._directory.num_tensors} tensors"
        return f"<KilnFile {self._path!r}: {state}>"

    def close(self) -> None:
        """Let go of the file."""
        self._source.close()
        self._bytes = None
        if self._map is not None:
            try:
                self._map.close()
            except BufferError:  # views are still out; the map goes with the last of them
                self._map = None

    def __getitem__(self, name: str) -> Tensor:
        return Tensor(self, self._by_name()[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name())

    def __len__(self) -> int:
        return len(self._by_name())

    def __enter__(self) -> KilnFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _by_name(self) -> dict[str, int]:
        if self._indexes is None:
            indexes: dict[str, int] = {}
            for index, name in enumerate(self._directory.all_names()):
                if name is not None:
                    indexes.setdefault(name, index)
            self._indexes = indexes
        return self._indexes

    def _view(self) -> memoryview:
        if self._bytes is None:
            raise ValueError("the file is closed")
        return self._bytes
