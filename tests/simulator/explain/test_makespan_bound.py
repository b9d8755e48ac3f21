"""The bound of a makespan for one mapping after another: path or bandwidth, whichever is longer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.mappers import map_ranks
from hopmap.simulator import (
    DeadlockError,
    MakespanBound,
    Parameters,
    lower,
    program_of,
    program_of_traffic,
    simulate,
)
from hopmap.simulator.explain import makespan_bound
from hopmap.simulator.programs.unrolling import without_loops
from hopmap.topologies import MappingError, mesh, topology_from_spec, torus
from hopmap.traces import Traffic
from hopmap.traces.nas.benchmarks import nas_folded
from hopmap.traces.otf2.read import read_trace
from support import DATA
from support.random_loops import any_runs, random_loop_runs
from support.slow import examples

GIVEN = Parameters()
LINK = 1e9  # bytes/s
ENDS = GIVEN.injection_latency + GIVEN.ejection_latency
OVERHEADS = GIVEN.overhead_send + GIVEN.overhead_recv


def slow_links(topology, latency=1e-6):
    return topology.with_links(None, bandwidth=LINK, latency=latency)


def shift(ranks, by, size):
    """Every rank sends to the one so many behind it, and waits for what it is sent."""
    return program_of(
        "shift",
        [
            [("irecv", (r - by) % ranks, size), ("isend", (r + by) % ranks, size),
             ("wait", 0), ("wait", 1)]
            for r in range(ranks)
        ],
    )  # fmt: skip


@pytest.mark.parametrize("by", [1, 2, 3])
@pytest.mark.parametrize("size", [0, 1000, 50_000])
def test_a_shift_on_a_ring_takes_its_hops_or_what_crosses_a_link(by, size):
    ring = slow_links(torus([8]))
    bound = MakespanBound(shift(8, by, size), ring)
    alone = OVERHEADS + ENDS + by * 1e-6 + size / LINK
    assert bound(np.arange(8)) == pytest.approx(max(alone, by * size / LINK), rel=1e-12, abs=0)
    assert (by * size / LINK > alone) == (size == 50_000 and by > 1)


@pytest.mark.parametrize("ranks", [4, 6, 7])
def test_an_all_to_all_on_a_line_takes_what_crosses_its_middle(ranks):
    """Of so many ranks the k below a link send to each of those above it, and one after the other
    out of their nodes."""
    size = 20_000
    src, dst = np.nonzero(~np.eye(ranks, dtype=bool))
    traffic = Traffic.from_pairs(ranks, src, dst, np.ones(len(src)), np.full(len(src), size))
    line = slow_links(mesh([ranks]))
    across = (ranks // 2) * (ranks - ranks // 2) * size
    assert MakespanBound(program_of_traffic(traffic), line)(np.arange(ranks)) == across / LINK


def test_a_chain_of_messages_adds_up_over_ranks_and_their_computation():
    line = slow_links(mesh([4]))
    program = program_of(
        "chain",
        [
            [("compute", 5e-6), ("send", 1, 100)],
            [("recv", 0, 100), ("compute", 3e-6), ("send", 2, 100)],
            [("recv", 1, 100)],
        ],
    )
    bound = MakespanBound(program, line)
    for node_of, hops in (([0, 1, 2], 2), ([0, 3, 1], 5), ([3, 2, 1], 2)):
        alone = 8e-6 + 2 * (OVERHEADS + ENDS + 100 / LINK) + hops * 1e-6
        assert bound(node_of) == pytest.approx(alone, rel=1e-12, abs=0)


def test_a_rendezvous_crosses_the_network_three_times_and_holds_its_sender():
    line = slow_links(mesh([3]))
    size = GIVEN.eager_limit
    program = program_of("large", [[("send", 1, size), ("compute", 1.0)], [("recv", 0, size)]])
    way = ENDS + 2e-6
    left = GIVEN.overhead_send + 2 * way + size / GIVEN.injection_bandwidth
    assert MakespanBound(program, line)([0, 2]) == pytest.approx(left + 1.0, rel=1e-12, abs=0)


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@examples(100)
@given(run=any_runs())
def test_no_replay_is_shorter_and_none_without_contention_longer(engine, run):
    """Where the engine without contention leaves nothing out either, the path is its makespan."""
    program, topology, node_of, parameters = run
    try:
        replayed = simulate(program, topology, node_of, parameters=parameters, engine=engine)
    except DeadlockError:
        return
    bound = MakespanBound(program, topology, parameters)
    assert bound.exact
    seconds = bound(node_of)
    assert seconds <= replayed.makespan * (1 + 1e-12)
    if parameters.switching != "cut_through":
        return
    plain = replace(
        parameters, gap=0.0, gap_per_byte=0.0, copy_per_byte=0.0, progress="asynchronous",
        nic="fifo", nic_rails=1,
    )  # fmt: skip
    alone = simulate(program, topology, node_of, parameters=plain, engine="analytic").makespan
    plain_seconds = MakespanBound(program, topology, plain)(node_of)
    assert plain_seconds >= alone * (1 - 1e-12)


@examples(50)
@given(
    st.lists(st.tuples(*(st.integers(0, 11),) * 2, st.integers(0, 10**6)), min_size=1),
    st.integers(0, 14),
)
def test_turning_a_torus_changes_nothing(pairs, by):
    source, target, size = (np.array(column) for column in zip(*pairs, strict=True))
    traffic = Traffic.from_pairs(12, source, target, np.ones(len(size)), size)
    ring = torus([5, 3])  # no route has two ways round
    bound = MakespanBound(program_of_traffic(traffic), ring)
    node_of = np.random.default_rng(0).permutation(15)[:12]
    place = {tuple(at): node for node, at in enumerate(ring.coords.tolist())}
    turned = [place[(x + by) % 5, (y + by // 5) % 3] for x, y in ring.coords[node_of].tolist()]
    assert bound(turned) == pytest.approx(bound(node_of), rel=1e-12, abs=0)


@examples(50)
@given(random_loop_runs())
def test_loops_are_as_if_written_out(run):
    program, topology, node_of, parameters = run
    try:
        bound = MakespanBound(program, topology, parameters)
    except DeadlockError:
        return
    assert bound(node_of) == MakespanBound(without_loops(program), topology, parameters)(node_of)


def test_a_long_loop_is_estimated_from_its_first_steps(monkeypatch):
    program, network = lower(nas_folded("lu.S.8")), topology_from_spec("mesh:4x2")
    whole = MakespanBound(program, network)
    monkeypatch.setattr(makespan_bound, "WRITTEN_OUT", 0)
    estimate = MakespanBound(program, network)
    assert (whole.exact, estimate.exact) == (True, False)
    for seed in range(3):
        node_of = np.random.default_rng(seed).permutation(8)
        assert estimate(node_of) == pytest.approx(whole(node_of), rel=1e-3)
        assert estimate(node_of) != whole(node_of)


def test_it_sorts_mappings_as_the_replay_does_better_than_sums_do():
    from scipy.stats import kendalltau

    program = lower(read_trace(DATA / "mg.S.16"))
    network = topology_from_spec("haec:4x2x2").with_links("wireless", bandwidth=3e9)
    parameters = Parameters(compute_scale=0.0)
    bound, traffic = MakespanBound(program, network, parameters), program.traffic()
    mappings = [map_ranks(traffic, network, "random", seed=seed) for seed in range(20)]
    replayed = [simulate(program, network, m, parameters=parameters).makespan for m in mappings]
    far = [
        (network.distance(m[traffic.src], m[traffic.dst]) * traffic.bytes).sum() for m in mappings
    ]
    bounds = [bound(m) for m in mappings]
    assert kendalltau(bounds, replayed).statistic > 0.7
    assert kendalltau(bounds, replayed).statistic > kendalltau(far, replayed).statistic + 0.2


def test_what_gets_stuck_and_what_does_not_fit_is_said():
    stuck = program_of("stuck", [[("recv", 1, 8)], [("recv", 0, 8)]])
    with pytest.raises(DeadlockError, match="stuck: deadlock, 2 of 2 ranks"):
        MakespanBound(stuck, mesh([2]))
    bound = MakespanBound(shift(4, 1, 8), mesh([4]))
    with pytest.raises(MappingError):
        bound([0, 0, 1, 2])
    assert MakespanBound(program_of("nothing", [[], []]), mesh([2]))([0, 1]) == 0.0
