"""Cases that only compiled code is fast enough for."""

import numba
import pytest


@pytest.fixture
def compiled() -> None:
    """Skip where numba's compiler is switched off (NUMBA_DISABLE_JIT=1)."""
    if numba.config.DISABLE_JIT:
        pytest.skip("too large for kernels that are not compiled")
