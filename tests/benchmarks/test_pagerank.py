"""Calls in groups and scattered nodes of benchmarks/pagerank."""

import numpy as np
import pytest
from pagerank import RANKS, SIDE, TORUS, fix_size, in_groups, scatter, seconds

import hopmap as hm
from hopmap.topologies import topology_from_spec


@pytest.mark.parametrize(("axis", "apart"), [("rows", 1), ("columns", SIDE)])
@pytest.mark.parametrize("operation", ["allreduce", "bcast"])
def test_members_of_a_group_talk_to_each_other_only(operation, axis, apart):
    workload = hm.Workload(in_groups(operation, 2**20, axis))
    traffic = workload.traffic({operation: "binomial" if operation == "bcast" else "ring"})
    source, target = (
        ends // SIDE if axis == "rows" else ends % SIDE for ends in (traffic.src, traffic.dst)
    )
    assert (source == target).all()
    assert apart in np.abs(traffic.src - traffic.dst)
    ring, tree = SIDE * SIDE * 2 * (SIDE - 1) * 2**20 // SIDE, SIDE * (SIDE - 1) * 2**20
    assert traffic.bytes.sum() == (ring if operation == "allreduce" else tree)


@pytest.mark.parametrize("by", ["nodes", "groups"])
def test_scattered_nodes_differ_by_seed_and_hold_a_rank_each(by):
    first, second = (scatter((6, 6, 6), by, seed) for seed in range(2))
    assert len(set(first.tolist())) == RANKS
    assert first.tolist() != second.tolist()
    assert scatter((6, 6, 6), by, 0).tolist() == first.tolist()


def test_nodes_of_a_scattered_group_stay_together():
    places = topology_from_spec("tofud:6x6x6").coords[scatter((6, 6, 6), "groups", 3)]
    groups = places[: RANKS // 12 * 12].reshape(-1, 12, 6)
    assert (groups[:, :, :3] == groups[:, :1, :3]).all()
    assert len(np.unique(groups[:, 0, :3], axis=0)) == RANKS // 12


def test_a_size_is_where_the_time_is_the_target():
    assert fix_size(lambda size: size / 1e9, 1e-3) == pytest.approx(1e6, rel=0.01)


def test_a_ring_has_links_of_its_own_on_the_torus_and_shares_them_on_scattered_nodes():
    size = 8 * 2**20
    call = in_groups("allreduce", size, "rows")
    torus = seconds(call, TORUS, np.arange(RANKS), "ring")
    alone = 2 * (SIDE - 1) / SIDE * size / 6.41e9
    assert alone < torus < 1.5 * alone
    assert seconds(call, "tofud:6x6x6", scatter((6, 6, 6), "nodes", 0), "ring") > 1.5 * torus
