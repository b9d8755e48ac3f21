"""Runs extrapolated from their first steps, beside the same runs replayed whole."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hopmap.simulator import Parameters, Record, lower, program_of
from hopmap.simulator.steady_state import Steady, pace_of
from hopmap.topologies import torus
from hopmap.traces import nas_folded
from support.random_loops import (
    ALWAYS,
    LINE,
    RANKS,
    bodies,
    both,
    both_on_all_engines,
    counts_agree,
    exact,
    looped,
    random_loop_runs,
    shifts,
    with_exact_pauses,
)
from support.slow import examples


@pytest.mark.parametrize("size", [100, 100_000])
@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_equal_steps_are_replayed_ten_times_of_any(engine, size):
    whole, told = both(looped(300, shifts(size)), engine=engine)
    assert (told.extrapolated.steps, told.extrapolated.of) == (10, 300)
    assert told.extrapolated.period == 1
    assert 0 < told.extrapolated.error <= 1.1e-9
    assert told.makespan == pytest.approx(whole.makespan, rel=1e-12)
    for name in ("finish", "compute", "communicate", "wait", "link_busy", "link_waited"):
        assert getattr(told, name) == pytest.approx(getattr(whole, name), rel=1e-9, abs=1e-15)
    counts_agree(whole, told)


@pytest.mark.parametrize("size", [100, 100_000])
@pytest.mark.parametrize("word", ["send", "bsend", "ssend", "rsend"])
def test_control_messages_of_all_modes_are_counted(word, size):
    steps = [
        [("irecv", (r - 1) % 4, size), (word, (r + 1) % 4, size), ("wait", 0)] for r in range(4)
    ]
    whole, told = both(looped(300, steps))
    assert told.extrapolated
    counts_agree(whole, told)


def test_the_time_of_a_step_is_the_closed_form():
    """200 ns to send, 3 x 100 ns and 2 x 200 ns of latency, 100 bytes, 200 ns to receive."""
    told = both(looped(300, shifts(100, pause=5e-6)), steady=ALWAYS)[1]
    link = LINE.kinds[0]
    alone = 5e-6 + 2e-7 + 2 * 2e-7 + link.latency + 100 / min(link.bandwidth, 24e9) + 2e-7
    assert told.extrapolated.seconds == pytest.approx(alone, rel=1e-9)
    assert told.makespan == pytest.approx(300 * alone, rel=1e-9)


def test_what_is_before_and_behind_the_loop_is_replayed():
    before = [[("send", (r + 1) % 4, 50_000), ("recv", (r - 1) % 4, 50_000)] for r in range(4)]
    behind = [[("compute", 0.5 * (r == 2))] for r in range(4)]
    whole, told = both(looped(400, shifts(3000), before, behind))
    assert told.extrapolated.steps == 10
    assert told.makespan == pytest.approx(whole.makespan, rel=1e-12)
    assert told.finish[2] - told.finish[0] == pytest.approx(0.5, rel=1e-12)
    counts_agree(whole, told)


def test_steps_that_repeat_every_fourth_time_have_that_period():
    """What was sent before delays the first step, and the gap goes round the ring of 4 for ever."""
    before = [[("isend", (r + 2) % 4, 5_000_000), ("irecv", (r + 2) % 4, 0)] for r in range(4)]
    for times in (399, 400, 401, 402):
        sure = replace(ALWAYS, tolerance=1e-6)
        whole, told = both(looped(times, shifts(3000), before), steady=sure)
        assert told.extrapolated.period == 4
        assert (times - told.extrapolated.steps) % 4 == 0
        assert told.finish == pytest.approx(whole.finish, rel=1e-12)
        assert told.extrapolated.error <= 1.1e-9
        counts_agree(whole, told)


def test_ranks_that_do_not_share_a_pace_are_replayed_whole():
    """Ranks 2 and 3 exchange messages too, but take a tenth longer."""
    steps = [
        [("compute", pause), ("isend", p, 100), ("irecv", p, 100), ("wait", 1), ("wait", 2)]
        for p, pause in ((1, 1e-5), (0, 1e-5), (3, 1.1e-5), (2, 1.1e-5))
    ]
    whole, told = both(looped(200, steps))
    assert told.extrapolated is None
    assert told.whole == "its steps do not settle to 0.20%"
    assert told.finish.tobytes() == whole.finish.tobytes()


def test_a_sender_that_runs_ahead_is_replayed_whole():
    """Rank 0 never waits, so that its messages queue for the link longer and longer."""
    program = looped(200, [[("send", 1, 9000)], [("recv", 0, 9000)]])
    whole, told = both(program)
    assert told.extrapolated is None
    assert told.finish.tobytes() == whole.finish.tobytes()


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (program_of("once", shifts(10)), "rank 0 repeats nothing"),
        (looped(16, shifts(10)), "16 steps are too few"),
        (program_of("two", [[("repeat", 50, s)] if r else s * 2 for r, s in enumerate(
            [[("compute", 1e-6)]] * 4)]), "no loop that all ranks"),
        (program_of("lengths", [[("repeat", 50 + (r > 1), [("compute", 1e-6)])] for r in range(4)]),
         "no loop that all ranks"),
        (program_of("sides", [
            [("repeat", 50, [("send", 1, 9)])],
            [*[("recv", 0, 9)] * 50, ("repeat", 50, [("compute", 1e-6)])],
        ]), "no loop that all ranks"),
        (program_of("places", [
            [("repeat", 50, [("send", 1, 9), ("compute", 0.0)]), ("repeat", 50, [])],
            [("repeat", 50, []), ("repeat", 50, [("recv", 0, 9), ("compute", 0.0)])],
        ]), "no loop that all ranks"),
    ],
)  # fmt: skip
def test_programs_without_such_a_loop_are_replayed_whole_and_say_so(program, why):
    told = both(program)[1]
    assert told.extrapolated is None
    assert why in told.whole


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"record": Record(messages=True)}, "what it keeps is of all steps"),
        ({"record": Record(operations=True)}, "what it keeps is of all steps"),
        ({"record": Record(bins=8)}, "what it keeps is of all steps"),
        ({"engine": "flow"}, "engine flow writes loops out"),
        ({"engine": "analytic"}, "engine analytic writes loops out"),
        ({"steady": Steady()}, ""),  # too short to be worth it
    ],
)
def test_runs_that_need_all_steps_are_replayed_whole(asked, why):
    whole, told = both(looped(100, shifts(100)), **asked)
    assert (told.extrapolated, told.whole) == (None, why)
    assert (whole.extrapolated, whole.whole) == (None, "")
    assert told.makespan == whole.makespan


def times_add_up(told):
    """A rank that never waits computes beyond the pace, by less than the error."""
    over = told.compute + told.communicate + told.wait - told.finish
    assert (over >= -1e-6 * told.makespan).all()
    assert (over <= told.extrapolated.error * told.makespan).all()


def test_a_rank_that_never_waits_ends_within_the_error():
    """Rank 0 computes all the time; the others, four in a ring with it, come to its pace slowly."""
    steps = shifts(8, pause=0.0, ranks=5)
    sends = [("compute", 1e-6), ("send", 1, 0), *steps[0][1:3], ("wait", 2), ("wait", 3)]
    steps[0] = [*sends, ("compute", 1e-6)]
    steps[1] = [("recv", 0, 0), *steps[1][1:]]
    program = looped(26, steps)
    node_of, steady = np.array([0, 0, 1, 1, 2]), replace(ALWAYS, tolerance=0.1)
    whole, told = both(program, torus((2, 2), slots=2), node_of, steady)
    assert told.extrapolated is not None
    assert whole.wait[0] == 0.0
    times_add_up(told)


@examples(100)
@given(random_loop_runs(), bodies(depth=1), bodies(depth=1), st.integers(18, 40), st.data())
def test_drawn_loops_are_within_their_error_and_engines_agree(run, before, steps, times, data):
    """A drawn prologue and body; at the end of a step a ring, so that no rank runs away."""
    _, topology, node_of, parameters = run
    topology, parameters = exact(topology, parameters)
    for r, operations in enumerate(steps):
        at = len(operations)
        operations += [("irecv", (r - 1) % RANKS, 8, 9), ("isend", (r + 1) % RANKS, 8, 9)]
        operations += [("wait", at), ("wait", at + 1)]
        if data.draw(st.booleans()):
            operations.append(("compute", data.draw(st.sampled_from([1e-6, 1e-5]))))
    program = with_exact_pauses(looped(times, steps, before))
    more = {"node_of": node_of, "parameters": parameters, "topology": topology}
    more["steady"] = replace(ALWAYS, tolerance=data.draw(st.sampled_from([1e-6, 2e-3, 0.1])))
    _, told = both_on_all_engines(program, **more)
    if told.extrapolated is None:
        return
    assert told.extrapolated.error <= more["steady"].tolerance * 1.01 + 1e-9
    times_add_up(told)


@pytest.mark.parametrize("name", ["lu.S.16", "bt.S.16", "sp.S.16", "cg.S.16", "mg.W.16"])
def test_benchmarks_are_within_their_error(name):
    program = lower(nas_folded(name))
    node_of = np.random.default_rng(1).permutation(16)
    whole, told = both(program, torus((4, 4)), node_of, steady=replace(ALWAYS, tolerance=0.02))
    counts_agree(whole, told)
    if told.extrapolated is None:
        assert told.whole
        return
    assert abs(told.makespan - whole.makespan) <= told.extrapolated.error * told.makespan
    # A link passes every packet at its own pace; the node behind it is held by slower ones.
    assert told.link_busy == pytest.approx(whole.link_busy, rel=1e-9)
    assert told.ejection.busy == pytest.approx(whole.ejection.busy, rel=0.05)


def test_computation_without_messages_is_extrapolated_too():
    program = program_of("alone", [[("repeat", 100, [("compute", 0.25)])] for _ in range(3)])
    told = both(program, parameters=Parameters(compute_scale=2.0))[1]
    assert (told.extrapolated.steps, told.makespan) == (10, 50.0)
    assert (told.compute.tolist(), told.wait.tolist()) == ([50.0] * 3, [0.0] * 3)


def ends(increments, ranks=3, late=0.0):
    """When each rank ended each step; the r-th rank is r * `late` behind the first."""
    return np.cumsum(increments) + late * np.arange(ranks)[:, None]


def test_nothing_is_said_before_eight_increments():
    assert pace_of(ends([1.0] * 8), 100) is None
    assert pace_of(ends([1.0] * 9), 100) is not None


def test_equal_steps_go_on_without_error():
    assert pace_of(ends([0.5] * 12, late=0.25), 100) == (1, 0.5, 0.0)


def test_ranks_may_be_behind_each_other_but_not_fall_behind():
    slower = np.outer([1.0, 1.25], np.arange(1, 13))
    pace = pace_of(slower, 100)
    assert pace.seconds == 1.125
    assert pace.error >= 100 * 0.25  # the gap opens by that much


@pytest.mark.parametrize("period", [2, 3, 5])
def test_alternating_steps_have_the_smallest_period(period):
    steps = np.resize([1.0, 2.0, 4.0, 1.5, 3.0][:period], 12 * period)
    pace = pace_of(ends(steps), 7 * period)
    assert (pace.period, pace.seconds) == (period, steps[:period].sum())
    assert pace.error == pytest.approx(0.0, abs=1e-9)


def test_a_period_is_seen_eight_times_before_it_is_believed():
    assert pace_of(ends([1.0, 2.0] * 8), 100).period == 1
    assert pace_of(ends([1.0, 2.0] * 10), 100).period == 2


def test_what_the_first_quarter_did_is_forgotten():
    settled = [1.0] * 30
    assert pace_of(ends([9.0] * 10 + settled), 100) == (1, 1.0, 0.0)
    assert pace_of(ends([9.0] * 12 + settled), 100).error > 0


def test_a_pace_that_changed_once_may_change_again():
    """Half of the steps seen take 1.1 s: nobody knows which of the two is to come."""
    pace = pace_of(ends([1.0] * 25 + [1.1] * 15), 1000)
    assert pace.error >= 1000 * max(pace.seconds - 1.0, 1.1 - pace.seconds)


def test_steps_that_take_longer_and_longer_do_not_settle():
    for steps in (16, 64, 256):
        increments = 1 + np.arange(2 * steps) / steps
        pace = pace_of(ends(increments[:steps]), steps)
        assert abs(steps * pace.seconds - increments[steps:].sum()) <= 2 * pace.error
        assert pace.error > 0.2 * steps


@given(st.integers(0, 2**32), st.integers(9, 200), st.integers(1, 1000), st.booleans())
def test_the_error_covers_steps_that_vary_by_chance(seed, steps, left, walks):
    """Either each step varies, or where a rank is within its step does."""
    rng = np.random.default_rng(seed)
    noise = 0.01 * rng.standard_normal(steps + left)
    times = np.arange(1, steps + left + 1) + (np.cumsum(noise) if walks else noise)
    pace = pace_of(times[None, :steps], left)
    assume(left % pace.period == 0)  # a run leaves its loop when whole periods are left
    told = times[steps - 1] + left / pace.period * pace.seconds
    assert abs(told - times[-1]) <= pace.error
