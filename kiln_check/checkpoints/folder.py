"""Which checkpoints a folder holds, and to which of them a file belongs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple

from kiln_check.checkpoints.companions import Configs, read_configs
from kiln_check.checkpoints.formats.registry import SUFFIXES, read_file
from kiln_check.checkpoints.index import is_index_name, is_safetensors_index_name, read_index
from kiln_check.checkpoints.shards import Missing, shards_among


class Place(NamedTuple):
    """Where a checkpoint is.

    Attributes:
        path: the index, or the first file.
        files: paths of the files that hold tensors; none where an index names them.
        missing: the shards that the numbers of the files leave out.
        is_part: whether an index names other files of the same numbering, and none of these.
        consulted: paths of the indexes that were read to find out whether they name a file.

    """

    path: str
    files: tuple[str, ...] = ()
    missing: Missing | None = None
    is_part: bool = False
    consulted: tuple[str, ...] = ()


class _Listing(NamedTuple):
    """What an index says of the files beside it.

    Attributes:
        stem: what the index's own name begins with, as its files' names do.
        files: the names that it gives.
        is_sound: whether it could be read, and nothing is wrong with it by itself.

    """

    stem: str
    files: frozenset[str]
    is_sound: bool


def is_checkpoint_name(name: str) -> bool:
    """Whether a file of this name is one of a checkpoint, or an index."""
    return name.endswith(SUFFIXES) or is_index_name(name)


def file_names(folder: str) -> list[str]:
    """The names in a folder that are no folders', in order. Raises OSError where it can't be listed."""
    with os.scandir(folder or os.curdir) as entries:
        return sorted(entry.name for entry in entries if not entry.is_dir())


class Folder:
    """What lies in a folder, read once for all of its checkpoints."""

    def __init__(self, path: str, names: Sequence[str] | None = None) -> None:
        """Take a folder, and the names of its files where they are known."""
        self.path = path
        self._names = names

    @cached_property
    def names(self) -> Sequence[str]:
        """Names in the folder, in order; none where it can't be listed, which reading its files says."""
        if self._names is not None:
            return sorted(self._names)
        try:
            return file_names(self.path)
        except OSError:
            return []

    @cached_property
    def configs(self) -> Configs:
        """The configs in the folder. Raises OSError where one can't be read."""
        return read_configs(self.path, self.names)

    @cached_property
    def places(self) -> Sequence[Place]:
        """The checkpoints in the folder, by name.

        An index stands for the files that it names. Shards that no index names are one
        checkpoint, and every other file is one by itself.
        """
        places = [*map(Place, self._listings), *self._unlisted]
        return sorted(places, key=lambda place: place.path)

    def places_of(self, name: str) -> Sequence[Place]:
        """The checkpoints that a file belongs to: more than one where several indexes name it."""
        named_by = [Place(index) for index, listing in self._listings.items() if name in listing.files]
        path = os.path.join(self.path, name)
        return named_by or [self._unlisted_by_file.get(path, Place(path, (path,)))]

    def faulty_indexes(self, name: str) -> Sequence[Place]:
        """The indexes that are not sound and do not name a file, though their own names begin as its does."""
        return [
            Place(index)
            for index, listing in self._listings.items()
            if not listing.is_sound and name not in listing.files and name.startswith(listing.stem)
        ]

    @cached_property
    def _listings(self) -> Mapping[str, _Listing]:
        """What each index says, by its path."""
        found = {}
        for name in filter(is_safetensors_index_name, self.names):
            path = os.path.join(self.path, name)
            found[path] = _Listing(name.partition(".")[0], frozenset(), False)
            with suppress(OSError):
                index = read_index(path)
                files = frozenset(listed.file for listed in index.weight_map.values())
                found[path] = found[path]._replace(files=files, is_sound=not index.findings)
        return found

    @cached_property
    def _unlisted(self) -> Sequence[Place]:
        """The checkpoints of files that no index names."""
        listed = {name for listing in self._listings.values() for name in listing.files}
        names = [name for name in self.names if name.endswith(SUFFIXES)]
        places = []
        for shards in shards_among(names, self._tensor_names):
            unlisted = [os.path.join(self.path, name) for name in shards.names if name not in listed]
            if unlisted:
                is_part = len(unlisted) < len(shards.names)
                missing = None if is_part else shards.missing
                places.append(Place(unlisted[0], tuple(unlisted), missing, is_part, tuple(self._listings)))
        return places

    @cached_property
    def _unlisted_by_file(self) -> Mapping[str, Place]:
        return {path: place for place in self._unlisted for path in place.files}

    def _tensor_names(self, name: str) -> Sequence[str]:
        """The names of a file's tensors; none where it can't be read, which its check says."""
        try:
            file = read_file(os.path.join(self.path, name))
        except (OSError, MemoryError):
            return ()
        return [tensor.name for tensor in (*file.tensors, *file.truncated)]
