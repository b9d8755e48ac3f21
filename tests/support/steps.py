"""Steps of programs with loops, and without, and what their runs extrapolated have to be."""

import numpy as np

from hopmap.simulator import program_of, simulate
from hopmap.simulator.steady_state import Steady
from hopmap.topologies import torus

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


def counts_agree(whole, told):
    for name in ("messages", "bytes", "events", "controls"):
        assert getattr(told, name) == getattr(whole, name)
    for name in EXACT:
        assert np.array_equal(getattr(told, name), getattr(whole, name))
    for name in ("injection", "ejection", "memory"):
        one, other = getattr(told, name), getattr(whole, name)
        assert np.array_equal(one.messages, other.messages)
        assert np.array_equal(one.bytes, other.bytes)
