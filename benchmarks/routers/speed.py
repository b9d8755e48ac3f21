"""Packets that wait for room, or choose their way: ``python benchmarks/routers/speed.py``.

Packet-hops per second of a processor, compiled, the best of three runs: uniform single flits on an
8x8 mesh under each model of the network, and then the whole of NAS LU, class C, on 64 ranks at
random places of a torus (``--lu``). BookSim2's figure for the first is in docs/VALIDATION.md.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np
from buffered import planned

from hopmap.simulator import ENGINES, Parameters, lower, simulate
from hopmap.simulator.record import Record
from hopmap.simulator.run_plan import plan_run
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
LU = {
    "unbounded": {},
    "8 packets, 2 channels": {"network_buffer": 8, "network_virtual_channels": 2},
}


def under_load() -> None:
    """Print a row a model: packet-hops, seconds, a second's packet-hops, share of the first's."""
    base = planned(
        "mesh", "uniform", LOAD, CYCLES,
        size=1, channels=CHANNELS, buffer=0, dateline=False, credit_delay=0.0, seed=1,
    )  # fmt: skip
    mesh, first = topology_from_spec("mesh:8x8"), 0.0
    mesh = mesh.with_links(None, bandwidth=base.bandwidth[0], latency=base.latency[0])
    for name, given in MODELS.items():
        parameters = replace(base.parameters, network_virtual_channels=CHANNELS, **given)
        plan = plan_run(base.program, mesh, np.arange(64), parameters)
        ENGINES["compiled"].run(plan, Record(), None)  # compile
        spent = []
        for _ in range(3):
            begin = time.process_time()
            events = ENGINES["compiled"].run(plan, Record(), None).events
            spent.append(time.process_time() - begin)
        first = first or events / min(spent)
        print(row(name, events, min(spent)) + f"{events / min(spent) / first:>7.2f}", flush=True)


def row(name: str, events: int, seconds: float) -> str:
    """Packet-hops, seconds, and a second's packet-hops."""
    return f"{name:<32}{events:>12,}{seconds:>8.2f} s{events / seconds / 1e6:>8.2f} M/s"


def whole_lu() -> None:
    """Print packet-hops and seconds of LU with and without limits to buffers."""
    program, torus = lower(nas_folded("lu.C.64")), topology_from_spec("torus:4x4x4")
    node_of = np.random.default_rng(0).permutation(64)
    for name, given in LU.items():
        begin = time.process_time()
        run = simulate(program, torus, node_of, parameters=Parameters(**given))
        print(row(f"lu.C.64, {name}", run.events, time.process_time() - begin), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lu", action="store_true")
    under_load()
    if parser.parse_args().lu:
        whole_lu()
