"""What a workload or a machine says is counted, or refused by questions that do not count it."""

import pytest

import hopmap as hm
from support import about

RING = hm.Traffic.from_pairs(4, [0, 1, 2, 3], [1, 2, 3, 0], [1] * 4, [1000] * 4)
OTHER = hm.Job("lu.S.2", mapping=[0, 1])
SHARED = hm.Machine("torus:6", co_running=(OTHER,))
LAST = [2, 3, 4, 5]


def test_jobs_beside_a_machine_are_counted_or_refused():
    assert not {0, 1} & set(hm.map_ranks(RING, SHARED, "rcm").node_of.tolist())
    for ask in (
        lambda: hm.evaluate(RING, SHARED, LAST),
        lambda: hm.simulate(RING, SHARED, LAST),
        lambda: hm.explain(RING, SHARED, LAST),
        lambda: hm.advise(RING, SHARED, ["rcm"]),
        lambda: hm.robust(RING, SHARED, ["rcm", "random"]),
        lambda: hm.simulate_jobs([hm.Job(RING, LAST)], SHARED),
        lambda: hm.sweep(RING, SHARED, "rcm", replay=False),
    ):
        with about(ask), pytest.raises(hm.HopmapError, match="co_running"):
            ask()


def test_a_sweep_takes_failures_and_refuses_what_a_scenario_cannot_say():
    (run,) = hm.sweep(RING, hm.Machine("torus:6", failures="link=0-1"), "identity").itertuples()
    assert run.topology == "failed:link=0-1@torus:6"
    assert run.hop_bytes == 1000 * (5 + 1 + 1 + 3) != 1000 * (1 + 1 + 1 + 3)
    for workload, machine, said in (
        (hm.Workload("lu.S.4", rma="ignore"), "mesh:4", "one-sided"),
        ("lu.S.4", hm.Machine("mesh:2", imbalance=0.1), "an imbalance"),
        ("lu.S.4", hm.Machine("mesh:4", nodelist="n[0-3]"), "hosts of a job"),
        ([hm.Workload("lu.S.4", steps=1), "lu.S.4"], "mesh:4", "steps"),
    ):
        with about(said), pytest.raises(hm.HopmapError, match=said):
            hm.sweep(workload, machine, "identity", replay=False)


def test_steps_of_a_job_hold_for_a_workload_too():
    for job in (hm.Job("lu.S.4", steps=2), hm.Job(hm.Workload("lu.S.4"), steps=2)):
        assert job.workload.steps == 2
    assert hm.Job(hm.Workload("lu.S.4", steps=3)).workload.steps == 3


def test_draws_need_failures_to_draw():
    with pytest.raises(hm.HopmapError, match="draws 3: requires a machine with failures"):
        hm.evaluate(RING, "torus:6", LAST, draws=3)
