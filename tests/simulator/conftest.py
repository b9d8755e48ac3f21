"""Recorded archives, read once, and the programs that they are."""

from __future__ import annotations

from functools import cache

import pytest

from hopmap.simulator import lower
from hopmap.traces import read_trace


@pytest.fixture(scope="session")
def recording(data):
    """Read an archive that comes with the project."""
    return cache(lambda name: read_trace(data / name))


@pytest.fixture(scope="session")
def lowered(recording):
    """Read it and lower it."""
    return cache(lambda name: lower(recording(name)))
