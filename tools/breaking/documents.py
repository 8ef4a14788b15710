"""What the JSON files beside a checkpoint, and the metadata of its files, say."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tools.breaking.folder import Checkpoint


def values_of(document: Any, key: str) -> Iterator[Any]:
    """Each value that stands with a key, however deep."""
    if isinstance(document, list):
        for item in document:
            yield from values_of(item, key)
    if isinstance(document, Mapping):
        for name, item in document.items():
            if name == key:
                yield item
            yield from values_of(item, key)


def says(documents: Any, key: str, *values: Any) -> bool:
    """Whether a key has one of these values somewhere, and no other anywhere."""
    found = list(values_of(documents, key))
    return bool(found) and all(value in values for value in found)


def metadata_of(checkpoint: Checkpoint, key: str) -> Iterator[Any]:
    """What the files' metadata has under a key, parsed where it is JSON."""
    for metadata in checkpoint.metadata.values():
        if metadata is not None and key in metadata:
            try:
                yield json.loads(metadata[key])
            except ValueError:
                yield metadata[key]
