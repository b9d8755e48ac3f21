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
from hopmap.simulator.programs.mpi_calls import SendMode
from hopmap.simulator.programs.program import Program
from hopmap.simulator.run_plan import ENDS, plan_run, server_kinds
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
    program = ready.program  # with what asks first
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

    sizes = np.unique(program.size[program.sends()])
    largest = int(sizes.max(initial=0))
    limit = parameters.eager_limit
    asking = np.isin(program.mode, (SendMode.SYNCHRONOUS, SendMode.RENDEZVOUS))
    controls = bool((sizes >= limit).any() or asking.any())
    least = parameters.collective_fresh_memory_threshold
    new = program.work.new_memory(least) * (parameters.collective_fresh_memory_per_byte > 0)
    # Whether doubling it may change anything; of what is not named, if it is not 0.
    matters = {
        "eager_limit": bool(((sizes >= limit) & (sizes < 2 * limit)).any()),
        "eager_limit_beyond": parameters.eager_peers > 0,
        "packet_size": max(largest, controls * parameters.control_bytes) > parameters.packet_size,
        "control_bytes": controls,
        "nic.rails": parameters.nic == "round_robin" and not parameters.network_buffer,
        "network.virtual_channels": parameters.network_buffer > 0,
        "network.flit": parameters.network_buffer > 0,
        "network.credit_delay": parameters.network_buffer > 0,
        "compute.scale": bool(program.compute.any()),
        "collective.copy_per_byte": bool(program.work.copied.any()),
        "collective.reduce_per_byte": bool(program.work.reduced.any()),
        "collective.fresh_memory_per_byte": bool(new.any()),
        "collective.fresh_memory_threshold": bool((new > program.work.new_memory(2 * least)).any()),
        "overhead.send": bool(sizes.size),
        "overhead.recv": bool(sizes.size),
        "overhead.per_byte": bool(((sizes > 0) & (sizes < limit)).any()),
        "overhead.control": controls,
        "overhead.put_latency": bool((program.mode == SendMode.PUT).any()),
        "gap": bool(sizes.size),
        "gap_per_byte": largest > 1,
    }
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
