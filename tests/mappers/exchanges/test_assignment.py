"""What searches over exchanges start from."""

from __future__ import annotations

import numpy as np
import pytest

from hopmap.mappers.exchanges.assignment import with_table
from hopmap.mappers.objectives import cost_model
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic


@pytest.mark.parametrize("spec", ["torus:5x4x3", "dragonfly:2x4x2", "tree:3:4:5", "fattree:4x4"])
def test_a_table_has_the_distances_between_nodes_that_a_job_has(spec):
    network = topology_from_spec(spec)
    there = np.flatnonzero(network.slots)
    job = network.only(np.random.default_rng(0).choice(there, len(there) // 2, False).tolist())
    model = cost_model(Traffic.from_pairs(2, [0], [1], [1], [1]), job, "hop_bytes")
    table = with_table(model, job).router.hops
    used = np.flatnonzero(job.slots)
    for a in used.tolist():
        assert table[a, used].tolist() == job.distance(np.full(len(used), a), used).tolist()
