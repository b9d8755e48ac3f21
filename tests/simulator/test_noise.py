"""Noise: factors of mean 1 on pauses and late starts, drawn by seed, task and pause alone."""

from __future__ import annotations

from dataclasses import replace

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hopmap.simulator import (
    ENGINES,
    DeadlockError,
    ParameterError,
    Parameters,
    Record,
    critical_path,
    lower_bounds,
    program_of,
    simulate,
)
from hopmap.simulator.model import QUANTILES, mix_hash
from hopmap.simulator.noise import noise_of, quantiles
from hopmap.simulator.parameters.keys import DISTRIBUTIONS
from hopmap.simulator.programs.unrolling import without_loops
from hopmap.topologies import mesh, torus
from support.free_ends import FREE
from support.random_loops import random_loop_runs
from support.results import plan_of
from support.slow import examples

LINK, HOP = 10e9, 100e-9
NOISE = Parameters(noise_compute=0.02, noise_overhead=0.3, noise_start=1e-6)
ENDS = ("finish", "compute", "communicate", "wait")


def ring(ranks, rounds=4):
    """Everyone computes, then hands on to the next, in a loop."""
    return program_of(
        "ring",
        [
            [
                (
                    "repeat",
                    rounds,
                    [
                        ("compute", 1e-5),
                        ("irecv", (r - 1) % ranks, 1000),
                        ("send", (r + 1) % ranks, 1000),
                        ("wait", 1),
                    ],
                )
            ]
            for r in range(ranks)
        ],
    )


def replayed(parameters, program=None, node_of=None, engine="compiled", ranks=8, repeat=0):
    nodes = np.arange(ranks) if node_of is None else node_of
    return simulate(
        *(program or ring(ranks), torus((4, 2)), nodes),
        parameters=parameters,
        engine=engine,
        repeat=repeat,
    )


# What is drawn


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("deviation", [0.001, 0.01, 0.1, 0.5, 1.0])
def test_factors_have_mean_1_and_the_deviation_that_is_set(distribution, deviation):
    factors = quantiles(distribution, deviation)
    assert factors.mean() == pytest.approx(1, abs=5e-16)
    assert factors.std() == pytest.approx(deviation, rel=0.01)
    assert (factors > 0).all()
    assert (np.diff(factors) > 0).all()


def test_without_noise_every_factor_is_1():
    assert (quantiles("lognormal", 0.0) == 1).all()


@examples(100)
@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_a_hash_has_32_bits_and_is_the_same_in_python_numpy_and_compiled_code(above, number):
    expected = mix_hash(above, number)
    assert 0 <= expected < 2**32
    assert COMPILED(above, number) == expected
    assert mix_hash(np.array([above]), np.array([number]))[0] == expected


COMPILED = numba.njit(mix_hash)


def draws(seed, tasks, pauses):
    """Quantiles as engines draw them, shape (tasks, pauses)."""
    program = program_of("idle", [[] for _ in range(tasks)])
    stream = noise_of(replace(NOISE, noise_seed=seed), program).stream
    return mix_hash(stream[:, None], np.arange(1, pauses + 1)[None, :]) % QUANTILES


def test_draws_are_as_even_and_as_unrelated_as_random_ones():
    drawn = draws(0, 64, 4096)
    assert stats.chisquare(np.bincount(drawn.ravel(), minlength=QUANTILES)).pvalue > 1e-3
    neighbours = [
        (drawn[:-1], drawn[1:]),  # tasks
        (drawn[:, :-1], drawn[:, 1:]),  # pauses
        (drawn, draws(1, 64, 4096)),  # seeds
        (drawn[3], draws(3, 64, 4096)[0]),
    ]
    for one, other in neighbours:
        assert abs(stats.pearsonr(one.ravel(), other.ravel()).statistic) < 4 / np.sqrt(one.size)


def test_late_starts_are_exponential():
    program = program_of("idle", [[] for _ in range(4000)])
    delay = noise_of(replace(NOISE, noise_start=3e-6), program).delay
    assert stats.kstest(delay, stats.expon(scale=3e-6).cdf).pvalue > 1e-3


def test_a_start_is_a_draw_of_its_own_by_the_ranks_main_task():
    """Number 0 on the task: unrelated to the first pause, and to what routing draws by a seed."""
    program = program_of("idle", [[] for _ in range(4000)])
    noise = noise_of(replace(NOISE, noise_seed=3), program)
    first = mix_hash(noise.stream, 1) % QUANTILES
    assert abs(stats.spearmanr(noise.delay, first).statistic) < 4 / np.sqrt(4000)
    assert (noise.stream != mix_hash(3, np.arange(4000))).mean() > 0.99
    sided = replace(
        program_of("idle", [[]] * 6), rank_of=np.repeat(np.arange(3, dtype=np.int32), 2),
    )  # fmt: skip
    late = noise_of(NOISE, sided)
    main = mix_hash(late.stream[[0, 2, 4]], 0) % QUANTILES
    assert late.delay.tolist() == (1e-6 * quantiles("gamma", 1.0)[main]).tolist()


# What becomes of it, by hand


@pytest.mark.parametrize("engine", ENGINES)
def test_with_late_starts_alone_a_message_waits_for_the_later_of_both(engine):
    program = program_of("one", [[("send", 1, 1000)], [("recv", 0, 1000)]])
    way = HOP + 1000 / LINK
    for seed in range(20):
        parameters = Parameters(**FREE, noise_start=2 * way, noise_seed=seed)
        late = noise_of(parameters, program).delay
        result = simulate(program, mesh((2,)), [0, 1], parameters=parameters, engine=engine)
        assert result.makespan == pytest.approx(max(late[1], late[0] + way), rel=1e-12)
        assert result.wait[0] == late[0]


@pytest.mark.parametrize("engine", ENGINES)
def test_ranks_that_do_nothing_end_when_they_start(engine):
    parameters = Parameters(noise_start=1.0, noise_seed=5)
    program = program_of("idle", [[] for _ in range(6)])
    result = simulate(program, mesh((6,)), range(6), parameters=parameters, engine=engine)
    late = noise_of(parameters, program).delay
    assert result.finish.tolist() == late.tolist()
    assert result.makespan == late.max() > 0


@pytest.mark.parametrize("engine", ENGINES)
def test_every_pause_has_a_factor_of_its_own(engine):
    # Rank 1: computes for 1 s, twice; each iteration receives, which costs 1 s, too.
    parameters = Parameters(
        **FREE | {"overhead_recv": 1.0}, noise_compute=0.1, noise_overhead=0.5, noise_seed=7
    )
    body = [("compute", 1.0), ("recv", 0, 8)]
    program = program_of("two", [[("repeat", 2, [("send", 1, 8)])], [("repeat", 2, body)]])
    result = simulate(program, mesh((2,)), [0, 1], parameters=parameters, engine=engine)
    stream = noise_of(parameters, program).stream[1]
    one, two, three, four = (mix_hash(int(stream), k) % QUANTILES for k in (1, 2, 3, 4))
    compute, overhead = quantiles("lognormal", 0.1), quantiles("lognormal", 0.5)
    assert result.compute[1] == compute[one] + compute[three]
    assert result.communicate[1] == overhead[two] + overhead[four]
    assert result.makespan == pytest.approx(result.compute[1] + result.communicate[1], rel=1e-12)


# What it depends on, and what not


@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_seed_gives_the_same_bits_and_another_one_others(engine):
    runs = [
        replayed(replace(NOISE, noise_seed=seed), engine=engine).finish.tolist()
        for seed in (3, 3, 4)
    ]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize("quantity", ["compute", "communicate"])
def test_neither_mapping_nor_engine_changes_what_is_drawn(quantity):
    pauses = {
        getattr(replayed(NOISE, node_of=node_of, engine=engine), quantity).tobytes()
        for engine in ENGINES
        for node_of in (np.arange(8), np.arange(8)[::-1], [3, 1, 4, 0, 5, 2, 6, 7])
    }
    assert len(pauses) == 1


def test_no_noise_is_the_run_without_it_and_a_little_is_near_it():
    plain, silent, little = (
        replayed(parameters)
        for parameters in (
            Parameters(),
            Parameters(noise_seed=9, noise_distribution="gamma"),
            Parameters(noise_compute=1e-9, noise_overhead=1e-9, noise_start=1e-15),
        )
    )
    for name in ENDS:
        assert getattr(silent, name).tobytes() == getattr(plain, name).tobytes()
    assert little.makespan != plain.makespan
    assert little.makespan == pytest.approx(plain.makespan, rel=1e-6)


@examples(60)
@given(random_loop_runs(), st.integers(0, 3))
def test_loops_draw_as_if_they_were_written_out(run, seed):
    program, topology, node_of, parameters = run
    noisy = replace(parameters, noise_compute=0.5, noise_overhead=0.5, noise_start=1e-6)
    noisy = replace(noisy, noise_seed=seed)
    folded, whole = (
        told(each, topology, node_of, noisy) for each in (program, without_loops(program))
    )
    assert folded == whole


def told(program, topology, node_of, parameters):
    try:
        result = simulate(program, topology, node_of, parameters=parameters)
    except DeadlockError as error:
        return str(error)
    return [getattr(result, name).tobytes() for name in ENDS]


def test_bounds_and_critical_paths_are_of_runs_without_noise():
    program, where = ring(4), (mesh((4,)), range(4))
    with pytest.raises(ParameterError, match=r"noise.overhead 0.3: lower bounds .* expected 0"):
        lower_bounds(program, *where, parameters=Parameters(noise_overhead=0.3))
    result = simulate(program, *where, record=Record(operations=True))
    with pytest.raises(ParameterError, match=r"noise.start 1e-06: the critical path .* expected 0"):
        critical_path(plan_of(result).again(Parameters(noise_start=1e-6)), result)


def test_an_ensemble_is_the_replays_with_one_seed_after_the_other():
    noisy = replace(NOISE, noise_seed=5)
    result = replayed(noisy, repeat=7)
    alone = [replayed(replace(NOISE, noise_seed=5 + k)).makespan for k in range(7)]
    assert result.ensemble.makespans.tolist() == alone
    assert result.ensemble.seed == 5
    assert result.makespan == replayed(Parameters()).makespan
    usual = replayed(Parameters(), repeat=6).ensemble.noise
    assert usual == {"noise.compute": 0.01, "noise.overhead": 0.1, "noise.start": 1e-6}
    with pytest.raises(ParameterError, match="repeat 5: expected 6 to 1,000,000"):
        replayed(noisy, repeat=5)
