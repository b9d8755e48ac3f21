"""What ranks do over time, from a replay that can be done by hand."""

import numpy as np
import pytest

from hopmap.simulator import Parameters, Record, critical_path, program_of, simulate
from hopmap.simulator.run_plan import plan_run
from hopmap.topologies import topology_from_spec
from hopmap.traces import Collective
from hopmap.traces.sources import open_source
from hopmap.view.timeline import IDLE, POINTS, _call, path_points, timeline_of

PARAMETERS = Parameters(overhead_send=1.0, overhead_recv=1.0)


def replayed(program, network, node_of, parameters=PARAMETERS):
    record = Record(operations=True)
    return simulate(program, network, node_of, parameters=parameters, record=record)


@pytest.fixture(scope="module")
def run():
    """Rank 0 computes 4 s and sends; rank 1 waits for it, then computes 6 s more."""
    network = topology_from_spec("mesh:2").with_links(bandwidth=1e9, latency=0.0)
    program = program_of(
        "by hand", [[("compute", 4.0), ("send", 1, 8)], [("recv", 0, 8), ("compute", 6.0)]]
    )
    return replayed(program, network, np.arange(2)), network


def at(timeline, rank, second):
    return timeline.names[timeline.state[rank, int(second / timeline.step)]]


def test_computing_overhead_and_waiting_follow_one_another(run):
    result, _ = run
    timeline = timeline_of(result.program, result)
    assert at(timeline, 0, 2.0) == "computing"
    assert at(timeline, 0, 4.5) == "overhead of messages"
    assert at(timeline, 0, 6.0) == IDLE
    assert at(timeline, 1, 2.0) == at(timeline, 1, 4.9) == "waiting in MPI_Recv"
    assert at(timeline, 1, 5.5) == "overhead of messages"
    assert at(timeline, 1, 11.0) == "computing"


def test_the_critical_path_moves_with_the_message(run):
    result, network = run
    path = critical_path(plan_run(result.program, network, np.arange(2), PARAMETERS), result)
    points = path_points(path, result.makespan)
    assert points["rank"].tolist() == [0, 0, 1, 1]
    assert points["time"][0] == 0.0
    assert points["time"][1] == pytest.approx(5.0)
    assert points["time"][3] == result.makespan


def test_shares_of_states_are_the_seconds_of_the_replay():
    """Of many short steps the sums hold; waiting is by call, in the order of its seconds."""
    calls = open_source("lu.S.4").with_steps(2).calls()
    result = replayed(calls, topology_from_spec("torus:4"), np.arange(4), Parameters())
    timeline = timeline_of(result.program, result)
    seconds = {
        name: timeline.step * np.count_nonzero(timeline.state == k)
        for k, name in enumerate(timeline.names)
    }
    # a step belongs to what takes most of it
    assert seconds["computing"] == pytest.approx(result.compute.sum(), rel=0.02)
    waiting = [value for name, value in seconds.items() if name.startswith("waiting")]
    assert sum(waiting) == pytest.approx(result.wait.sum(), rel=0.05)
    assert "waiting in MPI_Recv" in timeline.names


def test_operations_without_a_name_in_mpi_are_other_calls():
    assert _call(Collective.CREATE_HANDLE) == _call(Collective.DESTROY_HANDLE) == "other calls"
    assert _call(Collective.ALLREDUCE) == "MPI_Allreduce"


def test_a_long_path_keeps_so_many_points(run):
    result, network = run
    path = critical_path(plan_run(result.program, network, np.arange(2), PARAMETERS), result)
    many = 3 * POINTS
    begin = np.arange(many) / many
    path = type(path)(
        kind=np.zeros(many, np.uint8),
        begin=begin,
        end=begin + 1 / many,
        rank=(np.arange(many) % 2).astype(np.int32),
        **{name: np.zeros(many, np.int64) for name in ("message", "cargo", "server", "behind")},
    )
    points = path_points(path, 1.0)
    assert POINTS < len(points["time"]) <= 2 * POINTS + 2
    assert (np.diff(points["time"]) >= 0).all()
