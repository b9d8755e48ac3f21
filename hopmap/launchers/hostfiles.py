"""Hosts of ranks, rank -> node: hostfiles of Slurm and SimGrid, machinefiles, Open MPI's rankfiles.

The k-th place in the list is rank k's. Slurm repeats a host as ``host*3``, Intel MPI and SimGrid as
``host:3``. Intel MPI wants the list as ``-machinefile``: of ``-f`` it takes every host only once.

A line of a rankfile is `rank 0=node7 slot=0`. Open MPI 4 and 5 (PRRTE) read the same file, from
other options. A slot is the number of a core on its node, counted as hwloc counts (logical;
version 5 knows no other), and a rank is bound to it. Every rank must be there with its ``slot=``;
``+n3`` is the fourth node of the allocation.

Sources: mpirun(1) of Open MPI 4.1, "Rankfiles"; PRRTE, src/docs, detail-placement-rankfiles.rst;
Slurm, srun(1), "--distribution=arbitrary", and slurm_read_hostfile; Intel MPI Developer
Reference, "Global Hydra Options"; SimGrid, src/smpi/smpirun.in.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hopmap.arrays import Ints, equals_before
from hopmap.topologies import Topology

from .formats import Launcher, LauncherFile, Place
from .node_names import NAME

RANK = re.compile(r"rank\s+(\d{1,9})\s*=\s*(\S+)\s+slots?\s*=\s*[\d:;,*-]+")
TIMES = re.compile(rf"({NAME.pattern})(?:[:*]([1-9]\d{{0,8}}))?")


def write_hosts(node_of: Ints, _topology: Topology, hosts: Sequence[str]) -> list[str]:
    """Return the host of every rank."""
    return [hosts[node] for node in node_of]


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


def write_rankfile(node_of: Ints, _topology: Topology, hosts: Sequence[str]) -> list[str]:
    """Return a line for every rank; the ranks of a node take its slots in their order."""
    turns = zip(node_of, equals_before(node_of), strict=True)
    return [f"rank {rank}={hosts[node]} slot={turn}" for rank, (node, turn) in enumerate(turns)]


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


def _platform(_file: str, topology: Topology, hosts: Sequence[str]) -> str:
    """Return SimGrid's platform, with the network's own parameters or the default ones."""
    from hopmap.simulator.export import WRITERS
    from hopmap.simulator.parameters.settings import configure

    return "".join(WRITERS["simgrid"].platform_xml(*configure(topology, ()), names=hosts))


OPENMPI = Launcher(
    "openmpi",
    "Open MPI 4 and 5 (PRRTE) rankfile",
    "rank -> node: a line says host and slot (logical core) of a rank",
    "mpirun --map-by rankfile:file={file} ./a.out   (Open MPI 4: mpirun -rf {file})",
    "Open MPI 4.1, mpirun(1); PRRTE, detail-placement-rankfiles.rst",
    write_rankfile,
    read_rankfile,
    r"rank\s+\d+\s*=",
)
SLURM = Launcher(
    "slurm",
    "Slurm hostfile for arbitrary distribution",
    "rank -> node: line r is the host of rank r",
    "SLURM_HOSTFILE={file} srun --ntasks={ranks} --distribution=arbitrary ./a.out",
    "Slurm, srun(1), --distribution=arbitrary",
    write_hosts,
    read_hosts,
    rf"(?=[A-Za-z]){NAME.pattern}(\*\d+)?(,{NAME.pattern}(\*\d+)?)*$",
)
INTEL = Launcher(
    "intel",
    "Intel MPI and MPICH machinefile",
    "rank -> node: line r is the host of rank r",
    "mpirun -machinefile {file} -n {ranks} ./a.out   (MPICH: mpiexec -f {file} ...)",
    "Intel MPI Developer Reference, Global Hydra Options",
    lambda node_of, _topology, hosts: [f"{hosts[node]}:1" for node in node_of],
    read_hosts,
    rf"(?=[A-Za-z]){NAME.pattern}:\d+$",
)
SIMGRID = Launcher(
    "simgrid",
    "SimGrid hostfile, with its platform file",
    "rank -> node: line r is the host of rank r",
    "smpirun -hostfile {file} -platform {stem}_platform.xml ./a.out",
    "SimGrid, smpirun",
    write_hosts,
    read_hosts,
    commented=False,
    companion="{stem}_platform.xml",
    companion_text=_platform,
)
