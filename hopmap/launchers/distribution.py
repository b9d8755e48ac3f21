"""The option of srun that gives a mapping, so that it needs no hostfile.

Slurm numbers a step's nodes in its own order of their names. block deals tasks out in rounds, one
to every node that has CPUs left, to see how many each takes; then consecutive tasks fill the nodes.
cyclic keeps the tasks as dealt. plane=4 deals four at once, after one to every node; srun(1) says
that nodes take as many as with cyclic, so that hopmap names a plane only where both say the same.
block,Pack fills one node after the other, with one task at least on each.

Sources: Slurm, srun(1), "--distribution", and src/common/slurm_step_layout.c, _task_layout_block,
_task_layout_cyclic and _task_layout_plane.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints, equals_before

from .formats import Launch
from .node_names import slurm_order


class Distribution(NamedTuple):
    """What gives a mapping; `option` is "" if nothing does."""

    option: str  # as --distribution takes it
    as_slots: bool = False  # whether only if each node has as many CPUs as slots


def slurm_distribution(node_of: Ints, slots: Ints, hosts: Sequence[str]) -> Distribution:
    """Return the option that gives a mapping on the nodes that it uses."""
    used = np.array(slurm_order(hosts), dtype=np.int64)
    used = used[np.bincount(node_of, minlength=len(hosts))[used] > 0]
    turn = np.empty(len(hosts), dtype=np.int64)
    turn[used] = np.arange(len(used))
    places, cpus = turn[node_of], slots[used]
    for option, order in _options(places, None):
        if np.array_equal(order, places):
            return Distribution(option)
    for option, order in _options(places, cpus):
        if np.array_equal(order, places):
            return Distribution(option, as_slots=True)
    return Distribution("")


def _options(places: Ints, cpus: Ints | None) -> Iterator[tuple[str, Ints]]:
    """Yield options that may give a mapping, and what each gives; no CPUs are any number."""
    ranks, counts = len(places), np.bincount(places)
    each = int(counts.max())
    cyclic = _deal(ranks, len(counts), 1, cpus)
    yield "block" if counts.min() == each else "block,NoPack", np.sort(cyclic)
    yield "cyclic", cyclic
    size = int(np.argmax(places != places[0]))  # ranks before the first on another node
    if size > 1:
        dealt = _deal(ranks, len(counts), size, cpus)
        if np.array_equal(np.bincount(dealt), np.bincount(cyclic)):
            yield f"plane={size}", dealt
    yield "block,Pack", np.sort(_deal(ranks, len(counts), each, cpus))


def _deal(ranks: int, nodes: int, size: int, cpus: Ints | None) -> Ints:
    """Return the node of each rank if `size` at once are dealt to nodes that have CPUs left."""
    if cpus is None:
        cpus = np.full(nodes, -(-ranks // (nodes * size)) * size)
    node = np.repeat(np.arange(nodes), cpus)
    turn = equals_before(node) // size
    first = np.where(equals_before(node) == 0, -1, turn)  # every node takes one before any plane
    taken = np.sort(np.argsort(first, kind="stable")[:ranks])
    return node[taken][np.argsort(turn[taken], kind="stable")]


def note_distribution(launch: Launch) -> list[str]:
    """Say which option of srun gives the mapping, so that it needs no hostfile."""
    slots, threads = launch.topology.slots, launch.threads
    option, as_slots = slurm_distribution(launch.node_of, slots, launch.hosts)
    if not option:
        return ["no distribution option gives this; use the hostfile"]
    ranks_on = np.bincount(launch.node_of, minlength=len(slots))
    used = np.count_nonzero(ranks_on)
    words = [f"srun --nodes={used}"]
    if used < np.count_nonzero(slots):
        words.append(f"--nodelist={launch.nodelist}")
    words.append(f"--ntasks={len(launch.node_of)}")
    if option in ("block", "block,Pack"):  # block alone packs nodes where Slurm is set up to
        words.append(f"--ntasks-per-node={ranks_on.max()}")
    if threads is not None:
        words = [f"OMP_NUM_THREADS={threads}", *words, f"--cpus-per-task={threads}"]
    condition = " if nodes have as many CPUs as slots" if as_slots else ""
    command = " ".join([*words, f"-m {option} ./a.out"])
    return [f"this is -m {option}{condition}; no hostfile is needed: {command}"]


def note_map_by(launch: Launch) -> list[str]:
    """Say which option of mpirun gives the nodes of a mapping."""
    order, slots = slurm_order(launch.hosts), launch.topology.slots
    ranks_on = np.bincount(launch.node_of, minlength=len(slots))
    by = {"block": f"ppr:{ranks_on.max()}:node", "cyclic": "node"}
    option = slurm_distribution(launch.node_of, slots, launch.hosts).option
    # The nodes' order is the allocation's: by name, or as a file of hosts lists them.
    if option not in by or order != sorted(order) or (ranks_on[slots > 0] == 0).any():
        return []
    openmp, cores = "", ""
    if launch.threads is not None:
        openmp, cores = f"-x OMP_NUM_THREADS={launch.threads} ", f":PE={launch.threads}"
    command = f"mpirun {openmp}-n {len(launch.node_of)} --map-by {by[option]}{cores} ./a.out"
    return [f"this is --map-by {by[option]}, if mpirun may choose the cores: {command}"]
