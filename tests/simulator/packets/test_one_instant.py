"""The compiled engine against the reference where much happens at one instant among finite buffers.

Its tails and credits are events only where somebody waits. Who looks at a link has to find what the
reference does: all that comes before by its key, and what comes about at this instant behind that.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from hopmap.simulator import DeadlockError, ParameterError, Parameters, Record, program_of, simulate
from hopmap.topologies import topology_from_spec
from support.free_ends import as_fast_as
from support.results import bits
from support.slow import examples

PACKET, BANDWIDTH = 1000, 1e9
TICK = PACKET / BANDWIDTH  # seconds of a packet: all moments of a run are multiples
MINIMAL = ["adaptive", "spraying"]
SPECS = ["mesh:2*2", "mesh:3", "mesh:2x2", "mesh:3x2", "torus:5", "fattree:2x2", "cluster:4"]


def listed(ranks, *phases):
    """Messages (source, target, packets, ticks before it), of a phase all at once."""
    lists = [[] for _ in range(ranks)]
    for messages in phases:
        begun = [sum(kind in ("irecv", "isend") for kind, *_ in ops) for ops in lists]
        for source, target, packets, _ in messages:
            lists[target].append(("irecv", source, packets * PACKET))
        for source, target, packets, ticks in messages:
            lists[source].append(("compute", ticks * TICK))
            lists[source].append(("isend", target, packets * PACKET))
        for first, ops in zip(begun, lists, strict=True):
            behind = sum(kind in ("irecv", "isend") for kind, *_ in ops)
            ops += [("wait", k) for k in range(first, behind)]
    return lists


FREE = Parameters(**as_fast_as(BANDWIDTH), packet_size=PACKET)


@st.composite
def runs(draw):
    """(program, network, node of each rank, parameters): everything takes whole ticks, or none."""
    none = st.sampled_from([0.0, 0.0, TICK])
    wide = st.sampled_from([BANDWIDTH, 1e300])
    network = topology_from_spec(draw(st.sampled_from(SPECS)))
    network = network.with_links(bandwidth=draw(wide), latency=draw(none))
    slots = np.repeat(np.arange(network.nodes), network.slots)
    nodes = draw(st.permutations(slots.tolist()))[:4]
    pair = st.permutations(range(len(nodes))).map(lambda order: tuple(order[:2]))
    message = st.tuples(pair, st.integers(0, 2), st.integers(0, 2)).map(lambda m: (*m[0], *m[1:]))
    phases = [draw(st.lists(message, min_size=least, max_size=10)) for least in (2, 0)]
    parameters = replace(
        FREE,
        eager_limit=draw(st.sampled_from([2**40, 0])),
        injection_bandwidth=draw(wide),
        injection_latency=draw(none),
        ejection_bandwidth=draw(wide),
        ejection_latency=draw(none),
        network_buffer=draw(st.integers(1, 2)),
        network_virtual_channels=draw(st.integers(2, 5)),
        network_arbitration=draw(st.sampled_from(["round_robin", "age"])),
        network_credit_delay=draw(none),
        network_routing=draw(st.sampled_from(["deterministic", *2 * MINIMAL, "valiant", "ugal_g"])),
    )
    return listed(len(nodes), *phases), network, nodes, parameters


def outcome(lists, network, nodes, parameters, engine):
    program = program_of("instant", lists)
    try:
        return bits(
            simulate(
                program, network, nodes,
                parameters=parameters, engine=engine, record=Record(messages=True),
            )
        )  # fmt: skip
    except (DeadlockError, ParameterError) as error:
        return str(error)


EMPTY = [(0, 1, 0, 0), (0, 1, 0, 0), (0, 1, 0, 0), (2, 0, 0, 0)]
AT_ONCE = (  # requests, grants and data of four empty messages
    listed(3, EMPTY, [(0, 1, 1, 0), (1, 0, 1, 0)]),
    topology_from_spec("mesh:2x2").with_links(bandwidth=BANDWIDTH, latency=0.0),
    [1, 0, 2],
    replace(
        FREE,
        eager_limit=0,
        network_buffer=1,
        network_virtual_channels=2,
        network_arbitration="age",
    ),
)


@examples(400)
@example(AT_ONCE)
@given(runs())
def test_both_engines_handle_what_meets_at_one_instant_in_the_same_order(run):
    assert outcome(*run, "simpy") == outcome(*run, "compiled")
