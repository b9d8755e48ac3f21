"""Each MPI that is installed."""

from __future__ import annotations

import pytest

from support.real_mpi import SAYS, Mpi, installed


@pytest.fixture(scope="module", params=list(SAYS))
def mpi(request: pytest.FixtureRequest) -> Mpi:
    return installed(request.param)
