"""Fixtures of these tests."""

import pytest

from hopmap.simulator import in_threads
from support.commands import (  # noqa: F401
    compiled_in_silence,
    outlined,
    unguarded,
)


@pytest.fixture
def one_core(monkeypatch):
    """Replays follow each other, so that they can be counted."""
    monkeypatch.setattr(in_threads, "cores", lambda: 1)
