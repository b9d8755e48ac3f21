"""A folded trace written out is the trace of the same program."""

import numpy as np
import pytest

from hopmap.traces import OutOfMemoryError, nas_folded, nas_trace
from hopmap.traces.folded import unfold
from support.made_traces import as_folded, differences


@pytest.mark.parametrize("name", ["lu.S.4", "cg.S.4", "sp.S.9", "mg.S.8", "ep.S.2"])
def test_iterations_stand_one_after_the_other(name):
    """Requests are numbered anew in a generated trace, and used again in iterations."""
    found, expected = unfold(nas_folded(name)), nas_trace(name)
    assert set(differences(as_folded(found), as_folded(expected))) <= {"request"}
    # Nanoseconds of an iteration are rounded once.
    np.testing.assert_allclose(found.time, expected.time, rtol=1e-4, atol=1e-9)


def test_what_would_not_fit_is_refused_before():
    with pytest.raises(OutOfMemoryError, match="keep its loops"):
        unfold(nas_folded("lu.E.1024"))
