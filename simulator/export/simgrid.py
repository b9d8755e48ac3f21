"""Programs and networks for SimGrid: time-independent traces, a platform file, options.

A time-independent trace, which ``smpirun -replay`` reads, is one file a rank, one action a line:
``rank action arguments``. Computation is in floating point operations, so that the speed of
the hosts turns it into seconds. What is written:

* ``init``, which without an argument makes sizes bytes, and ``finalize``;
* ``compute flops``;
* ``send target tag bytes``, ``isend`` likewise, ``recv source tag bytes``, ``irecv`` likewise;
* ``wait source target tag``: for the oldest of these requests that is not yet waited for.

Collectives are written as their messages, so that both simulators replay the same ones.

With the platform and the options SimGrid's flow model is the flow engine's, except for what
benchmarks/replay/README.md lists.

Sources: SimGrid 3.32, src/smpi/internals/smpi_replay.cpp; its documentation, "Replaying traces",
"Platform: XML reference" and "Configuring SimGrid".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from hopmap.arrays import Floats, Ints, equals_before
from hopmap.errors import expect_one_of
from hopmap.simulator.parameters.parameters import Parameters
from hopmap.simulator.programs.program import Op, Program
from hopmap.simulator.run_plan import paths, speeds
from hopmap.topologies import Topology, TopologyError
from hopmap.traces import TraceError
from hopmap.traces.safety.atomic_files import replacing_folder

from . import Placed, message_sizes, write_out_loops

INDEX, PLATFORM, HOSTS = "traces.txt", "platform.xml", "hosts.txt"
FLOPS = 1e9  # of a host, in one second

WORDS = {int(op): op.name.lower() for op in (Op.SEND, Op.ISEND, Op.RECV, Op.IRECV)}
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
  <!-- Assumed unless set: bandwidths and latencies, from the topology (a preset, a
       file) or else the defaults of "hopmap list parameters"; {FLOPS:g} flop/s for every host.
       "hopmap convert" to simgrid, with a mapping and its option set (link.bandwidth=10GB/s),
       writes others. -->
"""


def may_write(out: Path) -> bool:
    """Whether a place is free, or holds what was written here before."""
    if not out.exists():
        return True
    if not out.is_dir():
        return False
    names = {entry.name for entry in out.iterdir()} - {PLATFORM, HOSTS}
    return not names or (INDEX in names and all(map(_is_own, names)))


def _is_own(name: str) -> bool:
    return name == INDEX or re.fullmatch(r"rank\d+\.tit", name) is not None


def write(out: Path, program: Program, parameters: Parameters, placed: Placed | None) -> str:
    """Write a program, and the platform and hosts of a mapping; return the command to replay it."""
    with replacing_folder(out) as partial:
        if placed is not None:
            with (partial / PLATFORM).open("w", encoding="ascii") as file:
                file.writelines(platform_xml(placed.network, parameters, placed.zone))
            (partial / HOSTS).write_text(placed.hosts, encoding="ascii")
        _fill(partial, program)
    words = ["smpirun", "-replay", INDEX, "-platform", PLATFORM, "-hostfile", HOSTS]
    return " ".join((*words, *smpirun_options(parameters)))


def _fill(folder: Path, program: Program) -> None:
    """Write a program into a folder that is there; computation of 0 s is left out."""
    program = write_out_loops(program, "a trace")
    if program.tasks > program.ranks:
        task = int(np.flatnonzero(np.diff(program.rank_of) == 0)[0]) + 1
        rank, what = int(program.rank_of[task]), "begins a non-blocking collective, or has threads"
        if program.serves_memory(task):
            what = "is the target of one-sided operations"
        raise TraceError(
            f"{program.name}: rank {rank} {what}: expected a trace without them, which is all that "
            f"a time-independent trace can say"
        )
    names = [f"rank{rank}.tit" for rank in range(program.ranks)]
    (folder / INDEX).write_text("".join(f"{name}\n" for name in names), encoding="ascii")
    flops = program.compute * FLOPS
    tag, size = _tags(program), message_sizes(program)
    for rank, name in enumerate(names):
        rows = slice(int(program.offsets[rank]), int(program.offsets[rank + 1]))
        with (folder / name).open("w", encoding="ascii") as file:
            file.writelines(_actions(program, rank, rows, flops[rows], tag, size[rows]))


def _actions(
    program: Program, rank: int, rows: slice, flops: Floats, tag: Ints, size: Ints
) -> Iterator[str]:
    """Lines of one rank."""
    target = program.target[rows]
    waits = program.kind[rows] == Op.WAIT
    # A wait has the partner and tag of what it waits for.
    of = np.where(waits, target, np.arange(rows.start, rows.stop))
    sent = np.isin(program.kind[of], (Op.SEND, Op.ISEND))
    columns = (program.kind[rows], flops, program.peer[of], tag[of], size, sent)
    yield f"{rank} init\n"
    for kind, work, peer, label, amount, sends in zip(*(c.tolist() for c in columns), strict=True):
        if work > 0:
            yield f"{rank} compute {work!r}\n"
        if kind in WORDS:
            yield f"{rank} {WORDS[kind]} {peer} {label} {amount}\n"
        elif kind == Op.WAIT:
            ends = f"{rank} {peer}" if sends else f"{peer} {rank}"
            yield f"{rank} wait {ends} {label}\n"
    yield f"{rank} finalize\n"


def _tags(program: Program) -> Ints:
    """Tag of each row that sends or receives: one for each tag of a communicator or collective.

    Where requests of a channel are not waited for in the order in which they began, each message
    of that channel has a tag of its own, so that a wait finds the right one.
    """
    channel, kind = program.channels(), program.kind
    rows = np.flatnonzero(channel >= 0)
    pairs = np.stack((program.context[rows], program.tag[rows]))
    labels, label = np.unique(pairs, axis=1, return_inverse=True)
    tag = np.full(program.operations, -1, dtype=np.int64)
    tag[rows] = label.reshape(-1)

    sending = (kind[rows] == Op.SEND) | (kind[rows] == Op.ISEND)
    side = channel[rows] * 2 + sending
    apart = np.isin(channel[rows], _find_disordered(program, channel))
    mine, place = rows[apart], equals_before(side[apart])
    # As many tags for each channel as it has messages, or receives if they are more.
    used = np.zeros(int(channel.max(initial=-1)) + 1, dtype=np.int64)
    np.maximum.at(used, channel[mine], place + 1)
    tag[mine] = labels.shape[1] + (np.cumsum(used) - used)[channel[mine]] + place
    return tag


def _find_disordered(program: Program, channel: Ints) -> Ints:
    """Channels with requests without a wait, or not in the order in which they began."""
    requests = np.flatnonzero((program.kind == Op.ISEND) | (program.kind == Op.IRECV))
    waits = np.flatnonzero(program.kind == Op.WAIT)
    waited = np.full(program.operations, -1, dtype=np.int64)
    waited[program.target[waits]] = waits
    side = channel[requests] * 2 + (program.kind[requests] == Op.ISEND)
    order = np.argsort(side, kind="stable")
    side, when = side[order], waited[requests][order]
    bad = when < 0
    bad[1:] |= (side[1:] == side[:-1]) & (when[1:] < when[:-1])
    return np.unique(side[bad] // 2)


def platform_xml(
    topology: Topology,
    parameters: Parameters,
    zone: str = "routes",
    names: Sequence[str] | None = None,
) -> Iterator[str]:
    """Yield the pieces of a platform file, of a zone in `ZONES`.

    Of "torus", injection and ejection are left out: SimGrid has no such links on a torus, its
    ``limiter_link`` is crossed again at every hop. `names` are of the hosts of zone "routes", in
    order of the nodes; node0, node1, ... when left out.
    """
    expect_one_of(TopologyError, "unknown zone", zone, ZONES)
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
