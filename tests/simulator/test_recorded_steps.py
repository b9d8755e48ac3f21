"""Extrapolated runs of recorded steps agree with whole ones; recordings have no loops."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.simulator import Parameters, lower, program_of, simulate
from hopmap.simulator.programs.steps import find_steps, vary
from hopmap.simulator.steady_state import Steady
from hopmap.topologies import torus
from hopmap.traces import read_trace
from support.random_loops import (
    ALWAYS,
    LINE,
    RANKS,
    bodies,
    both,
    both_on_all_engines,
    counts_agree,
    exact,
    random_loop_runs,
    shifts,
    with_exact_pauses,
    written_out,
)
from support.results import bits
from support.slow import examples


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@pytest.mark.parametrize("times", [300, 301])
def test_written_out_steps_that_repeat_exactly_are_extrapolated_to_the_last_bit(engine, times):
    """Every fourth step is the same, see below; all times are whole ticks, so nothing rounds."""
    topology, parameters = exact(LINE, Parameters())
    before = [[("isend", (r + 2) % 4, 5_000_000), ("irecv", (r + 2) % 4, 0)] for r in range(4)]
    behind = [[("compute", 0.5 * (r == 2))] for r in range(4)]
    program = with_exact_pauses(written_out(times, shifts(3000), before, behind))
    more = {"topology": topology, "parameters": parameters, "engine": engine}
    whole, told = both(program, **more)
    assert (told.extrapolated.of, told.extrapolated.period) == (times, 4)
    assert told.extrapolated.steps < 150
    assert told.extrapolated.error <= 1.01e-9
    for name in ("finish", "compute", "communicate", "wait"):
        assert getattr(told, name).tobytes() == getattr(whole, name).tobytes()
    assert told.link_busy == pytest.approx(whole.link_busy, rel=1e-9)
    counts_agree(whole, told)


NOISE = np.random.default_rng(3).exponential(1e-6, (4, 100))
SENDS, RECEIVES = [("send", 1, 9)] * 40, [("recv", 0, 9)] * 40


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (written_out(16, shifts(10)), "16 steps are too few"),
        (written_out(100, shifts(10), pauses=NOISE), "do not repeat exactly, and no tolerance"),
        (program_of("sizes", [
            [("send", 1, 1 + k**3) for k in range(40)], [("recv", 0, 1 + k**3) for k in range(40)]
        ]), "rank 0 repeats nothing: expected steps with the same partners, tags and sizes"),
        (program_of("open", [
            [("irecv", 1, 8), *SENDS, ("wait", 0)], [("isend", 0, 8), *RECEIVES, ("wait", 0)],
        ]), "and no request under way between them"),
        (program_of("counts", [SENDS, [*RECEIVES[4:], *[("irecv", 0, 9)] * 4]]),
         "rank 1 repeats 36 steps, rank 0 40"),
        (program_of("one side", [
            SENDS, [*[("recv", 2, 9)] * 40, *[("recv", 0, k) for k in range(40)]], SENDS,
        ]), "its steps receive other messages than they send"),
    ],
)  # fmt: skip
def test_written_out_steps_that_cannot_be_extrapolated_say_why(program, why):
    told = simulate(program, LINE, np.arange(program.ranks), steady=ALWAYS)
    assert told.extrapolated is None
    assert why in told.whole


@pytest.mark.parametrize("times", [100, 300, 1100])  # of which 50, 32, and 32 and 256 are watched
def test_steps_that_do_not_settle_are_replayed_whole(times):
    pauses = np.random.default_rng(5).exponential(1e-6, (4, times))
    program = written_out(times, shifts(100), pauses=pauses)
    whole, told = both(program, steady=Steady.within(1e-4))
    assert told.whole == "its steps do not settle to 0.01%"
    assert bits(replace(told, whole="")) == bits(whole)


@pytest.mark.parametrize("times", [100, 300, 1100])
def test_few_steps_are_enough_of_any(times):
    pauses = np.random.default_rng(5).normal(1e-6, 1e-8, (4, times))
    program = written_out(times, shifts(100), pauses=pauses)
    whole, told = both(program, steady=Steady.within(0.05))
    counts_agree(whole, told)
    assert told.extrapolated.steps < 30
    assert abs(told.makespan - whole.makespan) <= told.extrapolated.error * told.makespan
    assert told.link_busy == pytest.approx(whole.link_busy, rel=1e-9)


def test_the_error_grows_where_steps_to_come_compute_longer():
    """All else might double as the computing of the second half does; here it does not."""
    pauses = np.full((4, 100), 1e-6)
    pauses[:, 50:] *= 2
    program = written_out(100, shifts(100, pause=0.0), pauses=pauses)
    whole, told = both(program, steady=Steady.within(0.5))
    assert told.extrapolated.steps == 10
    assert told.makespan == pytest.approx(whole.makespan, rel=1e-12)
    other = (told.makespan - 150e-6) / 100
    error = told.extrapolated.error * told.makespan
    assert error == pytest.approx(50 * other + 1e-9 * told.makespan, rel=1e-6)


def test_steps_are_as_short_as_they_can_be():
    """What comes twice before them is two steps apart."""
    sizes = [100, 1, 2, 3, 100, *[9, 8] * 40]
    program = program_of(
        "short", [[("send", 1, k) for k in sizes], [("recv", 0, k) for k in sizes]]
    )
    first = np.array([[5], [5 + len(sizes) + 1]])
    assert np.array_equal(find_steps(program), first + 2 * np.arange(41))


def test_steps_vary_if_the_first_rank_computes_longer_in_one():
    for more in (0.0, 1e-9):
        pauses = np.full((4, 30), 1e-6)
        pauses[0, 20] += more
        program = written_out(30, shifts(100), pauses=pauses)
        assert vary(program, program.compute) == (more > 0)
        assert not vary(program, 0 * program.compute)


@examples(100)
@given(random_loop_runs(), bodies(depth=0), bodies(depth=0), st.integers(18, 60), st.data())
def test_drawn_steps_with_noise_are_within_their_error_and_engines_agree(
    run, before, steps, times, data
):
    """Ranks compute for random times in every step, and sometimes for much longer in one."""
    _, topology, node_of, parameters = run
    for r, operations in enumerate(steps):
        at = len(operations)
        operations += [("irecv", (r - 1) % RANKS, 8, 9), ("isend", (r + 1) % RANKS, 8, 9)]
        operations += [("wait", at), ("wait", at + 1)]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    scale = data.draw(st.sampled_from([0, 1e-8, 1e-6, 2e-5]))
    pauses = rng.gamma(4, scale / 4, (RANKS, times))
    if scale and data.draw(st.booleans()):
        pauses[rng.integers(RANKS), rng.integers(times)] += 1e-3
    topology, parameters = exact(topology, parameters)
    program = with_exact_pauses(written_out(times, steps, before, pauses=pauses))
    more = {"node_of": node_of, "parameters": parameters, "topology": topology}
    more["steady"] = Steady.within(data.draw(st.sampled_from([1e-8, 0.01, 0.05, 0.2])))
    whole, told = both_on_all_engines(program, **more)
    if told.extrapolated is None:
        return
    assert told.compute == pytest.approx(whole.compute, rel=1e-12)
    assert told.communicate == pytest.approx(whole.communicate, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("name", ["lu.S.16", "cg.S.16", "bt.S.9", "sp.S.9", "mg.S.16"])
@pytest.mark.parametrize("scale", [1.0, 0.1])
def test_recorded_benchmarks_are_within_their_error(shared, name, scale):
    program = lower(read_trace(shared / "nas" / name))
    node_of = np.random.default_rng(1).permutation(16)[: program.ranks]
    more = {"parameters": Parameters(compute_scale=scale), "steady": Steady.within(0.2)}
    whole, told = both(program, torus((4, 4)), node_of, **more)
    counts_agree(whole, told)
    if name in ("cg.S.16", "mg.S.16"):
        assert told.whole == f"{15 if name == 'cg.S.16' else 4} steps are too few"
        return
    assert told.extrapolated.steps < told.extrapolated.of / 3
    assert abs(told.makespan - whole.makespan) <= told.extrapolated.error * told.makespan
