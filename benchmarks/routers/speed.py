"""Packets that wait for room, or choose their way: ``python benchmarks/routers/speed.py``.

Packet-hops per second of a processor, compiled, the best of three runs: uniform single flits on an
8x8 mesh under each model of the network, and then the whole of NAS LU, class C, on 64 ranks at
random places of a torus (``--lu``). ``--booksim PROGRAM``: compare flits through routers a second,
with finite buffers, with BookSim2's in the same run (`cases.py` describes its settings).
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from buffered import planned
from cases import Case
from cases import theirs as run_booksim

from hopmap.simulator import ENGINES, Parameters, lower, simulate
from hopmap.simulator.operations import Record
from hopmap.simulator.run_plan import RunPlan, plan_run
from hopmap.topologies import topology_from_spec
from hopmap.traces import nas_folded

LOAD, CYCLES, CHANNELS = 0.35, 6000, 8
MODELS = {
    "unbounded, fixed routes": {},
    "unbounded, adaptive": {"network_routing": "adaptive"},
    "unbounded, UGAL-L": {"network_routing": "ugal_l"},
    "8 packets a channel, fixed": {"network_buffer": 8},
    "8 packets a channel, adaptive": {"network_buffer": 8, "network_routing": "adaptive"},
}
BOOKSIM_CASES = (
    (Case("mesh", "dim_order", "uniform", 8, 1, 8), LOAD),
    (Case("mesh", "dim_order", "uniform", 8, 1, 8), 0.05),
    (Case("mesh", "dim_order", "uniform", 2, 8, 64), LOAD),
    (Case("mesh", "dim_order", "uniform", 2, 64, 512), 0.2),
)
LU = {
    "unbounded": {},
    "8 packets, 2 channels": {"network_buffer": 8, "network_virtual_channels": 2},
}


def under_load() -> None:
    """Print a row a model: packet-hops, seconds, a second's packet-hops, share of the first's."""
    base = planned(
        "mesh", "uniform", LOAD, CYCLES,
        size=1, channels=CHANNELS, buffer=0,
    )  # fmt: skip
    mesh, first = topology_from_spec("mesh:8x8"), 0.0
    mesh = mesh.with_links(None, bandwidth=base.bandwidth[0], latency=base.latency[0])
    for name, settings in MODELS.items():
        parameters = replace(base.parameters, network_virtual_channels=CHANNELS, **settings)
        plan = plan_run(base.program, mesh, np.arange(64), parameters)
        events, seconds = soonest(plan)
        first = first or events / seconds
        print(row(name, events, seconds) + f"{events / seconds / first:>7.2f}", flush=True)


def soonest(plan: RunPlan) -> tuple[int, float]:
    """Packet-hops, and the seconds of the fastest of three runs, compiling apart."""
    ENGINES["compiled"].run(plan, Record(), None)
    spent = []
    for _ in range(3):
        begin = time.process_time()
        events = ENGINES["compiled"].run(plan, Record(), None).events
        spent.append(time.process_time() - begin)
    return events, min(spent)


def row(name: str, events: int, seconds: float) -> str:
    """Packet-hops, seconds, and a second's packet-hops."""
    return f"{name:<32}{events:>12,}{seconds:>8.2f} s{events / seconds / 1e6:>8.2f} M/s"


def compare_with_booksim(program: Path) -> None:
    """Print a row a case: flits through routers a second of both, and how many times as many."""
    for case, load in BOOKSIM_CASES:
        theirs = max(
            (found := run_booksim(program, case, load / case.size, 2000, 500)).flit_hops
            / found.seconds
            for _ in range(3)
        )
        plan = planned(
            case.network, case.pattern, load / case.size, CYCLES,
            size=case.size, channels=case.channels, buffer=case.buffer // case.size,
        )  # fmt: skip
        events, seconds = soonest(plan)
        ours = case.size * (events - plan.messages) / seconds
        what = f"packets of {case.size} at {load}, {case.channels} channels of {case.buffer}"
        print(f"{what:<44}{ours / 1e6:>8.2f} M/s{theirs / 1e6:>8.2f} M/s{ours / theirs:>7.1f}")


def whole_lu() -> None:
    """Print packet-hops and seconds of LU with and without limits to buffers."""
    program, torus = lower(nas_folded("lu.C.64")), topology_from_spec("torus:4x4x4")
    node_of = np.random.default_rng(0).permutation(64)
    for name, settings in LU.items():
        begin = time.process_time()
        run = simulate(program, torus, node_of, parameters=Parameters(**settings))
        print(row(f"lu.C.64, {name}", run.events, time.process_time() - begin), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lu", action="store_true")
    parser.add_argument("--booksim", type=Path, metavar="PROGRAM")
    options = parser.parse_args()
    under_load()
    if options.lu:
        whole_lu()
    if options.booksim:
        compare_with_booksim(options.booksim)
