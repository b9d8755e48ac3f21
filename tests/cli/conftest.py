"""A mapping that commands take."""

import pytest

from support.commands import (  # noqa: F401
    LU,
    compiled_in_silence,
    drawn,
    hopmap,
    outlined,
    unguarded,
)


@pytest.fixture
def mapping(tmp_path):
    file = tmp_path / "mapping.csv"
    hopmap("map", LU, "--topology", "mesh:2x2", "--mapper", "scan", "--out", file)
    return file
