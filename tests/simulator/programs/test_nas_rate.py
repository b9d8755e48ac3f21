"""The rate of the compute model, from recorded runs."""

from dataclasses import replace

import numpy as np
import pytest

from hopmap.simulator.programs.computation import fit_rate
from hopmap.traces import TraceError, nas_trace


@pytest.mark.parametrize("name", ["lu.S.4", "lu.S.9", "cg.S.8", "cg.W.4", "mg.W.16", "ep.S.3"])
def test_a_run_at_a_known_rate_has_that_rate(name):
    benchmark = name.split(".")[0]
    fit = fit_rate(replace(nas_trace(name, flops=2e7), name=name), benchmark)
    assert fit.name == name
    assert fit.by_rank == pytest.approx(2e7, rel=1e-3)
    assert fit.flops == pytest.approx(2e7, rel=1e-3)


def test_ranks_of_unlike_speed_spread():
    trace = nas_trace("cg.S.4", flops=1e6)
    speed = np.array([1.0, 2.0, 2.0, 4.0])
    fit = fit_rate(replace(trace, time=trace.time / speed[trace.rank_of_event()]), "cg")
    assert fit.by_rank == pytest.approx(1e6 * speed, rel=1e-4)
    assert fit.flops == pytest.approx(4e6 / (1 / speed).sum(), rel=1e-4)  # all together
    said = fit.to_dict()
    assert (said["lowest"], said["highest"]) == pytest.approx((1e6, 4e6), rel=1e-4)
    assert said["deviation"] == pytest.approx(np.std(speed) / np.mean(speed), rel=1e-4)


def test_start_up_does_not_count():
    trace = nas_trace("mg.S.8", flops=1e6)
    time = trace.time.copy()
    for begin, end in zip(trace.offsets[:-1], trace.offsets[1:], strict=True):
        time[begin + 2 : end] += 5.0  # behind the first call or what begins it
    fit, as_it_was = fit_rate(replace(trace, time=time), "mg"), fit_rate(trace, "mg")
    assert fit.flops == pytest.approx(as_it_was.flops)
    assert as_it_was.omitted < fit.omitted <= as_it_was.omitted + 8 * 5.0 * (1 + 1e-9)
    # When it was begun is no computation at all.
    late = fit_rate(replace(trace, time=trace.time + 5.0), "mg")
    assert (late.flops, late.omitted) == pytest.approx((as_it_was.flops, as_it_was.omitted))


@pytest.mark.parametrize("name", ["lu.S.4", "mg.S.16", "is.S.16"])
def test_recorded_runs_have_a_rate(name, recording):
    fit = fit_rate(recording(name), name.split(".")[0])
    assert fit.name == name
    assert 1e6 < fit.flops < 1e11
    assert fit.by_rank.min() <= fit.flops <= fit.by_rank.max()
    assert len(fit.by_rank) == fit.operations.size


def test_classes_that_differ_in_collectives_only_are_told_apart_by_name():
    trace = nas_trace("ep.W.4", flops=1e9)
    assert fit_rate(replace(trace, name="EP.W.4.otf2"), "ep").name == "ep.W.4"
    with pytest.raises(TraceError, match=r"may be a run of ep.S.4, ep.W.4, .*archive so named"):
        fit_rate(replace(trace, name="mine"), "ep")


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        (nas_trace("cg.S.4", steps=2), "4 ranks, 1,260 messages: expected a whole run of cg"),
        (nas_trace("mg.S.4"), "expected a whole run of cg, of any class"),
        (nas_trace("cg.S.4", flops=0), "no computation in it"),
    ],
)
def test_what_is_no_such_run_is_refused(trace, message):
    with pytest.raises(TraceError, match=message):
        fit_rate(trace, "cg")


def test_a_run_with_other_calls_is_refused(data):
    trace = nas_trace("is.S.16")
    kept = trace.kind < 10  # all but collectives: its messages are still those of IS
    cut = replace(
        trace,
        name="is.S.16",
        kind=trace.kind[kept],
        time=trace.time[kept],
        ref=trace.ref[kept],
        offsets=np.concatenate(([0], np.cumsum(kept)[trace.offsets[1:] - 1])),
    )
    with pytest.raises(TraceError, match=r"has other calls than is\.S\.16"):
        fit_rate(cut, "is")
