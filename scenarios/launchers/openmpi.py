"""Rankfiles of Open MPI: `rank 0=node7 slot=0`, rank -> node and slot.

Open MPI 4 and 5 (PRRTE) read the same file, from other options. A slot is the number of a core on
its node, counted as hwloc counts (logical; version 5 knows no other), and a rank is bound to it.
Every rank must be there with its ``slot=``; ``+n3`` is the fourth node of the allocation.

Sources: mpirun(1) of Open MPI 4.1, "Rankfiles"; PRRTE, src/docs, detail-placement-rankfiles.rst.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hopmap.topologies import Topology

from .text import LauncherFile, Place

RANK = re.compile(r"rank\s+(\d{1,9})\s*=\s*(\S+)\s+slots?\s*=\s*[\d:;,*-]+")


def write_rankfile(
    node_of: NDArray[np.int64], topology: Topology, hosts: Sequence[str]
) -> list[str]:
    """Return a line for every rank; the ranks of a node take its slots in their order."""
    taken = np.zeros(topology.nodes, dtype=np.int64)
    lines = []
    for rank, node in enumerate(node_of):
        lines.append(f"rank {rank}={hosts[node]} slot={taken[node]}")
        taken[node] += 1
    return lines


def read_rankfile(file: LauncherFile) -> list[Place]:
    """Return line, rank and node of every line."""
    places = []
    for number, line in file.lines:
        match = RANK.fullmatch(line)
        if match is None:
            file.wrong(number, "rank N=HOST slot=CORE")
        rank, host = int(match[1]), match[2].rpartition("@")[2]
        relative = re.fullmatch(r"\+n(\d{1,9})", host)
        if relative and int(relative[1]) >= file.topology.nodes:
            file.wrong(number, f"a node up to +n{file.topology.nodes - 1}")
        places.append(
            (number, rank, int(relative[1]) if relative else file.node(f"line {number}", host))
        )
    return places
