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

import numpy as np

from hopmap.arrays import equals_before

from .binding import note_cores, seats_on
from .distribution import note_distribution, note_map_by
from .formats import Launch, Launcher, LauncherFile, Place
from .node_names import NAME

RANK = re.compile(r"rank\s+(\d{1,9})\s*=\s*(\S+)\s+slots?\s*=\s*[\d:;,*-]+")
TIMES = re.compile(rf"({NAME.pattern})(?:[:*]([1-9]\d{{0,8}}))?")


def write_hosts(launch: Launch) -> list[str]:
    """Return the host of every rank."""
    return [launch.hosts[node] for node in launch.node_of]


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


def write_rankfile(launch: Launch) -> list[str]:
    """Return a line for every rank, with the cores that it is bound to."""
    node_of = launch.node_of
    ranks_on = np.bincount(node_of)
    seats = {
        ranks: seats_on(ranks, launch.threads or 1, launch.node) for ranks in set(ranks_on.tolist())
    }
    lines = []
    for rank, (node, turn) in enumerate(zip(node_of, equals_before(node_of), strict=True)):
        seat = seats[ranks_on[node]][turn]
        near = "" if seat.domain is None else f" # NUMA domain {seat.domain}"
        near += "" if seat.gpu is None else f", GPU {seat.gpu}"
        lines.append(f"rank {rank}={launch.hosts[node]} slot={seat.slots}{near}")
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


def _platform(launch: Launch) -> str:
    """Return SimGrid's platform, with the network's own parameters or the default ones."""
    from hopmap.simulator.export import WRITERS
    from hopmap.simulator.parameters.settings import configure

    network = configure(launch.topology, ())
    return "".join(WRITERS["simgrid"].platform_xml(*network, names=launch.hosts))


OPENMPI = Launcher(
    "openmpi",
    "Open MPI 4 and 5 (PRRTE) rankfile",
    "rank -> node: a line says host and slot (logical core) of a rank",
    "mpirun --map-by rankfile:file={file} ./a.out   (Open MPI 4: mpirun -rf {file})",
    "Open MPI 4.1, mpirun(1); PRRTE, detail-placement-rankfiles.rst",
    write_rankfile,
    read_rankfile,
    r"rank\s+\d+\s*=",
    threaded="mpirun -x OMP_NUM_THREADS={threads} --map-by rankfile:file={file} ./a.out   "
    "(Open MPI 4: mpirun -x OMP_NUM_THREADS={threads} -rf {file})",
    binds=True,
    notes=lambda launch: [*note_cores(launch), *note_map_by(launch)],
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
    threaded="OMP_NUM_THREADS={threads} SLURM_HOSTFILE={file} srun --ntasks={ranks} "
    "--cpus-per-task={threads} --distribution=arbitrary ./a.out",
    notes=note_distribution,
)
INTEL = Launcher(
    "intel",
    "Intel MPI and MPICH machinefile",
    "rank -> node: line r is the host of rank r",
    "mpirun -machinefile {file} -n {ranks} ./a.out   (MPICH: mpiexec -f {file} ...)",
    "Intel MPI Developer Reference, Global Hydra Options",
    lambda launch: [f"{host}:1" for host in write_hosts(launch)],
    read_hosts,
    rf"(?=[A-Za-z]){NAME.pattern}:\d+$",
    threaded="mpirun -machinefile {file} -n {ranks} -genv OMP_NUM_THREADS {threads} "
    "-genv I_MPI_PIN_DOMAIN omp ./a.out   (MPICH: mpiexec -f {file} -bind-to core:{threads} ...)",
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
    on_gpus=True,
    companion="{stem}_platform.xml",
    companion_text=_platform,
)
