"""Traffic of others: as much as was asked for, whatever the network does with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hopmap.simulator import Op, ParameterError, Parameters, Record, simulate
from hopmap.simulator.jobs import by_job, merge_programs
from hopmap.simulator.programs.from_traffic import BACKGROUNDS, background
from hopmap.topologies import topology_from_spec
from hopmap.traces import TraceError

NETWORK = topology_from_spec("torus:4x2")
SIZE, RATE = 8192, 2e9


def made(pattern="uniform", seconds=1e-3, **more):
    return background(pattern, 8, **{"rate": RATE, "size": SIZE, "seconds": seconds} | more)


BUSY = {"overhead_per_byte": 4e-10}  # 3.5 us a message, of 4.1 us from one to the next


@pytest.mark.parametrize(
    "more", [{}, {"compute_scale": 0.25}, BUSY, {"compute_scale": 0.5, "eager_limit": 1, **BUSY}]
)
def test_it_sends_at_the_rate_whatever_computation_is_scaled_by_and_sending_costs(more):
    """Poisson: 8 ranks send 8 x 244 messages in 1 ms in the mean, with a deviation of 44."""
    parameters = Parameters(**more)
    program = made(parameters=parameters)
    moved = program.traffic()
    assert moved.messages.sum() == pytest.approx(8 * RATE * 1e-3 / SIZE, rel=0.1)
    result = simulate(
        program, NETWORK, np.arange(8), parameters=parameters, record=Record(messages=True)
    )
    sent = result.message_times.sent
    assert 0.95e-3 < sent.max() < 1.05e-3
    assert np.median(sent) == pytest.approx(0.5e-3, rel=0.1)


def test_gaps_are_exponential():
    """Mean and deviation of gaps are alike, and every moment is as likely."""
    program = background("uniform", 2, rate=1e8, size=1000, seconds=0.02)
    gaps = program.compute[program.kind == Op.ISEND] + Parameters().overhead_send
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.1)


def test_every_node_and_every_seed_draws_moments_and_targets_of_its_own():
    first, targets = [], []
    for seed in range(3):
        program = made(seed=seed)
        for rank in range(8):
            rows = slice(program.offsets[rank], program.offsets[rank + 1] - 1)
            first.append(program.compute[rows.start])
            peer = program.peer[rows][:100]
            targets.append(tuple((peer - (peer > rank)).tolist()))  # of the 7 others, in order
    assert len(set(first)) == len(set(targets)) == 3 * 8


def test_more_time_begins_with_the_same_messages():
    short, long = made(seconds=5e-4), made(seconds=1e-3)
    for rank in range(8):
        rows = slice(short.offsets[rank], short.offsets[rank + 1] - 1)
        longer = slice(long.offsets[rank], long.offsets[rank] + rows.stop - rows.start)
        assert np.array_equal(short.compute[rows], long.compute[longer])
        assert np.array_equal(short.peer[rows], long.peer[longer])


def test_nobody_sends_to_itself_and_patterns_are_what_they_are_called():
    uniform = made().traffic()
    assert (uniform.src != uniform.dst).all()
    assert len(uniform.src) == 8 * 7
    incast = made("incast").traffic()
    assert set(incast.dst.tolist()) == {0}
    assert set(incast.src.tolist()) == set(range(1, 8))
    tornado = made("tornado").traffic()
    assert ((tornado.dst - tornado.src) % 8 == 3).all()


@pytest.mark.parametrize("pattern", BACKGROUNDS)
def test_large_messages_ask_for_nothing_and_hold_nobody_up(pattern):
    if pattern == "transpose":  # of a line it is the line
        return
    program = made(pattern, size=10**6, rate=1e10)
    both = merge_programs([program], background=[True])
    result = simulate(both, NETWORK, np.arange(8))
    assert result.controls == 0
    assert result.omitted == ()
    assert by_job(result, both)[0].wait == 0.0


def test_messages_that_others_do_not_receive_are_told_apart_from_a_jobs():
    both = merge_programs([made(), made()], background=[True, False])
    nodes = np.concatenate([np.arange(8), np.arange(8)])
    network = replace(NETWORK, slots=NETWORK.slots + 1)
    (entry,) = simulate(both, network, nodes).omitted
    assert entry.what == "messages that are never received, counted and sent"
    assert entry.count == made().traffic().messages.sum()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"pattern": "unform"}, "unknown background 'unform' .did you mean uniform"),
        ({"rate": 0.0}, "background uniform: 0 bytes/s"),
        ({"rate": 1e12}, "expected less than 4.096e"),
        ({"parameters": Parameters(compute_scale=0.0)}, "compute.scale 0"),
        ({"ranks": 1}, "1 nodes for it: expected at least 2"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_line(more, said):
    given = {"pattern": "uniform", "ranks": 8, "rate": RATE, "size": SIZE, "seconds": 1e-3} | more
    with pytest.raises(ParameterError, match=said):
        background(given.pop("pattern"), given.pop("ranks"), **given)


def test_a_pattern_of_powers_of_two_is_for_those():
    with pytest.raises(TraceError, match="powers of two"):
        background("shuffle", 6, rate=RATE, size=SIZE, seconds=1e-3)
