"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.places import ROOT

settings.register_profile(
    "kiln",
    deadline=None,
    max_examples=int(os.environ.get("KILN_EXAMPLES", "100")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("kiln")


@pytest.fixture(scope="session")
def wheels(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheels of `tests/wheels.py`, kept from run to run where pytest keeps a cache."""
    from tests.wheels import download

    cache = getattr(pytestconfig, "cache", None)
    folder = tmp_path_factory.mktemp("wheels") if cache is None else Path(cache.mkdir("wheels"))
    download(folder)
    return folder


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the checkout."""
    return ROOT
