"""Two disjoint ensembles agree on nine of ten pairs that one of them calls different."""

from __future__ import annotations

import pytest
from ensembles import MAPPINGS, case

from hopmap.simulator import lower
from hopmap.topologies import topology_from_spec
from hopmap.traces import nas_folded


@pytest.mark.slow
@pytest.mark.parametrize(("trace", "spec"), [("cg.S.16", "mesh:4x4"), ("mg.S.16", "torus:4x2x2")])
def test_disjoint_ensembles_agree(trace, spec):
    program = lower(nas_folded(trace, steps=1))
    found = case(program, topology_from_spec(spec), 20, MAPPINGS)
    one, other, both = found.agreement
    assert one > 10
    assert 2 * both >= 0.9 * (one + other)
