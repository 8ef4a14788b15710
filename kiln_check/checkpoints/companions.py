"""The configs beside a checkpoint's files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kiln_check.checkpoints.checkpoint_rules import finding
from kiln_check.checkpoints.config import is_config_name, read_config
from kiln_check.checkpoints.formats.files import open_file
from kiln_check.constants import LONGEST_CONFIG
from kiln_check.report import Finding
from kiln_check.spans import FileFingerprint, fingerprint_of


class Configs(NamedTuple):
    """The configs in a folder.

    Attributes:
        fingerprints: their paths, with their states before they were read.
        objects: what they hold, by file name.
        findings: what is wrong with them.

    """

    fingerprints: Mapping[str, FileFingerprint]
    objects: Mapping[str, dict[str, Any]]
    findings: Sequence[Finding]


def read_configs(folder: str, names: Iterable[str]) -> Configs:
    """Read the configs among the files of a folder.

    Raises OSError where one can't be read.
    """
    fingerprints: dict[str, FileFingerprint] = {}
    read: dict[str, dict[str, Any]] = {}
    findings: list[Finding] = []
    for name in filter(is_config_name, names):
        path = os.path.join(folder, name)
        if os.path.isdir(path):
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
    return Configs(fingerprints, read, findings)
