"""Generated NAS runs of 64 ranks, replayed on the networks of the HAEC thesis."""

import numpy as np
import pytest

from hopmap.simulator import Parameters, link_loads, lower, simulate
from hopmap.topologies import topology_from_spec
from hopmap.traces import nas_folded, nas_traffic

NAMES = ["cg.S.64", "cg.A.64", "mg.S.64", "mg.A.64", "is.S.64", "ep.S.64"]


@pytest.mark.parametrize("spec", ["mesh:4x4x4", "torus:4x4x4", "haec:4x4x4"])
@pytest.mark.parametrize("name", NAMES)
def test_runs_of_64_ranks_replay(name, spec):
    topology = topology_from_spec(spec)
    steps = None if name.startswith("ep") else 2
    program = lower(nas_folded(name, steps=steps))
    assert program.p2p_traffic().same_as(nas_traffic(name, steps=steps))
    node_of = np.random.default_rng(3).permutation(64)
    result = simulate(program, topology, node_of, engine="compiled")
    messages, size = link_loads(program.traffic(), topology, node_of)
    assert np.array_equal(result.link_messages, messages)
    assert np.array_equal(result.link_bytes, size)
    assert result.makespan > result.compute.max() > 0
    quick = simulate(
        program, topology, node_of, engine="compiled", parameters=Parameters(compute_scale=0)
    )
    assert 0 < quick.makespan < result.makespan
