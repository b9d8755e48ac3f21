"""The KL paper's tables at their smallest size: degrees and improvements as published."""

import pytest
from kl import DISTANCES, KINDS, MACHINES, improvements

from hopmap.traces import hypergraph_of, partition_hypergraph, pattern_of, spmv_traffic
from support.slow import slow


@pytest.mark.parametrize("name", slow("grid2", "delaunay2"))  # delaunay3 takes minutes
def test_64_ranks_improve_by_what_the_paper_reports(compiled, name):
    """Tables 1 and 3 to 5, row-net: 6 points apart at most, matrices being of one kind only."""
    kind = KINDS[name]
    pattern = pattern_of(kind.make())
    block = partition_hypergraph(hypergraph_of(pattern, "row-net"), 64)
    case = improvements(spmv_traffic(pattern, 64, "row-net", block=block), MACHINES[64])
    assert case.degree == pytest.approx(kind.degree[0], rel=0.1)
    for t in DISTANCES:
        assert case.gains[t] == pytest.approx(kind.gains[t][0], abs=6), t
    assert case.gains[1] < min(case.gains[2], case.gains[4])
