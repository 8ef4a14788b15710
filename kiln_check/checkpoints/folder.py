"""Which checkpoints a folder holds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from kiln_check.checkpoints.checkpoint import NUMBERED
from kiln_check.checkpoints.index import read_index

INDEX_END = ".safetensors.index.json"
"""How the name of an index ends that is looked for; PyTorch's own end otherwise."""


class Place(NamedTuple):
    """Where a checkpoint is.

    Attributes:
        path: the index, or a file.
        shards: the files of a checkpoint without an index; `path` is the first.

    """

    path: str
    shards: tuple[str, ...] = ()


def checkpoints_in(folder: str, names: Sequence[str]) -> list[Place]:
    """The checkpoints among the files of one folder, by name.

    An index stands for the files that it names. Files that are numbered as shards,
    and that no index names, are one checkpoint; every other file is one by itself.
    """
    places = []
    listed: set[str] = set()
    for name in names:
        if name.endswith(INDEX_END):
            path = os.path.join(folder, name)
            places.append(Place(path))
            listed.update(_listed(path))
    sets: dict[tuple[str, str, str], list[str]] = {}
    for name in sorted(names):
        numbered = NUMBERED.fullmatch(name)
        if name in listed:
            continue
        if numbered is not None:
            sets.setdefault((numbered[1], numbered[3], numbered[4]), []).append(os.path.join(folder, name))
        elif name.endswith((".safetensors", ".gguf")):
            places.append(Place(os.path.join(folder, name)))
    places += [Place(shards[0], tuple(shards)) for shards in sets.values()]
    return sorted(places)


def _listed(path: str) -> set[str]:
    """The files that an index names; none where it can't be read, which its check says."""
    try:
        return {listed.file for listed in read_index(path).weight_map.values()}
    except OSError:
        return set()
