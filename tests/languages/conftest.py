"""The files that every parser reads: the corpus and the hostile ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.languages.corpus_cases import CASES, CORPUS
from tests.languages.hostile import files as hostile_files


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The path of each file by its name."""
    folder = tmp_path_factory.mktemp("hostile")
    paths = {name: CORPUS / name for name in CASES}
    for name, data in hostile_files():
        paths[name] = folder / name
        paths[name].write_bytes(data)
    return paths
