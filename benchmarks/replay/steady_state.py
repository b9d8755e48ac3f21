"""Whole runs and their first steps: ``python benchmarks/replay/steady_state.py``.

Arguments like ``lu.D.4096@torus:16x16x16`` or ``run1.otf2@torus:4x4`` replace the table's cases.
``--extrapolated-only`` leaves out the whole runs, the longest of which take eight minutes on a slow
core. With ``--tolerance 0.05`` runs end at that error bound; recordings need it. Ranks are placed
at random, the same each time. Seconds are processor time of `simulate`, with what is compiled at
hand; "built" is what trace and program take before, for both. "Again" is a second short replay of
the program, whose steps are known by then. ``--bounds`` takes recordings and
compares errors with their bounds: four tolerances, three networks, three placements, and all, a
tenth and none of the computing.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from hopmap.simulator import Parameters, Result, Steady, lower, program_of, simulate
from hopmap.simulator.programs.steps import EXACT
from hopmap.topologies import topology_from_spec, torus
from hopmap.traces import open_source

NAMES = ("lu", "bt", "sp", "cg", "mg")
CASES = [f"{name}.C.64@{net}:4x4x4" for name in NAMES for net in ("torus", "haec")]
CASES += ["lu.D.512@torus:8x8x8", "cg.C.256@torus:4x8x8"]
CASES += [f"{name}.D.256@torus:4x8x8" for name in ("bt", "sp", "mg")]
NETWORKS = ("torus:4x4", "haec:4x4x4", "fattree:4x4:1x4")
BOUNDS = ("run", "computing", "extrapolated", "over", "of them exact", "median error", "largest")
HEAD = ("run", "network", "steps", "of", "period", "bound", "error", "built")
HEAD += ("whole s", "short s", "again s", "speed-up")


def timed(function: Callable[..., Any], *arguments: Any, **more: Any) -> tuple[float, Any]:
    """Processor time of a call, and what it returned."""
    begin = time.process_time()
    result = function(*arguments, **more)
    return time.process_time() - begin, result


def row(case: str, steady: Steady, *, whole: bool) -> list[str]:
    """Measure a case."""
    name, spec = case.split("@")
    built, program = timed(lambda: lower(open_source(name).calls()))
    topology = topology_from_spec(spec)
    node_of = np.random.default_rng(0).permutation(topology.nodes)[: program.ranks]
    seconds, short = timed(simulate, program, topology, node_of, steady=steady)
    again, _ = timed(simulate, program, topology, node_of, steady=steady)
    how = short.extrapolated
    steps = (
        [str(how.steps), str(how.of), str(how.period), f"{how.error:.1e}"] if how else [short.whole]
    )
    steps = [name.rpartition("/")[2], spec, *steps, *["-"] * (4 - len(steps))]
    if not whole:
        return [*steps, "", f"{built:.1f}", "", f"{seconds:.2f}", f"{again:.2f}", ""]
    longer, exact = timed(simulate, program, topology, node_of)
    check_counts(exact, short)
    error = f"{short.makespan / exact.makespan - 1:.1e}"
    times = [f"{each:.2f}" for each in (longer, seconds, again)]
    return [*steps, error, f"{built:.1f}", *times, f"{longer / again:.1f}"]


def bounds(case: str) -> None:
    """Print a row of errors and bounds for each share of the computing."""
    program = lower(open_source(case).calls())
    for scale in (1.0, 0.1, 0.0):
        parameters, found = Parameters(compute_scale=scale), []
        for spec, seed in product(NETWORKS, range(3)):
            topology = topology_from_spec(spec)
            node_of = np.random.default_rng(seed).permutation(topology.nodes)[: program.ranks]
            replay = partial(simulate, program, topology, node_of, parameters=parameters)
            exact = replay()
            for tolerance in (0.02, 0.05, 0.1, 0.2):
                short = replay(steady=Steady.within(tolerance))
                if short.extrapolated:
                    check_counts(exact, short)
                    error = abs(short.makespan / exact.makespan - 1)
                    found.append((error, short.extrapolated.error))
        errors, limits = np.array(found).reshape(-1, 2).T
        over = errors > limits
        exactly = over & (limits <= EXACT)
        cells = [case.rpartition("/")[2], scale, len(errors), over.sum(), exactly.sum()]
        cells += [f"{of(errors):.1e}" for of in (np.median, np.max) if len(errors)]
        print("|", " | ".join(map(str, cells)), "|", flush=True)


def check_counts(exact: Result, short: Result) -> None:
    """See that what is not extrapolated is equal."""
    for name in ("messages", "bytes", "events"):
        assert getattr(short, name) == getattr(exact, name), name
    assert np.array_equal(short.link_bytes, exact.link_bytes)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="*", default=CASES)
    parser.add_argument("--extrapolated-only", action="store_true")
    parser.add_argument("--tolerance", type=float)
    parser.add_argument("--bounds", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of processes that shared cores
    until = Steady(hops=0) if options.tolerance is None else Steady.within(options.tolerance)
    warm_up = program_of("warm-up", [[("send", 1, 1)], [("recv", 0, 1)]])
    simulate(warm_up, torus((4,)), [0, 1])
    head = BOUNDS if options.bounds else HEAD
    print("|", " | ".join(head), "|")
    print("|---" * len(head) + "|")
    for each in options.cases:
        if options.bounds:
            bounds(each)
            continue
        print(
            "|", " | ".join(row(each, until, whole=not options.extrapolated_only)), "|", flush=True
        )
