"""Whole runs and their first steps: ``python benchmarks/replay/steady_state.py``.

Arguments like ``lu.D.4096@torus:16x16x16`` replace the table's cases; ``--extrapolated-only``
leaves out the whole runs, the longest of which take eight minutes on a slow core. Ranks
are placed at random, the same each time. Seconds are processor time of `simulate`, with what is
compiled at hand; "built" is what trace and program take before, for both.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from hopmap.simulator import Result, Steady, lower, program_of, simulate
from hopmap.topologies import topology_from_spec, torus
from hopmap.traces import nas_folded

NAMES = ("lu", "bt", "sp", "cg", "mg")
CASES = [f"{name}.C.64@{net}:4x4x4" for name in NAMES for net in ("torus", "haec")]
CASES += ["lu.D.512@torus:8x8x8", "cg.C.256@torus:4x8x8"]
CASES += [f"{name}.D.256@torus:4x8x8" for name in ("bt", "sp", "mg")]
ALONE = "--extrapolated-only"
HEAD = ("run", "network", "steps", "of", "period", "bound", "error", "built", "whole s", "short s")


def timed(function: Callable[..., Any], *arguments: Any, **more: Any) -> tuple[float, Any]:
    """Processor time of a call, and what it returned."""
    begin = time.process_time()
    result = function(*arguments, **more)
    return time.process_time() - begin, result


def row(case: str, *, whole: bool) -> list[str]:
    """Measure a case."""
    name, spec = case.split("@")
    built, program = timed(lambda: lower(nas_folded(name)))
    topology = topology_from_spec(spec)
    node_of = np.random.default_rng(0).permutation(topology.nodes)[: program.ranks]
    seconds, short = timed(simulate, program, topology, node_of, steady=Steady(hops=0))
    how = short.extrapolated
    steps = (
        [str(how.steps), str(how.of), str(how.period), f"{how.error:.1e}"] if how else [short.whole]
    )
    steps += ["-"] * (4 - len(steps))
    if not whole:
        return [name, spec, *steps, "", f"{built:.1f}", "", f"{seconds:.2f}", ""]
    longer, exact = timed(simulate, program, topology, node_of)
    check_counts(exact, short)
    error = f"{short.makespan / exact.makespan - 1:.1e}"
    times = [f"{built:.1f}", f"{longer:.1f}", f"{seconds:.2f}", f"{longer / seconds:.1f}"]
    return [name, spec, *steps, error, *times]


def check_counts(exact: Result, short: Result) -> None:
    """See that what is not extrapolated is equal."""
    for name in ("messages", "bytes", "events"):
        assert getattr(short, name) == getattr(exact, name), name
    assert np.array_equal(short.link_bytes, exact.link_bytes)


if __name__ == "__main__":
    warm_up = program_of("warm-up", [[("send", 1, 1)], [("recv", 0, 1)]])
    simulate(warm_up, torus((4,)), [0, 1])
    cases = [case for case in sys.argv[1:] if case != ALONE] or CASES
    print("|", " | ".join([*HEAD, "speed-up"]), "|")
    print("|---" * (len(HEAD) + 1) + "|")
    for case in cases:
        print("|", " | ".join(row(case, whole=ALONE not in sys.argv)), "|", flush=True)
