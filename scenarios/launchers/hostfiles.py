"""Lists of hosts, rank -> node: Slurm's hostfile, Intel MPI's machinefile, SimGrid's hostfile.

The k-th place in the list is rank k's. Slurm repeats a host as ``host*3``, Intel MPI and SimGrid as
``host:3``. Intel MPI wants the list as ``-machinefile``: of ``-f`` it takes every host only once.

Sources: Slurm, srun(1), "--distribution=arbitrary", and slurm_read_hostfile; Intel MPI Developer
Reference, "Global Hydra Options"; SimGrid, src/smpi/smpirun.in.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hopmap.topologies import Topology

from .node_names import NAME
from .text import LauncherFile, Place

TIMES = re.compile(rf"({NAME.pattern})(?:[:*]([1-9]\d{{0,8}}))?")


def write_hosts(node_of: NDArray[np.int64], _topology: Topology, hosts: Sequence[str]) -> list[str]:
    """Return the host of every rank."""
    return [hosts[node] for node in node_of]


def write_machines(
    node_of: NDArray[np.int64], _topology: Topology, hosts: Sequence[str]
) -> list[str]:
    """Return ``host:1`` for every rank."""
    return [f"{hosts[node]}:1" for node in node_of]


def read_hosts(file: LauncherFile) -> list[Place]:
    """Return line, rank and node of every place in the list."""
    places: list[Place] = []
    slots = int(file.topology.slots.sum())
    for number, line in file.lines:
        for item in line.split(","):
            match = TIMES.fullmatch(item.strip())
            if match is None:
                file.wrong(number, "HOST, HOST:RANKS or HOST*RANKS")
            node, times = file.node(f"line {number}", match[1]), int(match[2] or 1)
            if len(places) + times > slots:
                file.wrong(number, f"{slots} ranks at most on {file.topology.spec}")
            places += [(number, len(places) + n, node) for n in range(times)]
    return places
