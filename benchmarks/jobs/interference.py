"""A collective during an incast, on the nodes that real jobs of Leonardo and LUMI had.

Published figures for 64 nodes (Piarulli, Faltelli, Pleiter and others, Characterizing the Impact of
Congestion in Modern HPC Interconnects, arXiv 2604.11432, 2026): during an incast on Leonardo an
all-gather of 16 MiB takes 3.1 times as long, an all-to-all 2.0 times; on LUMI 0.94 to 1.05 times.

Here 64 nodes of a host list belong in turns to the collective and to the incast. Leonardo has
static routes and no control that slows senders down. For LUMI, ``--routing`` sets the routes and
``--at-once`` how many messages of ``--piece`` bytes may be under way to a node; the node grants
them one after the other.

    python benchmarks/jobs/interference.py FOLDER     with leonardo_jobs.tar.gz, leonardo_nodes.txt
    python benchmarks/jobs/interference.py FOLDER --machine lumi --piece 65536 --at-once 2
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path

import numpy as np

import hopmap as hm
from hopmap.api.job import Job
from hopmap.api.jobs import simulate_jobs
from hopmap.errors import HopmapError
from hopmap.simulator import Program, program_of
from hopmap.topologies.readers.hosts import lists_in, nodes_of, read_hosts

LINKS = {"link.node.bandwidth": 50e9, "link.local.bandwidth": 25e9, "link.global.bandwidth": 25e9}
ENDS = {"injection.bandwidth": 24.6e9, "ejection.bandwidth": 24.6e9}
VICTIMS = {"all-gather": "allgather=ring", "all-to-all": "alltoall=pairwise"}
SLOWED = 1.1  # from here on a call counts as slowed


def incast(ranks: int, times: int, size: int, at_once: int) -> Program:
    """Let all send to the first, which grants some messages at once, again and again."""
    others = range(1, ranks)
    root = []
    for some in batched(others, at_once or len(others)):
        takes = [("irecv", peer, size) for peer in some]
        root += takes + [("wait", len(root) + k) for k in range(len(takes))]
    send = [("repeat", times, [("send", 0, size)])]
    return program_of("incast", [[("repeat", times, root)], *(send for _ in others)])


def batched(ranks: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """Yield pieces of so many."""
    return (ranks[k : k + size] for k in range(0, len(ranks), size))


def slowed(
    network: str | hm.Topology,
    nodes: np.ndarray,
    call: str,
    settings: dict,
    size: str,
    piece: int,
    at_once: int,
) -> float:
    """Return how many times as long a call takes during an incast that outlasts it."""
    victims, others = nodes[::2], nodes[1::2]
    call = f"collective:{call},{len(victims)},{size}"
    times = 8
    while True:
        jobs = [
            Job(call, mapping=victims, start=1e-3),
            Job(incast(len(others), times, piece, at_once), mapping=others),
        ]
        run = simulate_jobs(jobs, hm.Machine(network, settings=settings))
        victim, aggressor = run.jobs
        if victim.finish <= aggressor.finish:
            return victim.makespan / run.alone[0]
        times *= 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nodes", type=int, default=64)
    parser.add_argument("--jobs", type=int, default=20, help="lists to take, the first by name")
    parser.add_argument("--size", default="16MiB")
    parser.add_argument("--buffers", type=int, nargs="*", default=[0, 4, 16, 64])
    parser.add_argument("--packet", default="8KiB")
    parser.add_argument("--machine", choices=["leonardo", "lumi"], default="leonardo")
    parser.add_argument("--routing", nargs="*", default=["deterministic"])
    parser.add_argument("--piece", type=int, default=2**20, help="bytes of a message of the incast")
    parser.add_argument("--at-once", type=int, nargs="*", default=[0], help="0: all of them")
    options = parser.parse_args()
    if options.machine == "leonardo":
        network, known = hm.topology(f"file:{options.folder / 'leonardo_nodes.txt'}"), LINKS | ENDS
        topology = network
    else:
        network, known = "preset:lumi-g", {}  # which brings its figures
        topology = hm.topology(network)
    lists = []
    for listed in lists_in(str(options.folder / f"{options.machine}_jobs.tar.gz")):
        hosts = read_hosts(listed)
        if len(hosts) >= options.nodes and len(lists) < options.jobs:
            with suppress(HopmapError):  # nodes of LUMI's other part
                lists.append(np.array(nodes_of(topology, hosts, listed)[: options.nodes]))
    print(f"{len(lists)} lists, {options.nodes} nodes of each, {options.size}; CPU seconds last")
    for buffer, routing, at_once in product(options.buffers, options.routing, options.at_once):
        settings = known | {"nic": "fifo", "packet_size": options.packet, "network.buffer": buffer}
        settings |= {"network.virtual_channels": 3 if routing != "deterministic" else 2}
        settings["network.routing"] = routing
        for name, call in VICTIMS.items():
            begin = time.process_time()
            found = [
                slowed(network, nodes, call, settings, options.size, options.piece, at_once)
                for nodes in lists
            ]
            spent = time.process_time() - begin
            low, high = np.percentile(found, [10, 90])
            hit = [each for each in found if each > SLOWED] or [1.0]
            print(
                f"buffer {buffer}, {routing}, at once {at_once}: {name}: "
                f"median {statistics.median(found):.2f}, mean {np.mean(found):.2f}, "
                f"10th to 90th percentile {low:.2f} to {high:.2f}, most "
                f"{max(found):.2f}; slowed {np.mean(np.array(found) > SLOWED):.0%}, these by a "
                f"median of {statistics.median(hit):.2f}; {spent:.0f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
