"""What waits for a server is not in the heap, in the order of the reference all the same."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from hopmap.simulator import Parameters, program_of, simulate
from hopmap.simulator.operations import NOTHING, Record
from hopmap.simulator.packets import compiled_engine
from hopmap.simulator.packets.loop_kernels import advance
from hopmap.simulator.row_pointers import first_records
from hopmap.simulator.run_plan import plan_run
from hopmap.simulator.task_kernels import CROWDED, ENDED
from hopmap.topologies import mesh, torus
from hopmap.traces import OutOfMemoryError
from support.free_ends import as_fast_as
from support.results import bits

PACKET, BANDWIDTH = 1000, 1e9
TICK = PACKET / BANDWIDTH


def all_at_once(ranks, packets):
    """Everyone sends to everyone, all posted at once."""
    lists = []
    for rank in range(ranks):
        others = [(rank + k) % ranks for k in range(1, ranks)]
        begun = [("irecv", other, packets * PACKET) for other in reversed(others)]
        begun += [("isend", other, packets * PACKET) for other in others]
        lists.append([*begun, *(("wait", k) for k in range(len(begun)))])
    return program_of("all at once", lists)


@pytest.mark.parametrize("packets", [0, 1, 3])
@pytest.mark.parametrize("latency", [0.0, TICK, 2.5 * TICK])
@pytest.mark.parametrize("eager_limit", [0, 2**40])
@pytest.mark.parametrize("control_bytes", [0, PACKET])
def test_ties_behind_a_server_come_in_the_order_of_the_reference(
    packets, latency, eager_limit, control_bytes
):
    network = mesh((3, 2)).with_links(bandwidth=BANDWIDTH, latency=latency)
    parameters = replace(
        Parameters(**as_fast_as(BANDWIDTH), packet_size=PACKET),
        eager_limit=eager_limit,
        control_bytes=control_bytes,
    )
    node_of = np.array([5, 0, 3, 1, 2, 4])
    one, other = (
        simulate(
            all_at_once(6, packets),
            network,
            node_of,
            parameters=parameters,
            engine=engine,
            record=Record(messages=True),
        )
        for engine in ("simpy", "compiled")
    )
    assert bits(one) == bits(other)


def test_the_heap_holds_a_few_events_of_each_server_however_many_packets_wait():
    plan = plan_run(
        all_at_once(48, 16), torus((4, 12)), np.arange(48), Parameters(packet_size=PACKET)
    )
    state = compiled_engine._state(plan, NOTHING)
    events, under_way = 0, 0
    while (why := advance(first_records(state), 500)) != ENDED:
        if why == CROWDED:
            state = compiled_engine._enlarge(state)
        events = max(events, int(state.heap.count["size"][0]))
        under_way = max(under_way, len(state.packets) - int(state.loop["spare"][0]))
    assert under_way > 10 * len(plan.bandwidth)
    assert events < 3 * len(plan.bandwidth)


def test_a_run_is_refused_before_more_is_under_way_than_memory_holds(monkeypatch):
    program = all_at_once(32, 1)
    run = program, torus((4, 8)), np.arange(32)
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=80_000))
    with pytest.raises(OutOfMemoryError, match=r"more than 288 messages .*enough for \d+ of these"):
        compiled_engine.run(plan_run(*run, Parameters()))
