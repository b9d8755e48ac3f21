"""Programs with loops and steps, drawn ones not alike on all ranks, and what their runs are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from hopmap.simulator import Parameters, program_of, simulate
from hopmap.simulator.steady_state import Steady
from hopmap.topologies import topology_from_spec, torus
from support.random_runs import random_runs
from support.results import bits

RANKS = 5
# Times that add up without rounding: what coincides in one step of a loop then does so in all of
# them. Elsewhere rounding may let one of two be first in step 30 that came second until then, and
# nobody who saw 12 steps could know.
TICK = 2.0**-34  # seconds
TIMES = (
    *("overhead_send", "overhead_recv", "gap", "gap_per_byte"),
    *("injection_latency", "ejection_latency", "memory_latency"),
)
BANDWIDTHS = ("injection_bandwidth", "ejection_bandwidth", "memory_bandwidth")


@st.composite
def bodies(draw, depth=2):
    """Operations of every rank, that belong together; loops within them, not all the same way."""
    lists = [[] for _ in range(RANKS)]
    rank, pause = st.integers(0, RANKS - 1), st.sampled_from([0.0, 1e-6, 2.3e-6])
    for _ in range(draw(st.integers(0, 4))):
        for operations in lists:
            if draw(st.integers(0, 4)) == 0:
                operations.append(("compute", draw(pause)))
        if depth and draw(st.booleans()):
            times, inner = draw(st.integers(1, 4)), draw(bodies(depth=depth - 1))
            for operations, body in zip(lists, inner, strict=True):
                if draw(st.integers(0, 3)) == 0:  # the same twice over
                    operations.append(("repeat", times, [("repeat", 1, body)]))
                elif draw(st.integers(0, 3)) == 0:
                    operations.extend(
                        [("repeat", times - 1, body)] if times > 1 else [],
                    )
                    operations.append(("repeat", 1, body))
                else:
                    operations.append(("repeat", times, body))
            continue
        source, target, tag = draw(rank), draw(rank), draw(st.integers(0, 1))
        size = draw(st.sampled_from([0, 700, 3000]))
        blocking = draw(st.booleans()) and source != target
        sides = [("send", source, target), ("recv", target, source)]
        if draw(st.integers(0, 20)) == 0:
            sides.pop()
        for word, here, peer in sides if blocking else sides[::-1]:
            lists[here].append((word if blocking else f"i{word}", peer, size, tag))
            if not blocking and draw(st.integers(0, 4)):
                lists[here].append(("wait", len(lists[here]) - 1))
    return lists


@st.composite
def random_loop_runs(draw):
    """(program, topology, node_of, parameters) of programs whose loops are kept."""
    topology = topology_from_spec(draw(st.sampled_from(["mesh:5", "torus:2x2*2", "haec:2x2x2"])))
    slots = np.repeat(np.arange(topology.nodes), topology.slots)
    node_of = np.array(draw(st.permutations(slots.tolist())))[:RANKS]
    overhead = st.sampled_from([0.0, 2e-7])
    parameters = Parameters(
        overhead_send=draw(overhead),
        overhead_recv=draw(overhead),
        gap=draw(st.sampled_from([0.0, 1e-6])),
        gap_per_byte=draw(st.sampled_from([0.0, 2e-10])),
        eager_limit=draw(st.sampled_from([0, 1000, 10**6])),
        packet_size=draw(st.sampled_from([500, 8192])),
    )
    return program_of("loops", draw(bodies())), topology, node_of, parameters


def any_runs():
    """With loops or without."""
    return random_runs() | random_loop_runs()


def in_ticks(seconds):
    """The nearest whole ticks."""
    return np.round(np.asarray(seconds) / TICK) * TICK


def power_of_two(bandwidth):
    """The nearest bandwidth at which every byte takes whole ticks, or a part that adds up."""
    return 2.0 ** round(float(np.log2(bandwidth)))


def exact(topology, parameters):
    """The network and the parameters whose times are whole ticks."""
    for kind in topology.kinds:
        topology = topology.with_links(
            kind.name,
            bandwidth=power_of_two(kind.bandwidth),
            latency=float(in_ticks(kind.latency)),
        )
    times = {name: float(in_ticks(getattr(parameters, name))) for name in TIMES}
    bandwidths = {name: power_of_two(getattr(parameters, name)) for name in BANDWIDTHS}
    return topology, replace(parameters, **times, **bandwidths)


def with_exact_pauses(program):
    """The program, computing for whole ticks."""
    return replace(program, compute=in_ticks(program.compute))


ALWAYS = Steady(tolerance=2e-3, hops=0)
LINE = torus((4,))
EXACT = ("link_messages", "link_bytes")


def shifts(size, pause=1e-6, ranks=4):
    """Operations of every rank for one step: compute, send to the next, receive from the last."""
    return [
        [
            ("compute", pause),
            ("irecv", (r - 1) % ranks, size),
            ("isend", (r + 1) % ranks, size),
            ("wait", 1),
            ("wait", 2),
        ]
        for r in range(ranks)
    ]


def looped(times, steps, before=(), behind=()):
    """Every rank's `before`, its step so many times, and what is `behind`."""
    none = [[]] * len(steps)
    parts = zip(before or none, steps, behind or none, strict=True)
    return program_of("loop", [[*b, ("repeat", times, s), *e] for b, s, e in parts])


def written_out(times, steps, before=(), behind=(), pauses=None):
    """The same without loops; `pauses`, (ranks, times), are what ranks compute in addition."""
    none = [[]] * len(steps)
    tasks = []
    for r, (operations, end) in enumerate(zip(before or none, behind or none, strict=True)):
        written = [*operations]
        for k in range(times):
            written += [] if pauses is None else [("compute", pauses[r][k])]
            at = len(written)
            written += [("wait", at + o[1]) if o[0] == "wait" else o for o in steps[r]]
        tasks.append([*written, *end])
    return program_of("written out", tasks)


def both(program, topology=LINE, node_of=None, steady=ALWAYS, **more):
    """The run replayed whole, and as its first steps say."""
    node_of = np.arange(program.ranks) if node_of is None else node_of
    return (
        simulate(program, topology, node_of, **more),
        simulate(program, topology, node_of, steady=steady, **more),
    )


def both_on_all_engines(program, **more):
    """Likewise of a drawn program, if it does not get stuck; the error is within its bound."""
    try:
        whole, told = both(program, **more)
    except RuntimeError:
        assume(False)
    assert bits(told) == bits(both(program, engine="simpy", **more)[1])
    counts_agree(whole, told)
    if told.extrapolated is None:
        assert told.finish.tobytes() == whole.finish.tobytes()
    else:
        assert abs(told.makespan - whole.makespan) <= told.extrapolated.error * told.makespan
    return whole, told


def counts_agree(whole, told):
    for name in ("messages", "bytes", "events", "controls"):
        assert getattr(told, name) == getattr(whole, name)
    for name in EXACT:
        assert np.array_equal(getattr(told, name), getattr(whole, name))
    for name in ("injection", "ejection", "memory"):
        one, other = getattr(told, name), getattr(whole, name)
        assert np.array_equal(one.messages, other.messages)
        assert np.array_equal(one.bytes, other.bytes)
