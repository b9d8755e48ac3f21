"""Ping-pongs of our own engine are fitted back to the parameters that made them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopmap.simulator import ParameterError, Parameters, parameters_from, program_of, simulate
from hopmap.simulator.parameters.calibration import calibrate
from hopmap.simulator.parameters.closed_form import PingPong
from hopmap.topologies import mesh

SIZES = [0, *(2**k for k in range(23))]


def half_round_trip(size, hops, parameters, link, engine="compiled"):
    """Simulate one round trip between the ends of a line, or within a node."""
    program = program_of("ping-pong", [[("send", 1, size), ("recv", 1, size)], [("recv", 0, size), ("send", 0, size)]])  # fmt: skip  # noqa: E501
    line = mesh((hops + 1,), slots=2).with_links(**link)
    return simulate(program, line, [0, hops], parameters=parameters, engine=engine).makespan / 2


def measure(parameters, link, hops=(1,), sizes=SIZES):
    rows = [(s, half_round_trip(s, h, parameters, link), h) for h in hops for s in sizes]
    size, time, links = zip(*rows, strict=True)
    return PingPong(np.array(size), np.array(time), np.array(links))


def again(fit):
    """Parameters and link of a fit."""
    found = dict(fit.parameters)
    link = {q: found.pop(f"link.{q}") for q in ("bandwidth", "latency") if f"link.{q}" in found}
    return parameters_from(found), link


def figure(low, high):
    return st.floats(np.log(low), np.log(high)).map(lambda x: float(np.exp(x)))


@st.composite
def machines(draw):
    overhead, end = draw(figure(1e-7, 5e-6)), draw(figure(1e-7, 5e-6))
    bandwidth = draw(figure(1e9, 1e11))
    parameters = Parameters(
        overhead_send=overhead,
        overhead_recv=overhead,
        injection_latency=end,
        ejection_latency=end,
        injection_bandwidth=bandwidth,
        ejection_bandwidth=bandwidth,
        memory_latency=draw(figure(5e-8, 1e-6)),
        memory_bandwidth=draw(figure(1e9, 1e11)),
        eager_limit=draw(st.sampled_from([2**k for k in range(6, 18)])),
    )
    return parameters, {"bandwidth": bandwidth, "latency": draw(figure(2e-8, 1e-6))}


@settings(deadline=None, max_examples=5)
@given(machines())
def test_with_several_hops_and_a_break_every_parameter_comes_back(machine):
    parameters, link = machine
    sizes = [0, *(2**k for k in range(4, 21))]
    fit = calibrate(measure(parameters, link, hops=(0, 1, 4), sizes=sizes))
    found, found_link = again(fit)
    assert found.eager_limit == parameters.eager_limit
    assert fit.break_between == (parameters.eager_limit // 2, parameters.eager_limit)
    assert fit.proportioned == ()
    for key in ("overhead_send", "injection_latency", "memory_latency"):
        assert getattr(found, key) == pytest.approx(getattr(parameters, key), rel=1e-4)
    for key in ("injection_bandwidth", "memory_bandwidth"):
        assert getattr(found, key) == pytest.approx(getattr(parameters, key), rel=1e-6)
    assert found_link == pytest.approx(link, rel=1e-4)


@settings(deadline=None, max_examples=8)
@given(machines(), st.booleans())
def test_simulated_with_the_fit_a_single_ping_pong_has_the_measured_times(machine, eager):
    """What cannot be told apart is in the right sum."""
    parameters, link = machine
    if eager:
        parameters = parameters_from(
            {"overhead.send": parameters.overhead_send, "eager_limit": 2**30}
        )
    data = measure(parameters, link)
    fit = calibrate(data)
    assert fit.predicted == pytest.approx(data.time, rel=1e-6)
    found, found_link = again(fit)
    for size, time in zip(data.size.tolist(), data.time, strict=True):
        assert half_round_trip(size, 1, found, found_link) == pytest.approx(time, rel=1e-6)
    assert fit.proportioned == (("overhead", "ends", "link") if eager else ("ends", "link"))
    assert (fit.break_between is None) == eager


@settings(deadline=None, max_examples=8)
@given(machines(), st.integers(0, 2**32 - 1))
def test_noise_and_wild_values_are_bounded(machine, seed):
    """Two per cent of noise, and of every tenth measurement many times the time."""
    parameters, link = machine
    data, rng = measure(parameters, link, hops=(1, 3)), np.random.default_rng(seed)
    time = data.time * (1 + 0.02 * rng.standard_normal(len(data.time)))
    wild = rng.choice(len(time), len(time) // 10, replace=False)
    time[wild] *= rng.uniform(3, 30, len(wild))
    fit = calibrate(PingPong(data.size, time, data.hops))
    assert np.median(np.abs(fit.predicted / data.time - 1)) < 0.03
    assert (fit.weight[wild] < 0.05).all()
    assert fit.parameters["link.bandwidth"] == pytest.approx(link["bandwidth"], rel=0.1)


def line(*points):
    """Ping-pongs of 1 us and 1 GB/s, each of size, links, and a factor on its time."""
    size, hops, factor = (np.array(column) for column in zip(*points, strict=True))
    return PingPong(size, (1e-6 + hops * 1e-7 + size / 1e9) * factor, hops)


def test_the_error_is_of_all_measurements_even_of_what_the_fit_leaves_out():
    sizes = [0, *(2**k for k in range(10, 21))]
    fit = calibrate(line(*((size, 1, 1 / 1.427 if size == 4096 else 1) for size in sizes)))
    assert (fit.weight < 0.1).sum() == 1
    assert len(fit.errors) == len(sizes)
    assert max(fit.errors) == pytest.approx(0.427, rel=1e-3)
    assert fit.notes[0] == (
        "error of the fit, over all 12 measurements: 0 % (median), 42.7 % at most; 1 of them left "
        "out of the fit as wild, the others 0 % at most"
    )
    assert fit.notes[1].startswith("predicted from the other sizes: error 0 % (median), 42.7 % at")
    facts = fit.to_dict()
    assert (facts["max_error"], facts["wild"]) == (pytest.approx(0.427, rel=1e-3), 1)


def test_each_size_is_predicted_from_the_others():
    """Of three sizes between nodes one link apart: by the line through the other two."""
    size, time = np.array([0, 8192, 65536]), np.array([1.2e-6, 9e-6, 60e-6])
    fit = calibrate(PingPong(size, time, np.ones_like(size)))
    expected = [
        np.polyval(np.polyfit(np.delete(size, k), np.delete(time, k), 1), size[k]) for k in range(3)
    ]
    assert fit.from_other_sizes == pytest.approx(expected)
    checked, error = fit.to_dict()["from_other_sizes"], np.abs(fit.from_other_sizes / time - 1)
    assert checked["measurements"] == 3
    assert checked["max_error"] == pytest.approx(error.max())
    assert checked["max_error_size"] == size[error.argmax()]


def test_what_the_other_sizes_cannot_tell_is_counted():
    """Of two numbers of links the second is measured at one size only."""
    fit = calibrate(line((0, 1, 1), (8192, 1, 1), (65536, 1, 1), (0, 3, 1)))
    assert np.isfinite(fit.from_other_sizes).tolist() == [True, True, True, False]
    assert fit.from_other_sizes[:3] == pytest.approx(fit.measured.time[:3])
    assert "; of 1 of 4 measurements they say nothing" in fit.notes[1]


def test_with_as_many_unknowns_as_points_nothing_is_tested_and_nothing_wild():
    untested = calibrate(line((0, 1, 1), (8192, 1, 1), (65536, 3, 1)))
    assert untested.notes[1] == "as many unknowns as points: the fit cannot be tested"
    assert untested.to_dict()["from_other_sizes"] is None
    four = calibrate(line((0, 1, 1), (8192, 1, 1.427), (65536, 1, 1), (0, 3, 1)))
    assert four.weight.tolist() == [1, 1, 1, 1]


def test_of_hundreds_of_sizes_the_break_is_found():
    sizes = np.arange(0, 20_000, 128)
    late = np.where(sizes >= 12_800, 3, 1)
    fit = calibrate(PingPong(sizes, 1e-6 + late * 5e-7 + sizes / 1e10, np.ones_like(sizes)))
    assert fit.break_between == (12_672, 12_800)


def test_within_a_node_only_the_memory_is_known():
    fit = calibrate(measure(Parameters(), {"latency": 1e-7}, hops=(0,)))
    assert not [key for key in fit.parameters if key.startswith(("link", "injection"))]
    assert fit.parameters["memory.bandwidth"] == pytest.approx(20e9)
    assert fit.parameters["memory.latency"] == pytest.approx(200e-9)
    assert fit.parameters["overhead.send"] == pytest.approx(200e-9)


def test_without_a_break_hops_still_give_the_latency_of_a_link():
    data = measure(Parameters(eager_limit=2**30), {"latency": 3e-7}, hops=(1, 2, 4))
    fit = calibrate(data)
    assert fit.parameters["link.latency"] == pytest.approx(3e-7, rel=1e-6)
    assert fit.parameters["eager_limit"] == SIZES[-1] + 1
    assert fit.proportioned == ("overhead", "ends")
    # In the proportions of the defaults, which these are.
    assert fit.parameters["overhead.send"] == pytest.approx(200e-9, rel=1e-6)


@pytest.mark.parametrize(
    ("size", "time", "message"),
    [
        ([1, 2], [1.0, 2.0], "2 sizes: expected at least 3"),
        ([1, 2, 3], [1.0, 0.0, 2.0], "time 0.0 s of 2 bytes: expected more than 0"),
        ([1, 2, -3], [1.0, 1.0, 2.0], "a negative size"),
        ([1, 2000, 300000], [3.0, 2.0, 1.0], "times do not grow with the size"),
    ],
)
def test_what_cannot_be_fitted_is_refused(size, time, message):
    data = PingPong(np.array(size), np.array(time), np.ones(len(size), dtype=np.int64))
    with pytest.raises(ParameterError, match=message):
        calibrate(data)


def test_too_few_sizes_within_a_node_are_refused():
    size, time = np.array([0, 8192, 0, 8, 10**6]), np.array([1, 20, 1721, 4, 121]) * 1e-6
    with pytest.raises(ParameterError, match="too few sizes for a bandwidth"):
        calibrate(PingPong(size, time, np.array([1, 0, 3, 3, 3])))
