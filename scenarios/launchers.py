"""Mappings as launchers read them: rankfiles, host lists, coordinate files.

Every format says its direction, because they differ: most list rank -> node, Cray's rank order
lists position -> rank, the inverse permutation. Sources: the manuals of the launchers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from ..topologies import MappingError, Topology

Nodes = NDArray[np.int64]


@dataclass(frozen=True)
class Launcher:
    """A format to export to.

    Attributes
    ----------
    name, summary : str
        For `hopmap list formats`.
    command : str
        How the file is used, with FILE for its name.
    source : str
        Where the format is described.
    write : callable
        ``(node_of, topology, hosts) -> text``.
    """

    name: str
    summary: str
    command: str
    source: str
    write: Callable[[Nodes, Topology, Sequence[str]], str]


def export_mapping(
    launcher: str, node_of: Nodes, topology: Topology, hosts: Sequence[str] | None = None
) -> str:
    """Return the text of a launcher's file.

    Parameters
    ----------
    launcher : str
        A name of `LAUNCHERS`.
    hosts : sequence of str, optional
        Name of every node in order of node numbers; node0, node1, ... when left out.

    Raises
    ------
    MappingError
        Unknown launcher, too few host names, a mapping that the format cannot say.
    """
    if launcher not in LAUNCHERS:
        raise MappingError(f"launcher {launcher!r}: expected one of {', '.join(LAUNCHERS)}")
    names = [f"node{n}" for n in range(topology.nodes)] if hosts is None else list(hosts)
    if len(names) < topology.nodes:
        raise MappingError(
            f"{len(names)} host names: expected one for each of the {topology.nodes} nodes of "
            f"{topology.spec}, in the order of their numbers"
        )
    return LAUNCHERS[launcher].write(node_of, topology, names)


def _openmpi(node_of: Nodes, topology: Topology, hosts: Sequence[str]) -> str:
    taken = np.zeros(topology.nodes, dtype=np.int64)
    lines = []
    for rank, node in enumerate(node_of):
        lines.append(f"rank {rank}={hosts[node]} slot={taken[node]}")
        taken[node] += 1
    return _lines(lines)


def _hosts_in_order(node_of: Nodes, _topology: Topology, hosts: Sequence[str]) -> str:
    return _lines([hosts[node] for node in node_of])


def _intel(node_of: Nodes, _topology: Topology, hosts: Sequence[str]) -> str:
    return _lines([f"{hosts[node]}:1" for node in node_of])


def _cray(node_of: Nodes, topology: Topology, hosts: Sequence[str]) -> str:
    used, ranks_on = np.unique(node_of, return_counts=True)
    # The launcher deals the ranks out node after node, as many to each.
    if len(set(ranks_on[:-1])) > 1 or ranks_on[-1] > ranks_on[0]:
        raise MappingError(
            f"cray: nodes take {ranks_on.min()} to {ranks_on.max()} ranks: expected as many on each"
        )
    lines = [
        f"# position -> rank (inverse of rank -> node) on {topology.spec}",
        f"# {len(used)} nodes in order of their numbers, {ranks_on[0]} ranks on each:",
    ]
    if len(used) < topology.nodes:
        lines.append(f"# allocate exactly the hosts {','.join(hosts[n] for n in used)}")
    by_node = np.argsort(node_of, kind="stable")
    for node, ranks in groupby(by_node, key=lambda rank: node_of[rank]):
        lines += [f"# {hosts[node]}", ",".join(str(rank) for rank in ranks)]
    return _lines(lines)


def _fugaku(node_of: Nodes, topology: Topology, _hosts: Sequence[str]) -> str:
    if not 1 <= len(topology.dims) <= 3:
        raise MappingError(f"fugaku: {topology.spec}: expected a box of up to 3 dimensions")
    return _lines([f"({','.join(map(str, topology.coords[node]))})" for node in node_of])


def _bluegene(node_of: Nodes, topology: Topology, _hosts: Sequence[str]) -> str:
    if not topology.dims:
        raise MappingError(f"bluegene: {topology.spec} has no coordinates: expected a torus")
    taken = np.zeros(topology.nodes, dtype=np.int64)
    lines = []
    for node in node_of:
        lines.append(" ".join(map(str, (*topology.coords[node], taken[node]))))
        taken[node] += 1
    return _lines(lines)


def _json(node_of: Nodes, topology: Topology, hosts: Sequence[str]) -> str:
    by_node = np.argsort(node_of, kind="stable")
    new_rank = np.empty_like(by_node)
    new_rank[by_node] = np.arange(len(by_node))
    return (
        json.dumps(
            {
                "topology": topology.spec,
                "node_of": node_of.tolist(),
                "host_of": [hosts[node] for node in node_of],
                # For codes that reorder themselves: the process at position p in node order plays
                # rank rank_at[p]; the process that plays rank r has position position_of[r].
                "rank_at": by_node.tolist(),
                "position_of": new_rank.tolist(),
            },
            indent=1,
        )
        + "\n"
    )


def _lines(lines: Sequence[str]) -> str:
    return "\n".join(lines) + "\n"


LAUNCHERS: dict[str, Launcher] = {
    launcher.name: launcher
    for launcher in (
        Launcher(
            "openmpi",
            "Open MPI and PRRTE rankfile, rank -> host and slot",
            "mpirun --map-by rankfile:file=FILE ./a.out   (Open MPI 4: mpirun -rf FILE)",
            "mpirun(1); PRRTE, placement by rankfiles",
            _openmpi,
        ),
        Launcher(
            "slurm",
            "Slurm host list for arbitrary distribution, line r = host of rank r",
            "SLURM_HOSTFILE=FILE srun --distribution=arbitrary ./a.out",
            "srun(1), --distribution=arbitrary",
            _hosts_in_order,
        ),
        Launcher(
            "cray",
            "Cray MPICH rank order, position -> rank",
            "MPICH_RANK_REORDER_METHOD=3 MPICH_RANK_REORDER_FILE=FILE srun ./a.out",
            "ARCHER2 documentation; grid_order(1)",
            _cray,
        ),
        Launcher(
            "intel",
            "Intel MPI and MPICH machine file, line r = host of rank r",
            "mpirun -machinefile FILE ./a.out",
            "Intel MPI developer guide, controlling process placement",
            _intel,
        ),
        Launcher(
            "fugaku",
            "Fugaku and FX1000 coordinate file, line r = (x,y,z) of rank r",
            "mpiexec --vcoordfile FILE ./a.out",
            "Fugaku user guide, rank assignment",
            _fugaku,
        ),
        Launcher(
            "bluegene",
            "Blue Gene map file, line r = x y z t of rank r",
            "runjob --mapping FILE : ./a.out",
            "as LLNL/rubik writes it",
            _bluegene,
        ),
        Launcher(
            "simgrid",
            "SimGrid host file, line r = host of rank r",
            "smpirun -hostfile FILE -platform PLATFORM ./a.out",
            "SimGrid documentation, smpirun",
            _hosts_in_order,
        ),
        Launcher(
            "json",
            "JSON: node, host and position of every rank, both directions",
            "MPI_Comm_split(MPI_COMM_WORLD, 0, rank_at[position], &comm)",
            "",
            _json,
        ),
    )
}
