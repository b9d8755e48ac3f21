"""Compare metrics and engines with networkx, SimPy and SimGrid, for `page.py`."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
from replay import halo
from textbook_simpy import Replay
from trace_rows import best

from hopmap.mappers import objectives
from hopmap.simulator import ENGINES, Parameters, Program, evaluate, link_loads, lower, simulate
from hopmap.simulator.operations import NOTHING
from hopmap.simulator.run_plan import plan_run
from hopmap.topologies import Topology, topology_from_spec, torus
from hopmap.traces import Traffic, nas_folded, nas_traffic, read_trace

Rows = Iterator[tuple[str, str, str, str, float]]
DATA = Path(__file__).parents[2] / "tests" / "data"


def on_paths(graph: nx.DiGraph, traffic: Traffic, node_of: np.ndarray) -> Counter[tuple[int, int]]:
    """Messages on every link by a search for each pair, as one writes it first."""
    loads: Counter[tuple[int, int]] = Counter()
    for src, dst, messages in zip(traffic.src, traffic.dst, traffic.messages, strict=True):
        path = nx.shortest_path(graph, node_of[src], node_of[dst])
        for link in pairwise(path):
            loads[link] += messages
    return loads


def metrics() -> Rows:
    """Yield the rows of static metrics."""
    for ranks, spec in ((64, "torus:4x4x4"), (512, "torus:8x8x8")):
        traffic, topology = nas_traffic(f"lu.C.{ranks}"), topology_from_spec(spec)
        node_of = np.random.default_rng(0).permutation(topology.nodes)
        links = zip(topology.link_from.tolist(), topology.link_to.tolist(), strict=True)
        graph = nx.DiGraph(links)
        begin = time.process_time()
        loads = on_paths(graph, traffic, node_of)
        theirs = time.process_time() - begin
        assert sum(loads.values()) == link_loads(traffic, topology, node_of)[0].sum()
        ours = best(lambda: evaluate(traffic, topology, node_of))  # noqa: B023
        yield (
            f"all metrics, lu.C.{ranks} on {spec}", f"{ours * 1e3:.2f} ms",
            "networkx, a search a pair", f"{theirs * 1e3:.0f} ms", theirs / ours,
        )  # fmt: skip
    traffic, topology = nas_traffic("lu.D.4096"), topology_from_spec("torus:16x16x16")
    node_of = np.random.default_rng(0).permutation(topology.nodes)
    at = np.stack(np.unravel_index(np.arange(topology.nodes), (16, 16, 16)))

    def dense() -> int:
        gaps = np.abs(at[:, :, None] - at[:, None, :])
        hops = np.minimum(gaps, 16 - gaps).sum(0)
        return int((hops[node_of[traffic.src], node_of[traffic.dst]] * traffic.bytes).sum())

    def computed() -> int:
        return objectives.objective_value(traffic, topology, node_of, "hop_bytes")

    assert dense() == computed()
    theirs, ours = best(dense, 2), best(computed)
    yield (
        "hop-bytes, lu.D.4096 on torus:16x16x16", f"{ours * 1e3:.2f} ms",
        "numpy, a table of distances", f"{theirs * 1e3:.0f} ms", theirs / ours,
    )  # fmt: skip


def engines() -> Rows:
    """Yield the rows of the engines."""
    simulate(halo(4, 1), torus((4, 4)), np.arange(16), engine="compiled")  # compile
    yield from _packets(lower(read_trace(DATA / "mg.S.16")), "mg.S.16")
    program, topology = lower(nas_folded("lu.C.64", steps=20)), topology_from_spec("torus:4x4x4")
    node_of = np.random.default_rng(0).permutation(topology.nodes)
    yield from _against_simgrid(program, topology, node_of)


def _packets(program: Program, name: str) -> Rows:
    """Compare the compiled engine with SimPy, a Resource for every link, on the same packets."""
    parameters = Parameters(compute_scale=0, eager_limit=2**40, switching="store_and_forward")
    node_of = np.random.default_rng(0).permutation(16)[: program.ranks]
    ready = plan_run(program, torus((4, 4)), node_of, parameters)
    peer = Replay(ready)
    slow = best(peer.run, 1)
    for engine in ("compiled", "simpy"):
        run = ENGINES[engine].run
        hops = run(ready, NOTHING, None).events
        fast = best(lambda: run(ready, NOTHING, None), 5 if engine == "compiled" else 2)  # noqa: B023
        yield (
            f"engine {engine}, {name}", f"{hops / fast / 1e6:.2f} M hops/s",
            "SimPy, a Resource a link", f"{peer.hops / slow / 1e6:.3f} M hops/s",
            hops / fast / (peer.hops / slow),
        )  # fmt: skip


def _against_simgrid(program: Program, topology: Topology, node_of: np.ndarray) -> Rows:
    """Compare packets and flows with smpirun on the same trace, without its process start."""
    if shutil.which("smpirun") is None:
        return
    import simgrid

    case = simgrid.Case(program, topology, node_of, simgrid.SIMGRID_MODEL)
    empty = simgrid.Case(halo(8, 0), topology, node_of, simgrid.SIMGRID_MODEL)
    with simgrid.exported(case) as folder, simgrid.exported(empty) as nothing:
        start, _ = simgrid.best(simgrid.simgrid, nothing, empty, "torus", times=2)
        whole, _ = simgrid.best(simgrid.simgrid, folder, case, "torus", times=1)
    for engine in ("compiled", "flow"):
        simgrid.hopmap(case, engine)
        ours, _ = simgrid.best(simgrid.hopmap, case, engine, times=2)
        yield (
            f"engine {engine}, lu.C.64, 20 steps", f"{ours:.2f} s", "SimGrid's replay",
            f"{whole - start:.2f} s", (whole - start) / ours,
        )  # fmt: skip
