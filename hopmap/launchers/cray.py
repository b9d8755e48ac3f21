"""Cray MPICH's MPICH_RANK_ORDER, position -> rank: the inverse of all other formats.

The launcher makes positions: it fills the nodes in its own order, as many on each. The file lists
the rank that each position plays, so that it says where a rank sits only together with the nodes
and how many ranks go on each; two comments keep them. Slurm's order is that of the names, numbers
in them by their values, whatever the order of --nodelist (and unless a topology plugin ranks them).

Sources: HPE, intro_mpi(3), "MPICH_RANK_REORDER_METHOD"; grid_order(1); ARCHER2 and LUMI
documentation; Slurm, srun(1), "--nodelist", and src/slurmctld/read_config.c for the order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, repeat

import numpy as np

from hopmap.arrays import Ints
from hopmap.topologies import MappingError, Topology

from .formats import Launcher, LauncherFile, Place, comment, names_comment
from .node_names import expand

FILLED, EACH = "filled", "ranks on each"
RANKS = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


def write_rank_order(node_of: Ints, _topology: Topology, hosts: Sequence[str]) -> list[str]:
    """Return the ranks of one node a line, in Slurm's order of the nodes.

    As many on each node, fewer on the last alone.
    """
    order = np.array(_slurms_order(hosts), dtype=np.int64)
    turn = np.argsort(order)[node_of]  # when a rank's node is filled
    filled, ranks_on = np.unique(turn, return_counts=True)
    used = order[filled]
    each = int(ranks_on.max())
    unfilled = np.flatnonzero(ranks_on[:-1] < each)
    if unfilled.size:
        node, other = unfilled[0], ranks_on.argmax()
        raise MappingError(
            f"cray: {ranks_on[node]} ranks on node {used[node]}, {each} on node "
            f"{used[other]}: expected as many on every node that is used, fewer on the last only, "
            f"since the launcher fills nodes in order; slurm takes any mapping"
        )
    lines = [comment(EACH, str(each)), *names_comment(FILLED, [hosts[node] for node in used])]
    by_node = np.argsort(turn, kind="stable")
    ends = np.cumsum(ranks_on)[:-1]
    return lines + [",".join(map(str, ranks)) for ranks in np.split(by_node, ends)]


def read_rank_order(file: LauncherFile) -> list[Place]:
    """Return line, rank and node of every position.

    Positions fill the nodes that the comments name, as many on each as they say; without comments
    all nodes in Slurm's order of their names, as many as they have slots.
    """
    filled = _slurms_order(list(file.nodes))
    if FILLED in file.said:
        filled = [
            file.node(FILLED, host) for host in expand(file.said[FILLED], f"{file.name}: {FILLED}")
        ]
    each = file.said.get(EACH)
    if each is not None and not re.fullmatch(r"[1-9]\d{0,8}", each):
        raise MappingError(f"{file.name}: {EACH}: {each[:40]!r}: expected a whole number")
    sizes = [int(each or file.topology.slots[node]) for node in filled]
    positions = chain.from_iterable(map(repeat, filled, sizes))
    places: list[Place] = []
    for number, line in file.lines:
        for item in line.rstrip(",").split(","):
            match = RANKS.fullmatch(item.strip())
            first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
            if last < first:
                file.wrong(number, "ranks like 0,1,4-7")
            nodes = [node for _, node in zip(range(first, last + 1), positions, strict=False)]
            if len(nodes) <= last - first:
                file.wrong(number, f"{sum(sizes)} ranks at most on {len(filled)} nodes")
            places += zip(repeat(number), range(first, last + 1), nodes)
    return places


def _slurms_order(hosts: Sequence[str]) -> list[int]:
    """Nodes in the order in which Slurm fills them."""

    def by_value(node: int) -> list[str | tuple[int, str]]:
        parts = re.split(r"(\d+)", hosts[node])
        parts[1::2] = (number.lstrip("0") for number in parts[1::2])
        return [(len(part), part) if k % 2 else part for k, part in enumerate(parts)]

    return sorted(range(len(hosts)), key=by_value)


CRAY = Launcher(
    "cray",
    "Cray MPICH rank order",
    "position -> rank, the inverse of rank -> node: places in order of names of nodes",
    "MPICH_RANK_REORDER_METHOD=3 MPICH_RANK_REORDER_FILE={file} srun --nodes={nodes} "
    "--nodelist={nodelist} --ntasks={ranks} --ntasks-per-node={each} --distribution=block "
    "./a.out",
    "HPE, intro_mpi(3) and grid_order(1); ARCHER2 and LUMI documentation",
    write_rank_order,
    read_rank_order,
    called="MPICH_RANK_ORDER",
)
