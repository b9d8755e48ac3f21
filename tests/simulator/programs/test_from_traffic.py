"""Traffic as a program sends exactly that traffic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopmap.simulator import ENGINES, Op, ParameterError, Parameters, program_of_traffic, simulate
from hopmap.topologies import torus
from hopmap.traces import Traffic
from support.slow import examples

RANKS = 6
rows = st.lists(
    st.tuples(
        st.integers(0, RANKS - 1), st.integers(0, RANKS - 1), st.integers(1, 9), st.integers(0, 999)
    ),
    max_size=12,
)


def traffic_of(drawn):
    columns = zip(*drawn, strict=True) if drawn else ([], [], [], [])
    return Traffic.from_pairs(RANKS, *columns)


@examples(100)
@given(rows, st.sampled_from(["rounds", "at_once"]), st.none() | st.integers(1, 20))
def test_what_is_sent_is_the_traffic(drawn, mode, rounds):
    traffic = traffic_of(drawn)
    program = program_of_traffic(traffic, mode, rounds)
    assert program.traffic().same_as(traffic)
    assert program.p2p_traffic().same_as(traffic)
    assert (program.receives() >= 0).all()
    sends = program.sends()
    rank = program.rank_of_row()[sends]
    for s, d, messages, size in zip(
        traffic.src, traffic.dst, traffic.messages, traffic.bytes, strict=True
    ):
        sizes = program.size[sends[(rank == s) & (program.peer[sends] == d)]]
        assert (len(sizes), sizes.sum()) == (messages, size)
        assert np.ptp(sizes) <= 1


@settings(max_examples=30, deadline=None)
@given(rows, st.none() | st.integers(1, 20), st.sampled_from([0, 100, 10**6]))
def test_it_runs_to_its_end_and_loads_links_as_the_metric_says(drawn, rounds, eager_limit):
    traffic, topology = traffic_of(drawn), torus((3, 2))
    program = program_of_traffic(traffic, rounds=rounds)
    for engine in ENGINES:
        result = simulate(
            program,
            topology,
            range(RANKS),
            parameters=Parameters(eager_limit=eager_limit),
            engine=engine,
        )
        loads = topology.loads(traffic.src, traffic.dst, traffic.bytes)
        assert np.array_equal(result.link_bytes, loads)


def test_a_round_posts_receives_then_sends_then_waits_for_all():
    traffic = Traffic.from_pairs(2, [0, 1], [1, 0], [2, 1], [7, 5])
    program = program_of_traffic(traffic)
    first = slice(0, program.offsets[1])
    assert [Op(k).name for k in program.kind[first]] == [
        *("IRECV", "ISEND", "WAIT", "WAIT"),
        *("ISEND", "WAIT"),
        "FINISH",
    ]
    assert program.target[first].tolist() == [-1, -1, 1, 0, -1, 4, -1]
    assert program.size[first].tolist() == [5, 4, 0, 0, 3, 0, 0]
    at_once = program_of_traffic(traffic, "at_once")
    assert [Op(k).name for k in at_once.kind[: at_once.offsets[1]]] == [
        *("IRECV", "ISEND", "ISEND", "WAIT", "WAIT", "WAIT"),
        "FINISH",
    ]


def test_messages_are_spread_evenly_over_rounds():
    traffic = Traffic.from_pairs(2, [0], [1], [7], [70])
    program = program_of_traffic(traffic, rounds=3)
    kinds = "".join("W" if k == Op.WAIT else "S" for k in program.kind[: program.offsets[1] - 1])
    assert kinds == "SSSWWWSSWWSSWW"


def test_what_cannot_be_done_is_said():
    traffic = Traffic.from_pairs(2, [0], [1], [1], [1])
    with pytest.raises(ParameterError, match=r"mode 'sometimes': expected one of rounds, at_once"):
        program_of_traffic(traffic, "sometimes")
    with pytest.raises(ParameterError, match=r"rounds 0: expected 1 to 1,000,000,000"):
        program_of_traffic(traffic, rounds=0)
