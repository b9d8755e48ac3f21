"""Archives that are filled in by hand."""

from __future__ import annotations

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
