"""Several programs as one: each runs as it does alone where the network lets it."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.simulator import (
    DeadlockError,
    MakespanBound,
    Op,
    ParameterError,
    Parameters,
    explain,
    lower,
    lower_bounds,
    program_of,
    simulate,
)
from hopmap.simulator.jobs import add_co_running, merge_programs, repeat
from hopmap.simulator.programs.unrolling import unroll
from hopmap.simulator.steady_state import Steady
from hopmap.topologies import mesh, topology_from_spec
from hopmap.traces.sources import open_source
from support.random_loops import any_runs, random_loop_runs
from support.random_runs import random_runs
from support.results import bits
from support.slow import examples

# One message of a megabyte: packets of 10 kB, no overhead, so that times can be done by hand.
PLAIN = Parameters(
    overhead_send=0.0,
    overhead_recv=0.0,
    injection_bandwidth=1e12,
    ejection_bandwidth=1e12,
    injection_latency=0.0,
    ejection_latency=0.0,
    eager_limit=10**9,
    packet_size=10_000,
)
SIZE, RATE = 10**6, 1e9


def message(name, size=SIZE):
    return program_of(name, [[("send", 1, size)], [("recv", 0, size)]])


def plain(spec):
    return topology_from_spec(spec).with_links(bandwidth=RATE, latency=0.0)


def same(one, other):
    """Whether two programs are the same in every column, jobs apart."""
    for each in fields(one):
        mine, yours = getattr(one, each.name), getattr(other, each.name)
        if isinstance(mine, np.ndarray):
            assert mine.dtype == yours.dtype, each.name
            assert np.array_equal(mine, yours), each.name
        elif each.name == "work":
            assert all(map(np.array_equal, mine, yours))
        elif each.name == "collectives":
            assert mine.keys() == yours.keys()
            assert all(np.array_equal(mine[c], yours[c]) for c in mine)
        elif each.name != "jobs":
            assert mine == yours, each.name
    return True


# Where two messages go, so that all of their routes but the ends, or one link of them, are one:
# on a mesh the link 1 -> 2; on a torus likewise; in a fat tree the one way up of a leaf; on a
# dragonfly the global link between two groups; on a Dragonfly+ the only link between two cells.
ONE_LINK = {
    "mesh:4": [0, 2, 1, 3],
    "torus:8x4": [0, 2, 1, 3],
    "fattree:2x2:1x1": [0, 2, 1, 3],
    "dragonfly:2x2x1": [0, 4, 1, 5],
    "dragonfly+:2x1x1x2": [0, 2, 1, 3],
}


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@pytest.mark.parametrize(("spec", "nodes"), ONE_LINK.items())
def test_two_messages_that_share_a_link_take_twice_as_long(spec, nodes, engine):
    """The link has to pass both, whoever is first."""
    network = plain(spec)
    alone = simulate(message("a"), network, nodes[:2], parameters=PLAIN, engine=engine)
    assert alone.makespan == pytest.approx(SIZE / RATE, rel=1e-3)
    both = merge_programs([message("a"), message("b")])
    result = simulate(both, network, nodes, parameters=PLAIN, engine=engine)
    last, packet = 2 * SIZE / RATE, PLAIN.packet_size / RATE
    assert result.makespan == pytest.approx(last, abs=packet)


def test_a_job_that_starts_as_the_other_ends_shares_nothing():
    both = merge_programs([message("a"), message("b")], starts=[0.0, SIZE / RATE])
    result = simulate(both, plain("mesh:4"), [0, 2, 1, 3], parameters=PLAIN)
    assert result.finish[[1, 3]].tolist() == pytest.approx([SIZE / RATE, 2 * SIZE / RATE], rel=1e-5)


def test_a_job_that_starts_halfway_is_served_as_its_packets_come():
    """Those of the second are all there at once, at the link next to it: half of the first's bytes

    have passed, the other half come one by one and behind it.
    """
    whole = SIZE / RATE
    both = merge_programs([message("a"), message("b")], starts=[0.0, whole / 2])
    result = simulate(both, plain("mesh:4"), [0, 2, 1, 3], parameters=PLAIN)
    assert result.finish[[1, 3]].tolist() == pytest.approx([2 * whole, 1.5 * whole], rel=0.02)


@examples(100)
@given(any_runs())
def test_a_program_alone_is_itself(run):
    program = run[0]
    assert same(merge_programs([program]), program)


def test_a_recorded_program_alone_keeps_its_events():
    program = lower(open_source("collective:allreduce=ring,4,1KiB").calls())
    alone = merge_programs([program])
    assert same(alone, program)
    assert len(alone.event)


@examples(60)
@given(any_runs(), any_runs(), st.sampled_from([0.0, 1e-6, 5e-5]))
def test_both_engines_say_the_same_of_two_programs(run, other, start):
    (one, topology, node_of, parameters), two = run, other[0]
    both = merge_programs([one, two], [0.0, start])
    slots = np.repeat(np.arange(topology.nodes), topology.slots)
    wide = replace(topology, slots=topology.slots + two.ranks)
    nodes = np.concatenate((node_of, np.resize(slots, two.ranks)))
    assert _said(both, wide, nodes, parameters, "simpy") == _said(
        both, wide, nodes, parameters, "compiled"
    )


def _said(program, topology, node_of, parameters, engine):
    try:
        return bits(simulate(program, topology, node_of, parameters=parameters, engine=engine))
    except DeadlockError as error:
        return str(error)


@pytest.mark.parametrize("engine", ["simpy", "compiled", "flow", "analytic"])
def test_jobs_on_rings_of_their_own_run_as_alone_in_every_bit(engine):
    """Rows 0 and 2 of a torus share neither link nor node, wherever they are numbered."""
    torus = topology_from_spec("torus:4x4")
    programs = [
        lower(open_source(f"collective:{words}").calls())
        for words in ("allreduce=ring,4,64KiB", "alltoall=pairwise,4,16KiB")
    ]
    rows = [np.arange(4), np.arange(8, 12)]
    work = Parameters(collective_copy_per_byte=1e-10, collective_reduce_per_byte=3e-10)
    how = {"engine": engine, "parameters": work}
    both = simulate(merge_programs(programs), torus, np.concatenate(rows), **how)
    assert (both.compute > 0).all()  # both copy or add up
    for place, (program, nodes) in enumerate(zip(programs, rows, strict=True)):
        alone = simulate(program, torus, nodes, **how)
        mine = slice(4 * place, 4 * place + 4)
        for name in ("finish", "compute", "communicate", "wait"):
            assert getattr(both, name)[mine].tobytes() == getattr(alone, name).tobytes()
        used = alone.link_bytes > 0
        for name in ("link_messages", "link_bytes", "link_busy", "link_queue", "link_waited"):
            assert getattr(both, name)[used].tobytes() == getattr(alone, name)[used].tobytes()


@pytest.mark.parametrize("routing", ["deterministic", "adaptive"])
@pytest.mark.parametrize("spec", ["torus:6x3", "dragonfly:1x3x1"])
def test_finite_buffers_are_the_same_whether_or_not_another_job_passes_a_second_class(
    spec, routing
):
    """The first one's packets pass neither a wrap-around link nor a global one."""
    network, size = topology_from_spec(spec).with_links(latency=1e-5), 20_000
    few = Parameters(
        network_buffer=1,
        network_virtual_channels=3,
        network_routing=routing,
        packet_size=500,
        eager_limit=2**60,
    )
    line = program_of(
        "line", [[("send", 1, size)], [("recv", 0, size), ("send", 2, size)], [("recv", 1, size)]]
    )
    far = np.arange(network.nodes - 6, network.nodes)
    others = program_of(
        "everyone",
        [
            [("isend", to, size) for to in range(6) if to != rank]
            + [("recv", by, size) for by in range(6) if by != rank]
            for rank in range(6)
        ],
    )
    alone = simulate(line, network, range(3), parameters=few, engine="simpy")
    both = simulate(
        *(merge_programs([line, others]), network, np.concatenate((np.arange(3), far))),
        parameters=few,
        engine="simpy",
    )
    assert both.finish[:3].tobytes() == alone.finish.tobytes()


@examples(60)
@given(random_loop_runs(), st.integers(1, 4))
def test_a_repeated_program_is_a_loop_around_it(run, times):
    program, topology, node_of, parameters = run
    if _unbalanced(program):
        with pytest.raises(ParameterError, match="never received"):
            repeat(program, 2)
        return
    again = repeat(program, times)
    assert len(unroll(again)) == times * len(unroll(program)) + (times > 1) * program.ranks
    assert again.operations == program.operations + (times > 1) * program.ranks  # a loop, no copies
    copies = repeat(_with_side(program), times)
    assert (copies.kind == Op.START).sum() == times
    try:
        one = simulate(again, topology, node_of, parameters=parameters)
    except DeadlockError:
        with pytest.raises(DeadlockError):
            simulate(copies, topology, node_of, parameters=parameters)
        return
    other = simulate(copies, topology, node_of, parameters=parameters)
    assert one.finish.tobytes() == other.finish.tobytes()
    assert one.messages == other.messages == times * int(program.traffic().messages.sum())


def _with_side(program):
    """The same, but that rank 0 first begins a task that does nothing: no loop can hold that."""
    cut = int(program.offsets[1])

    def column(values, first, last):
        return np.insert(values, [0, cut], np.array([first, last], dtype=values.dtype))

    def moved(rows):
        return np.where(rows < 0, rows, rows + 1 + (rows >= cut))

    return replace(
        program,
        offsets=np.concatenate(([0], [cut + 1], program.offsets[1:] + 2)),
        rank_of=np.insert(program.rank_of, 0, 0),
        kind=column(program.kind, Op.START, Op.FINISH),
        compute=column(program.compute, 0.0, 0.0),
        target=column(moved(program.target), 1, -1),
        **{name: column(getattr(program, name), -1, -1) for name in ("peer", "tag", "context")},
        **{name: column(getattr(program, name), 0, 0) for name in ("size", "mode")},
    )


def _unbalanced(program):
    channel, iterations = program.channels(), program.iterations()
    rows = channel >= 0
    sign = np.where(program.kind[rows] >= Op.RECV, -1, 1)
    return bool(np.bincount(channel[rows], sign * iterations[rows]).any())


def test_what_was_chosen_and_left_out_counts_every_time():
    program = lower(open_source("collective:allreduce=ring,4,64KiB").calls())
    program = replace(program, dropped={"probes": 5})
    again = repeat(program, 3)
    (calls,) = program.chosen.values()
    (found,) = again.chosen.values()
    assert found == {name: 3 * times for name, times in calls.items()} != {}
    assert again.dropped == {"probes": 15}


def test_computation_behind_the_last_operation_is_repeated_too():
    program = program_of("last", [[("compute", 1.0)], [("compute", 2.0)]])
    result = simulate(repeat(program, 3), mesh([2]), [0, 1])
    assert result.finish.tolist() == [3.0, 6.0]
    assert result.compute.tolist() == [3.0, 6.0]


@examples(60)
@given(random_runs(), random_runs())
def test_what_an_operation_is_called_tells_jobs_apart(run, other):
    """Communicators, collectives and windows of the second are numbered behind the first's."""
    one, two = run[0], other[0]
    both = merge_programs([one, two])
    assert both.communicators == one.communicators + two.communicators
    assert both.p2p_traffic().messages.sum() == sum(
        each.p2p_traffic().messages.sum() for each in (one, two)
    )
    assert both.two_sided_traffic().bytes.sum() == sum(
        each.two_sided_traffic().bytes.sum() for each in (one, two)
    )
    for row in range(one.operations):
        contexts = both.context[row], both.context[one.operations :]
        assert contexts[0] < 0 or contexts[0] not in contexts[1]


def test_a_program_beside_jobs_is_the_first_of_them_all():
    mine, one, other = (message(name) for name in "abc")
    found = add_co_running(mine, merge_programs([one, other], [1e-3, 2e-3]))
    expected = merge_programs([mine, one, other], [0.0, 1e-3, 2e-3])
    assert found.jobs == expected.jobs
    assert [job.first for job in found.jobs] == [0, 2, 4]
    assert same(replace(found, name=""), replace(expected, name=""))


def test_names_of_communicators_and_collectives_move_on():
    calls = lower(open_source("collective:allreduce=ring,4,1KiB").calls())
    both = merge_programs([message("first"), calls])
    row = int(both.offsets[2])
    while both.kind[row] != Op.ISEND:
        row += 1
    assert both.describe(row).endswith("(allreduce, collective 0 of communicator 1)")
    assert both.chosen == calls.chosen
    assert [job.name for job in merge_programs([calls, calls]).jobs] == [
        f"{calls.name} #1",
        f"{calls.name} #2",
    ]


def test_waiting_for_the_start_is_waiting_and_no_computation_is_scaled():
    late = merge_programs([message("a")], starts=[1e-3])
    scaled = replace(PLAIN, compute_scale=7.0)
    result = simulate(late, plain("mesh:4"), [0, 1], parameters=scaled)
    assert result.wait[0] >= 1e-3
    assert result.compute.tolist() == [0.0, 0.0]
    assert result.makespan == pytest.approx(1e-3 + SIZE / RATE, rel=1e-6)


def test_noise_delays_a_start_and_does_not_stretch_it():
    late = merge_programs([message("a")], starts=[1.0])
    noisy = replace(PLAIN, noise_compute=2.0, noise_start=1e-6)
    result = simulate(late, plain("mesh:4"), [0, 1], parameters=noisy)
    assert 1.0 < result.wait[0] < 1.0 + 1e-4


def test_explanations_know_when_a_job_starts():
    network, nodes = plain("mesh:4"), [0, 2, 1, 3]
    both = merge_programs([message("a"), message("b")], starts=[0.0, 5e-3])
    found = explain(both, network, nodes, parameters=PLAIN, sensitivity=False)
    seconds = found.path.seconds
    assert seconds["job_start"] == 5e-3
    assert sum(seconds.values()) == pytest.approx(found.result.makespan, rel=1e-12)
    bounds = lower_bounds(both, network, nodes, parameters=PLAIN)
    assert bounds["rank"].seconds == 5e-3
    assert bounds["rank"].place == "rank 2"
    assert MakespanBound(both, network, PLAIN)(nodes) == pytest.approx(6e-3)
    assert found.free >= 5e-3


def test_jobs_with_loops_of_their_own_are_replayed_whole():
    """One is slower on its way; their loops have as many iterations, which says nothing."""

    def loop(name, size):
        return program_of(
            name,
            [
                [("repeat", 60, [("send", 1, size), ("recv", 1, 8)])],
                [("repeat", 60, [("recv", 0, size), ("send", 0, 8)])],
            ],
        )

    network, always = mesh([4]), Steady(hops=0)
    one = simulate(merge_programs([loop("a", 1000)]), network, [0, 2], steady=always)
    assert one.extrapolated is not None
    both = merge_programs([loop("a", 1000), loop("b", 900)], starts=[0.0, 1e-4])
    result = simulate(both, network, [0, 2, 1, 3], steady=always)
    assert result.extrapolated is None
    assert result.whole == "its jobs have steps of their own"
    assert result.makespan == simulate(both, network, [0, 2, 1, 3]).makespan


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"programs": []}, "jobs: expected at least one"),
        ({"starts": [-1.0]}, "a: start -1 s: expected 0 or later"),
        ({"starts": [float("nan")]}, "a: start nan s: expected 0 or later"),
        ({"repeats": [0]}, "a: repeat 0: expected 1 to 1,000,000"),
        ({"programs": [merge_programs([message("a")])]}, "a: it is several jobs"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_line(given, said):
    with pytest.raises(ParameterError, match=said):
        merge_programs(**{"programs": [message("a")]} | given)
