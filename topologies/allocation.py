"""The nodes of a job: as a spec says them, or chosen from those that are free.

Nodes are chosen contiguous, at random, or by whole switches at random: the policies with which
schedulers are compared (Yang, Jenkins, Mubarak, Ross and Lan, Watch out for the bully! Job
interference study on dragonfly network, SC16). A node goes to one job alone. Ranks sit on a job's
nodes in order of their numbers, as launchers have them; what is random is which nodes these are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from hopmap.arrays import Bools, Ints
from hopmap.errors import choice

from .placement import MappingError
from .readers.hosts import compress, expand, nodes_of, read_hosts, read_slots
from .spec import topology_from_spec
from .topology import Topology, TopologyError


def spec_of(
    topology: str | Topology,
    *,
    names: str | Path | None = None,
    hosts: str | Path | None = None,
    nodelist: str | None = None,
    failures: str | None = None,
) -> str:
    """Return the spec of a machine with its failures, its nodes' names and a job's nodes.

    It is at most ``job:HOSTS@names:LIST@failed:ITEMS@SPEC``.

    Parameters
    ----------
    topology : str or Topology
        The machine's spec, or a network that has one.
    names : path or str, optional
        What all nodes are called, in order of their numbers: a file, one a line, or Slurm's list.
    hosts : path, optional
        File with the hosts that the job has, see `readers/hosts.py`. On a network without names,
        as many hosts as it has nodes are the names of these.
    nodelist : str, optional
        Slurm's list of the same; not together with `hosts`.
    failures : str, optional
        See `with_failures`.
    """
    spec = topology if isinstance(topology, str) else topology.spec
    if failures is not None:
        spec = f"failed:{failures}@{spec}"
    if names is not None:
        is_file = isinstance(names, Path) or Path(names).exists()
        listed = ",".join(compress(read_hosts(str(names)))) if is_file else names
        spec = f"names:{listed}@{spec}"
    if hosts is None and nodelist is None:
        return spec
    if hosts is not None and nodelist is not None:
        raise MappingError("--nodelist and --hosts are mutually exclusive")
    over = f"nodes:{nodelist}" if nodelist is not None else f"job:{hosts}"
    found = expand(nodelist) if nodelist is not None else read_hosts(str(hosts))
    network = topology_from_spec(spec)
    try:
        nodes_of(network, found, over[:60])
    except TopologyError as error:
        if network.names:
            raise MappingError(str(error)) from None
        if len(found) != network.nodes:
            raise MappingError(f"{error}; --names says what they are called") from None
        names_of_all = f"names:{','.join(compress(found))}"
        counts = hosts is not None and read_slots(str(hosts))
        over = f"{over}@{names_of_all}" if counts else names_of_all
    return f"{over}@{spec}"


def allocate(
    topology: Topology, free: Bools, ranks: int, policy: str, rng: np.random.Generator
) -> Ints:
    """Return the node of each rank of a job, on free nodes with slots.

    The policy is a name in `POLICIES`; hyphens are as good as blanks.
    """
    word = policy.replace("-", " ").replace("_", " ")
    if word not in POLICIES:
        raise MappingError(choice("policy", policy, POLICIES))
    order = POLICIES[word](topology, np.flatnonzero(free & (topology.slots > 0)), ranks, rng)
    room = np.cumsum(topology.slots[order])
    if not len(room) or room[-1] < ranks:
        raise MappingError(
            f"policy {word}: {ranks} ranks on {len(order)} free nodes of {topology.spec} with "
            f"{int(room[-1]) if len(room) else 0} slots: expected more"
        )
    chosen = np.sort(order[: int(np.searchsorted(room, ranks)) + 1])
    return np.repeat(chosen, topology.slots[chosen])[:ranks]


def _contiguous(topology: Topology, free: Ints, ranks: int, _: np.random.Generator) -> Ints:
    """First nodes in a row that are enough."""
    for run in np.split(free, np.flatnonzero(np.diff(free) > 1) + 1):
        if topology.slots[run].sum() >= ranks:
            return run
    raise MappingError(
        f"policy contiguous: no free nodes in a row of {topology.spec} have {ranks} slots: "
        "expected fewer ranks, or random nodes"
    )


def _random_nodes(_: Topology, free: Ints, __: int, rng: np.random.Generator) -> Ints:
    return rng.permutation(free)


def _random_switches(topology: Topology, free: Ints, _: int, rng: np.random.Generator) -> Ints:
    switch = switch_of(topology)[free]
    place = rng.permutation(int(switch.max(initial=-1)) + 1)
    return free[np.lexsort((free, place[switch]))]


def switch_of(topology: Topology) -> Ints:
    """Return the number of the switch that each node hangs on, by its first link."""
    first = np.full(topology.nodes, -1, dtype=np.int64)
    up = np.flatnonzero(
        (topology.link_from < topology.nodes) & (topology.link_to >= topology.nodes)
    )
    first[topology.link_from[up[::-1]]] = topology.link_to[up[::-1]] - topology.nodes
    if (first < 0).any():
        raise MappingError(
            f"policy random switches: nodes of {topology.spec} hang on no switch: expected "
            "contiguous or random nodes"
        )
    return first


Policy = Callable[[Topology, Ints, int, np.random.Generator], Ints]
POLICIES: Mapping[str, Policy] = {
    "contiguous": _contiguous,
    "random nodes": _random_nodes,
    "random switches": _random_switches,
}
