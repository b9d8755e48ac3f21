"""The network and the end points of a replay, as SimGrid's platform file and options say them.

With these, SimGrid's flow model is that of the flow engine, but for what docs/VALIDATION.md lists.
Source: SimGrid 3.32, documentation, "Platform: XML reference" and "Configuring SimGrid".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from hopmap.simulator.parameters.keys import unknown
from hopmap.simulator.parameters.parameters import Parameters
from hopmap.simulator.run_plan import paths, speeds
from hopmap.topologies import Topology, TopologyError

from .time_independent import FLOPS

ZONES = {
    "routes": "the servers and routes of hopmap, written out for every pair of nodes",
    "torus": "SimGrid's torus: links and nothing else, half-way round a ring by its own rule",
}
ROUTED_NODES = 1024  # with these the file has a million routes
ENVELOPE = 16  # bytes that SimGrid adds to every message, src/smpi/mpi/smpi_request.cpp

# XML has no two hyphens in a comment, so that options stand there without theirs.
HEADER = f"""<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <!-- Assumed where nobody set them: bandwidths and latencies, those of the topology (a preset, a
       file) or else the defaults of "hopmap list parameters"; {FLOPS:g} flop/s for every host.
       "hopmap convert" to simgrid, with a mapping and its option set (link.bandwidth=10GB/s),
       writes others. -->
"""


def platform_xml(
    topology: Topology,
    parameters: Parameters,
    zone: str = "routes",
    names: Sequence[str] | None = None,
) -> Iterator[str]:
    """Yield the pieces of a platform file.

    Parameters
    ----------
    zone : str
        A name in `ZONES`. Of "torus", injection and ejection are left out: SimGrid has no such
        links on a torus, its ``limiter_link`` is crossed anew at every hop.
    names : sequence of str, optional
        Of the hosts of zone "routes", in order of the nodes; node0, node1, ... when left out.

    Raises
    ------
    TopologyError
        Unknown zone, a network that is no torus of one kind of link, too many nodes for "routes".
    """
    if zone not in ZONES:
        raise TopologyError(unknown("zone", zone, ZONES))
    if zone == "torus":
        return _torus(topology, parameters)
    return _routes(topology, parameters, names or [f"node{n}" for n in range(topology.nodes)])


def smpirun_options(parameters: Parameters) -> list[str]:
    """Return the options with which ``smpirun`` means what the flow engine means.

    SimGrid always shares as `flow_sharing` "round_trip" does, with equal weights only where paths
    have no latency. ``--cfg=network/optim:Full``, slower, makes its times exact.

    Not said, because SimGrid has nothing like it: `gap`, `gap_per_byte`, `control_bytes`, and
    `flow_cross_traffic`, which it charges to the way back.
    """
    eager = min(parameters.eager_limit, 2**31 - 1)
    send, receive = (f"0:{t!r}:0" for t in (parameters.overhead_send, parameters.overhead_recv))
    options = {
        "network/model": "CM02",
        "network/latency-factor": parameters.flow_latency_factor,
        "network/bandwidth-factor": parameters.flow_bandwidth_factor,
        "network/crosstraffic": 0,
        "network/TCP-gamma": 1e30,  # a window that never closes
        "network/weight-S": parameters.flow_weight_s,
        "smpi/async-small-thresh": eager,
        "smpi/send-is-detached-thresh": eager,
        "smpi/os": send,
        "smpi/ois": send,
        "smpi/or": receive,
        # Events closer than this many seconds are one to SimGrid.
        "surf/precision": 1e-12,
    }
    return [f"--cfg={key}:{value}" for key, value in options.items()]


def _torus(topology: Topology, parameters: Parameters) -> Iterator[str]:
    if topology.spec.partition(":")[0] != "torus" or len(topology.kinds) > 1:
        raise TopologyError(f"zone torus: {topology.spec}: expected a torus")
    link, slots = topology.kinds[0], np.unique(topology.slots)
    yield HEADER
    yield (
        f'  <cluster id="network" prefix="node" suffix="" radical="0-{topology.nodes - 1}"\n'
        f'           speed="{FLOPS!r}f" core="{slots[0]}" topology="TORUS"'
        f' topo_parameters="{",".join(map(str, topology.dims))}"\n'
        f'           bw="{link.bandwidth!r}Bps" lat="{link.latency!r}s"'
        f' sharing_policy="SPLITDUPLEX"\n'
        f'           loopback_bw="{parameters.memory_bandwidth!r}Bps"'
        f' loopback_lat="{parameters.memory_latency!r}s"/>\n'
    )
    yield "</platform>\n"


def _routes(topology: Topology, parameters: Parameters, names: Sequence[str]) -> Iterator[str]:
    nodes = topology.nodes
    if nodes > ROUTED_NODES:
        raise TopologyError(
            f"zone routes: {topology.spec}: {nodes} nodes: expected at most {ROUTED_NODES}, since "
            f"every pair has its own route"
        )
    yield HEADER
    yield '  <zone id="network" routing="Full">\n'
    for node, slots in enumerate(topology.slots.tolist()):
        yield f'    <host id="{names[node]}" speed="{FLOPS!r}f" core="{slots}"/>\n'
    bandwidth, latency = (column.tolist() for column in speeds(topology, parameters))
    for server, (rate, delay) in enumerate(zip(bandwidth, latency, strict=True)):
        yield f'    <link id="s{server}" bandwidth="{rate!r}Bps" latency="{delay!r}s"/>\n'
    for source in range(nodes):
        indptr, servers = paths(topology, np.full(nodes, source), np.arange(nodes))
        for target, (begin, end) in enumerate(pairwise(indptr.tolist())):
            crossed = "".join(f'<link_ctn id="s{s}"/>' for s in servers[begin:end].tolist())
            yield (
                f'    <route src="{names[source]}" dst="{names[target]}" symmetrical="NO">'
                f"{crossed}</route>\n"
            )
    yield "  </zone>\n</platform>\n"
