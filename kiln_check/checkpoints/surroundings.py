"""What lies beside a file of a checkpoint: configs, and the indexes that name it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Container, Iterable, Mapping
from typing import Any, NamedTuple

from kiln_check.checkpoints.checkpoint_rules import finding
from kiln_check.checkpoints.config import is_config_name, read_config
from kiln_check.checkpoints.formats.files import open_file
from kiln_check.checkpoints.index import INDEX_SUFFIX, Index, Listed, read_index
from kiln_check.constants import LONGEST_CONFIG, MOST_INDEXES
from kiln_check.report import Finding
from kiln_check.spans import FileFingerprint, fingerprint_of


class Configs(NamedTuple):
    """The configs in a folder.

    Attributes:
        fingerprints: their paths, with their states before they were read.
        objects: what they hold, by file name.
        findings: what is wrong with them.

    """

    fingerprints: dict[str, FileFingerprint]
    objects: Mapping[str, dict[str, Any]]
    findings: tuple[Finding, ...]


class InOtherFiles(Container[str]):
    """The names that a weight_map has for other files than one."""

    def __init__(self, weight_map: Mapping[str, Listed], file: str) -> None:
        self._weight_map = weight_map
        self._file = file

    def __contains__(self, name: object) -> bool:
        listed = self._weight_map.get(name) if isinstance(name, str) else None
        return listed is not None and listed.file != self._file


class Surroundings:
    """What lies in a folder, read once for all of its checkpoints; knows one folder at a time.

    Attributes:
        consulted: paths of the indexes that were read to find which names a file.

    """

    def __init__(self) -> None:
        self._folder: str | None = None
        self._forget()

    def _enter(self, folder: str) -> None:
        if folder != self._folder:
            self._folder = folder
            self._forget()

    def _forget(self) -> None:
        self.consulted: tuple[str, ...] = ()
        self._names: list[str] | None = None
        self._configs: Configs | None = None
        self._by_file: dict[str, str] | None = None
        self._indexes: dict[str, Index] = {}

    def configs(self, folder: str) -> Configs:
        """The configs in a folder. Raises OSError where one can't be read."""
        self._enter(folder)
        if self._configs is None:
            self._configs = _read_configs(folder, self._listed(folder))
        return self._configs

    def in_unread_files(self, path: str) -> Container[str] | None:
        """The tensors that the index that names a file has for others; None where none names it."""
        folder, base = os.path.split(path)
        self._enter(folder)
        if self._by_file is None:
            self._by_file = self._read_indexes(folder)
        found = self._by_file.get(base)
        if found is None:
            return None
        with contextlib.suppress(OSError):
            return InOtherFiles(self._index(found).weight_map, base)
        return None

    def _read_indexes(self, folder: str) -> dict[str, str]:
        """Each file that an index in the folder names, with the first index that does."""
        by_file: dict[str, str] = {}
        paths = []
        for name in self._listed(folder):
            path = os.path.join(folder, name)
            if name.endswith(INDEX_SUFFIX) and os.path.isfile(path):
                paths.append(path)
        for path in paths:
            with contextlib.suppress(OSError):
                for listed in self._index(path).weight_map.values():
                    by_file.setdefault(listed.file, path)
        self.consulted = tuple(paths)
        return by_file

    def _listed(self, folder: str) -> list[str]:
        """Names in the folder, in order; none where it can't be listed, which reading its files says."""
        if self._names is None:
            try:
                self._names = sorted(os.listdir(folder or os.curdir))
            except OSError:
                self._names = []
        return self._names

    def _index(self, path: str) -> Index:
        index = self._indexes.pop(path, None)
        if index is None:
            index = read_index(path)
            if len(self._indexes) == MOST_INDEXES:
                del self._indexes[next(iter(self._indexes))]
        self._indexes[path] = index
        return index


def _read_configs(folder: str, names: Iterable[str]) -> Configs:
    fingerprints: dict[str, FileFingerprint] = {}
    read: dict[str, dict[str, Any]] = {}
    findings: list[Finding] = []
    for name in filter(is_config_name, names):
        path = os.path.join(folder, name)
        if not os.path.isfile(path):
            continue
        fingerprints[path] = fingerprint_of(path)
        source = open_file(path)
        try:
            size = source.size()
            if size > LONGEST_CONFIG:
                message = f"{name} has {size} bytes; {LONGEST_CONFIG} are read"
                findings.append(finding("config-text", message, path, 0, size))
                continue
            read[name] = read_config(source.read(0, size))
        except ValueError as error:
            findings.append(finding("config-text", f"{name} is not a JSON object: {error}", path, 0, size))
        finally:
            source.close()
    return Configs(fingerprints, read, tuple(findings))
