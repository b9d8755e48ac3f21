"""Archives that are filled in by hand."""

from __future__ import annotations

import os

import pytest

from support.archives import archive_of


@pytest.fixture
def filled(tmp_path):
    """Let a function fill an archive of so many ranks."""

    def make(fill, ranks=1):
        with archive_of(tmp_path / "made", ranks) as a:
            fill(a)
        return tmp_path / "made"

    return make


@pytest.fixture(autouse=True)
def unguarded(monkeypatch):
    """Archives that are filled in by hand harm nobody: no fork guards this process."""
    monkeypatch.delattr(os, "fork")
