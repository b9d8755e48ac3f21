"""What the makespan becomes when something changes: each parameter doubled, or a free network.

One replay each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hopmap.progress import Progress
from hopmap.simulator.engines import DEFAULT_ENGINE
from hopmap.simulator.noise import without_noise
from hopmap.simulator.parameters.parameters import KEYS, Parameters
from hopmap.simulator.programs.program import Program
from hopmap.simulator.run_plan import ENDS, plan_run, server_kinds, what_matters
from hopmap.simulator.simulate import simulate
from hopmap.simulator.steady_state import Steady
from hopmap.topologies import Mapping, Topology

Doubled = tuple[str, float, str, Topology, Parameters]
FLOW = "flow."

FAST = 1e30  # bytes/s


@dataclass(frozen=True)
class Doubling:
    """A replay with one parameter doubled."""

    key: str  # as ``--set`` takes it
    value: float  # what was doubled, in its `unit`
    unit: str  # as in `Key`
    makespan: float  # seconds
    change: float  # of the makespan, in relation to what it was: 0.5 is half as long again


def double_parameters(
    program: Program,
    topology: Topology,
    node_of: Mapping,
    parameters: Parameters,
    *,
    engine: str = "compiled",
    progress: Progress | None = None,
) -> list[Doubling]:
    """Double every parameter of links and model by itself; the largest change comes first.

    Left out is what cannot matter: a parameter that is 0, speeds of servers that no message
    crosses, and limits on sizes that no message has. `progress` is called with the replays done and
    those to come in all.
    """
    cases = list(_cases(program, topology, node_of, parameters, engine))

    def makespan(network: Topology, model: Parameters) -> float:
        return simulate(program, network, node_of, parameters=model, engine=engine).makespan

    once = makespan(topology, parameters)
    doublings = []
    for done, (key, value, unit, network, model) in enumerate(cases):
        if progress is not None:
            progress(done, len(cases))
        twice = makespan(network, model)
        change = (twice - once) / once if once else 0.0
        doublings.append(Doubling(key, value, unit, twice, change))
    return sorted(doublings, key=lambda doubling: -abs(doubling.change))


def _cases(
    program: Program, topology: Topology, node_of: Mapping, parameters: Parameters, engine: str
) -> Iterator[Doubled]:
    """Yield keys, values and units, and topology and parameters with each doubled."""
    ready = plan_run(program, topology, node_of, parameters)
    kind, names = server_kinds(topology)
    used = {names[k] for k in np.unique(kind[ready.servers])}
    for link in topology.kinds:
        if link.name not in used:
            continue
        prefix = "link" if len(topology.kinds) == 1 else f"link.{link.name}"
        bandwidth, latency = link.bandwidth, link.latency
        faster = topology.with_links(link.name, bandwidth=2 * bandwidth)
        yield f"{prefix}.bandwidth", bandwidth, "bytes/s", faster, parameters
        if latency > 0:
            slower = topology.with_links(link.name, latency=2 * latency)
            yield f"{prefix}.latency", latency, "s", slower, parameters

    matters = what_matters(program, parameters)
    for key, entry in KEYS.items():
        end = key.partition(".")[0]
        apart = (key.startswith(FLOW) and engine != "flow") or end == "noise" or "seed" in key
        if not entry.field or entry.choices or apart or (end in ENDS and end not in used):
            continue
        value = getattr(parameters, entry.field)
        if value > 0 and matters.get(key, True):
            twice = replace(parameters, **{entry.field: 2 * value})
            yield key, value, entry.unit, topology, twice


def free_makespan(
    program: Program,
    topology: Topology,
    node_of: ArrayLike,
    parameters: Parameters | None = None,
    engine: str = DEFAULT_ENGINE,
) -> float:
    """Return the seconds of a run without noise whose bytes take no time, on links or at nodes.

    What is left is computing, overheads, and waiting for these.
    """
    return simulate(
        program,
        topology.with_links(None, bandwidth=FAST, latency=0.0),
        node_of,
        parameters=without_network(parameters or Parameters()),
        engine=engine,
        steady=Steady(),
    ).makespan


def without_network(parameters: Parameters) -> Parameters:
    """Return parameters without noise, of nodes that send and receive in no time."""
    ends: dict[str, Any] = {f"{end}_bandwidth": FAST for end in ENDS}
    ends |= {f"{end}_latency": 0.0 for end in ENDS} | {"network_buffer": 0}
    return replace(without_noise(parameters), **ends)
