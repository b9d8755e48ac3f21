"""What is fitted to measured collectives: too little is refused, no eager limit may lose a call."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hopmap.simulator.measured import calibration
from hopmap.simulator.measured.calibration import LIMITS, fit_collectives
from hopmap.simulator.measured.files import MeasuredError
from hopmap.simulator.measured.prediction import Prediction
from hopmap.topologies import torus
from support.measured_calls import measured_of


def rows(algorithm, sizes, speed=1e9):
    return [
        {
            "collective": "allreduce",
            "algorithm": algorithm,
            "buffer_bytes": size,
            "median_ns": 1e9 * size / speed,
        }
        for size in sizes
    ]


def test_calls_of_which_too_few_can_be_simulated_are_refused():
    # This Bine tree is for powers of two.
    calls = measured_of(
        rows("bine_bdw_remap_over", [2**k for k in range(10, 20)])
        + rows("default-ring", [2**20, 2**21, 2**22])
    )
    expected = "3 calls that can be simulated: expected at least 6 for 2 parameters"
    with pytest.raises(MeasuredError, match=expected):
        fit_collectives(calls, [torus((6,))], {}, ["link.bandwidth", "overhead.send"])


@pytest.mark.parametrize("stuck", [{LIMITS[0]}, set(LIMITS[1:])])
def test_an_eager_limit_with_which_calls_get_stuck_is_not_chosen(monkeypatch, stuck):
    def predict(calls, networks, parameters, **_):
        time = calls.size / networks[0].kinds[0].bandwidth
        time[0] = np.nan if parameters[0].eager_limit in stuck else time[0]
        return Prediction(time, ("",) * len(calls))

    monkeypatch.setattr(calibration, "predict", predict)
    calls = measured_of(rows("default-ring", [2**k for k in range(10, 20)]))
    found = fit_collectives(calls, [torus((4,))], {}, ["link.bandwidth"])
    assert found.settings["eager_limit"] in set(LIMITS) - stuck
    assert found.parameters["link.bandwidth"] == pytest.approx(1e9, rel=1e-3)


def test_of_the_usual_parameters_those_are_fitted_that_some_call_depends_on(monkeypatch):
    def predict(calls, networks, parameters, **_):
        seconds = calls.size / networks[0].kinds[0].bandwidth + parameters[0].overhead_send
        return Prediction(seconds, ("",) * len(calls))

    monkeypatch.setattr(calibration, "predict", predict)
    calls = measured_of(rows("default-ring", [2**k for k in range(3 * len(calibration.USUAL))]))
    found = fit_collectives(calls, [torus((4,))], {"eager_limit": 8192})
    assert set(found.parameters) == {"link.bandwidth", "overhead.send"}
    assert "collective.put_setup" not in found.settings


def test_what_calls_do_not_tell_is_left_as_it_was_set(monkeypatch):
    wild = np.exp(0.02 * np.random.default_rng(3).standard_normal(12))

    def predict(calls, networks, parameters, **_):
        seconds = calls.size / networks[0].kinds[0].bandwidth + parameters[0].overhead_send
        return Prediction(seconds, ("",) * len(calls))

    monkeypatch.setattr(calibration, "predict", predict)
    sizes = [2**20 + 2**14 * k for k in range(12)]
    calls = measured_of(
        rows("default-ring", sizes[:6]) + rows("default-recursive_doubling", sizes[6:])
    )
    calls = replace(calls, time=calls.time * wild)
    settings = {"eager_limit": 8192, "overhead.send": 1e-6}
    found = fit_collectives(calls, [torus((4,))], settings, ["link.bandwidth", "overhead.send"])
    assert found.undetermined == ("overhead.send",)
    assert found.settings["overhead.send"] == 1e-6
    assert found.parameters["link.bandwidth"] == pytest.approx(1e9, rel=0.02)
    # Small messages tell it.
    small = measured_of(rows("default-ring", [2**k for k in range(4, 22)]))
    small = replace(small, time=small.time + 1e-6)
    found = fit_collectives(small, [torus((4,))], settings, ["link.bandwidth", "overhead.send"])
    assert found.undetermined == ()
