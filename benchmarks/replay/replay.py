"""How fast traces are lowered and replayed: ``python benchmarks/replay/replay.py [ARCHIVE ...]``.

First generated LU runs of millions of messages, which are programs with loops, and the memory that
the process has taken by then. Then the archives; without arguments, the traces in tests/data and,
where it exists, in ../shared/nas. Each is replayed on a 4x4 torus (larger if it has more ranks)
with a random placement and without the recorded computation, by both engines of packets, which must
agree; the first, of up to 16 ranks, also by SimPy with a Resource for every link. Then the compiled
engine alone from 16 to 4,096 ranks.

Rates are per second of processor time, which other load disturbs less, the best of three;
compilation is apart. "run" is the engine alone, "all" what `simulate` costs.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from textbook_simpy import Replay

from hopmap.simulator import ENGINES, Parameters, Program, lower, program_of, simulate
from hopmap.simulator.operations import NOTHING
from hopmap.simulator.run_plan import plan_run
from hopmap.topologies import Topology, topology_from_spec, torus
from hopmap.traces import nas_folded, read_trace

ROOT = Path(__file__).parents[2]
DEFAULT = [ROOT / "tests" / "data" / name for name in ("lu.S.4", "mg.S.16", "is.S.16", "edge.X.8")]
DEFAULT += [
    ROOT.parent / "shared" / "nas" / name
    for name in ("lu.S.16", "cg.S.16", "sp.S.9", "bt.S.9", "ft.S.16", "lu.W-it20.64")
]
PACKETS = ("simpy", "compiled")
LARGE = (
    ("lu.C.64", None, ("mesh:4x4x4", "torus:4x4x4", "haec:4x4x4")),
    ("lu.D.512", 4, ("torus:8x8x8",)),
)
HALOS = ((4, 3000), (8, 1000), (16, 200), (32, 40), (64, 8))  # side, rounds


def best(function: Callable[..., Any], *arguments: Any, times: int = 3) -> tuple[float, Any]:
    """Least processor time of a few calls, and what the last returned."""
    seconds = []
    for _ in range(times):
        begin = time.process_time()
        result = function(*arguments)
        seconds.append(time.process_time() - begin)
    return min(seconds), result


def run(program: Program, topology: Topology, node_of: Any, engine: str, times: int) -> list[Any]:
    """Processor time of `simulate` and of the engine, packet-hops, makespan."""
    parameters = Parameters(compute_scale=0)
    whole, result = best(
        lambda: simulate(program, topology, node_of, parameters=parameters, engine=engine),
        times=times,
    )
    ready = plan_run(program, topology, node_of, parameters)
    alone, _ = best(ENGINES[engine].run, ready, NOTHING, None, times=times)
    return [whole, alone, result.events, result.makespan]


def traces(archives: list[Path]) -> None:
    print(
        f"\n{'trace':<14}{'engine':<10}{'events':>9}{'lower s':>9}{'packet-hops':>13}{'all s':>8}"
        f"{'run s':>8}{'hops/s':>12}{'ratio':>7}{'makespan':>12}"
    )
    for archive in archives:
        trace = read_trace(archive)
        lowering, program = best(lower, trace, times=1)
        side = max(4, int(np.ceil(np.sqrt(program.ranks))))
        topology = torus((side, side))
        node_of = np.random.default_rng(0).permutation(topology.nodes)[: program.ranks]
        reference = None
        for engine in PACKETS:
            times = 1 if engine == "simpy" else 3
            whole, alone, hops, makespan = run(program, topology, node_of, engine, times)
            reference = reference or (alone, makespan)
            assert makespan == reference[1], "engines disagree"
            print(
                f"{archive.name:<14}{engine:<10}{trace.events:>9}{lowering:>9.3f}{hops:>13}"
                f"{whole:>8.2f}{alone:>8.3f}{hops / alone:>12.0f}{reference[0] / alone:>7.1f}"
                f"{makespan:>12.6f}"
            )


def textbook(archive: Path) -> None:
    """Compare with SimPy as its documentation would have it; packets are stored and forwarded."""
    program, topology = lower(read_trace(archive)), torus((4, 4))
    parameters = Parameters(compute_scale=0, eager_limit=2**40, switching="store_and_forward")
    node_of = np.random.default_rng(0).permutation(topology.nodes)[: program.ranks]
    ready = plan_run(program, topology, node_of, parameters)
    peer = Replay(ready)
    rates = []
    seconds, makespan = best(peer.run, times=1)
    title = f"{archive.name}, store-and-forward"
    print(f"\n{title:<30}{'packet-hops':>13}{'run s':>8}{'hops/s':>12}{'ratio':>7}")
    for label, engine, times in (
        ("a Resource a link", "", 0),
        ("engine simpy", "simpy", 1),
        ("engine compiled", "compiled", 3),
    ):
        hops, span = peer.hops, makespan
        if engine:
            seconds, outcome = best(ENGINES[engine].run, ready, NOTHING, None, times=times)
            hops, span = outcome.events, float(outcome.finish.max())
        rates.append(hops / seconds)
        print(
            f"{label:<30}{hops:>13}{seconds:>8.2f}{rates[-1]:>12.0f}"
            f"{rates[-1] / rates[0]:>7.1f}  makespan {span:.9f}"
        )


def halo(side: int, rounds: int) -> Program:
    """Everyone exchanges 1 to 20 kB with four neighbours of a periodic grid, again and again."""
    rng = np.random.default_rng(side)
    size = rng.integers(1000, 20_000, side * side).tolist()
    lists = []
    for r in range(side * side):
        x, y = r % side, r // side
        near = [(x + 1) % side + y * side, (x - 1) % side + y * side]
        near += [x + (y + 1) % side * side, x + (y - 1) % side * side]
        once = [("irecv", p, size[p]) for p in near] + [("isend", p, size[r]) for p in near]
        lists.append(
            [op for k in range(rounds) for op in (*once, *(("wait", 16 * k + j) for j in range(8)))]
        )
    return program_of("halo", lists)


def scaling() -> None:
    print(f"\n{'ranks':>6}{'messages':>10}{'packet-hops':>13}{'run s':>8}{'ns/hop':>8}")
    for side, rounds in HALOS:
        topology = torus((side, side))
        node_of = np.random.default_rng(0).permutation(topology.nodes)
        program = halo(side, rounds)
        _, alone, hops, _ = run(program, topology, node_of, "compiled", 3)
        print(
            f"{program.ranks:>6}{len(program.sends()):>10}{hops:>13}{alone:>8.3f}"
            f"{alone / hops * 1e9:>8.1f}"
        )


def large() -> None:
    print(
        f"{'run':<20}{'topology':<14}{'rows':>9}{'messages':>10}{'packet-hops':>13}{'all s':>8}"
        f"{'hops/s':>12}{'peak MiB':>10}"
    )
    for name, steps, specs in LARGE:
        program = lower(nas_folded(name, steps=steps))
        label = name if steps is None else f"{name}, {steps} steps"
        for spec in specs:
            topology = topology_from_spec(spec)
            node_of = np.random.default_rng(0).permutation(topology.nodes)
            whole, result = best(
                lambda: simulate(program, topology, node_of, engine="compiled"),  # noqa: B023
                times=1,
            )
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(
                f"{label:<20}{spec:<14}{program.operations:>9}{result.messages:>10}"
                f"{result.events:>13}{whole:>8.2f}{result.events / whole:>12.0f}{peak:>10.0f}"
            )


if __name__ == "__main__":
    warm_up = program_of("warm-up", [[("send", 1, 1)], [("recv", 0, 1)]])
    seconds, _ = best(lambda: simulate(warm_up, torus((4,)), [0, 1], engine="compiled"), times=1)
    print(f"compiling, or reading what was compiled: {seconds:.2f} s\n")
    large()
    archives = [Path(name) for name in sys.argv[1:]] or [path for path in DEFAULT if path.is_dir()]
    traces(archives)
    textbook(archives[0])
    scaling()
