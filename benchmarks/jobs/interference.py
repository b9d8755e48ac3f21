"""A collective beside an incast on the nodes that real jobs of Leonardo had.

Published: on 64 nodes of Leonardo an all-gather of 16 MiB takes 3.1 times as long beside an incast,
an all-to-all 2.0 times (Piarulli, Faltelli, Pleiter and others, Characterizing the Impact of
Congestion in Modern HPC Interconnects, arXiv 2604.11432, 2026). Here: 64 nodes of a list of hosts,
in turns to the one and the other; routes are static, buffers finite, nobody slows down senders.

    python benchmarks/jobs/interference.py FOLDER     with leonardo_jobs.tar.gz, leonardo_nodes.txt
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import numpy as np

import hopmap as hm
from hopmap.scenarios.jobs.asked import Job
from hopmap.scenarios.jobs.run import simulate_jobs
from hopmap.simulator import Program, program_of
from hopmap.topologies.readers.hosts import lists_in, nodes_of, read_hosts

LINKS = {"link.node.bandwidth": 50e9, "link.local.bandwidth": 25e9, "link.global.bandwidth": 25e9}
ENDS = {"injection.bandwidth": 24.6e9, "ejection.bandwidth": 24.6e9, "nic": "fifo"}
VICTIMS = {"all-gather": "allgather=ring", "all-to-all": "alltoall=pairwise"}
SLOWED = 1.1  # from here on a call counts as slowed
PIECE = 2**20  # bytes of a message of the incast


def incast(ranks: int, times: int) -> Program:
    """Let all send to the first, which waits for all of them, again and again."""
    others = range(1, ranks)
    takes = [("irecv", peer, PIECE) for peer in others]
    root = [("repeat", times, takes + [("wait", k) for k in range(len(takes))])]
    send = [("repeat", times, [("send", 0, PIECE)])]
    return program_of("incast", [root, *(send for _ in others)])


def slowed(network: hm.Topology, nodes: np.ndarray, call: str, settings: dict, size: str) -> float:
    """Return how many times as long a call takes beside an incast that outlasts it."""
    victims, others = nodes[::2], nodes[1::2]
    call = f"collective:{call},{len(victims)},{size}"
    times = 8
    while True:
        jobs = [
            Job(call, mapping=victims, start=1e-3),
            Job(incast(len(others), times), mapping=others),
        ]
        run = simulate_jobs(jobs, network, settings=settings)
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
    given = parser.parse_args()
    network = hm.topology(f"file:{given.folder / 'leonardo_nodes.txt'}")
    lists = []
    for listed in lists_in(str(given.folder / "leonardo_jobs.tar.gz")):
        hosts = read_hosts(listed)
        if len(hosts) >= given.nodes and len(lists) < given.jobs:
            lists.append(np.array(nodes_of(network, hosts, listed)[: given.nodes]))
    print(f"{len(lists)} lists, {given.nodes} nodes of each, {given.size}; CPU seconds last")
    for buffer in given.buffers:
        settings = LINKS | ENDS | {"packet_size": given.packet, "network.buffer": buffer}
        settings["network.virtual_channels"] = 2
        for name, call in VICTIMS.items():
            begin = time.process_time()
            found = [slowed(network, nodes, call, settings, given.size) for nodes in lists]
            spent = time.process_time() - begin
            low, high = np.percentile(found, [10, 90])
            hit = [each for each in found if each > SLOWED] or [1.0]
            print(
                f"buffer {buffer}: {name}: median {statistics.median(found):.2f}, mean "
                f"{np.mean(found):.2f}, 10th to 90th percentile {low:.2f} to {high:.2f}, most "
                f"{max(found):.2f}; slowed {np.mean(np.array(found) > SLOWED):.0%}, these by a "
                f"median of {statistics.median(hit):.2f}; {spent:.0f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
