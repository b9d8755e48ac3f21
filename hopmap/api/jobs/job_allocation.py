"""Where jobs sit: given nodes first, then those that policies choose of what is free."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hopmap.api.job import Background, Job
from hopmap.api.machine import nodes_of_ranks
from hopmap.arrays import Bools, Ints
from hopmap.launchers.node_names import expand, read_hosts
from hopmap.topologies import Mapping, MappingError, Topology, TopologyError, did_you_mean
from hopmap.topologies.allocation import POLICIES, allocated
from hopmap.topologies.readers.hosts import nodes_of


def allocate_jobs(
    jobs: Sequence[Job], names: Sequence[str], ranks: Sequence[int], network: Topology
) -> list[Mapping]:
    """Return the node of every rank of every job."""
    found = {k: _given(job, ranks[k], network) for k, job in enumerate(jobs) if not job.policy}
    for k, job in enumerate(jobs):
        if job.policy:
            rng = np.random.default_rng(job.seed)
            free = free_nodes([*found.values()], network)
            try:
                found[k] = allocated(network, free, ranks[k], job.policy, rng)
            except MappingError as error:
                raise MappingError(f"{names[k]}: {error}") from None
    nodes = [found[k] for k in range(len(jobs))]
    expect_room(nodes, names, network)
    return nodes


def _given(job: Job, ranks: int, network: Topology) -> Mapping:
    if job.hosts or job.nodelist:
        if job.mapping is not None:
            raise MappingError(f"{job.mapping}: expected a mapping or hosts, not both")
        order = nodes_named(job, network)
        slots = np.repeat(order, network.slots[order])
        if len(slots) < ranks:
            raise MappingError(
                f"{job.hosts or job.nodelist}: {len(order)} nodes with {len(slots)} slots: "
                f"expected {ranks} for the ranks"
            )
        return slots[:ranks]
    assert job.mapping is not None
    if isinstance(job.mapping, str) and not Path(job.mapping).exists():
        raise MappingError(
            f"{job.mapping}: no such file or policy{did_you_mean(job.mapping, POLICIES)}: expected "
            f"a mapping's file, or one of {', '.join(POLICIES)}"
        )
    return nodes_of_ranks(job.mapping, network, ranks)


def nodes_named(asked: Job | Background, network: Topology) -> Ints:
    """Return the nodes of a list of hosts, in its order."""
    if asked.hosts and asked.nodelist:
        raise MappingError(f"node list {asked.nodelist}: expected it or {asked.hosts}, not both")
    hosts = read_hosts(asked.hosts) if asked.hosts else expand(asked.nodelist or "")
    try:
        numbers = nodes_of(network, hosts, str(asked.hosts or f"node list {asked.nodelist}"))
    except TopologyError as error:
        raise MappingError(str(error)) from None
    return np.array(numbers, dtype=np.int64)


def free_nodes(taken: Sequence[Mapping], network: Topology) -> Bools:
    """Which nodes have slots and no rank."""
    free: Bools = network.slots > 0
    for nodes in taken:
        free[nodes] = False
    return free


def expect_room(nodes: Sequence[Mapping], names: Sequence[str], network: Topology) -> None:
    """Raise `MappingError` where jobs have more ranks on a node than it has slots."""
    used = np.bincount(np.concatenate(nodes), minlength=network.nodes)
    over = np.flatnonzero(used > network.slots)
    if not over.size:
        return
    node = int(over[0])
    sitting = [
        f"{int((each == node).sum())} of {name}"
        for each, name in zip(nodes, names, strict=True)
        if (each == node).any()
    ]
    raise MappingError(
        f"ranks on node {node}: {' and '.join(sitting)}: expected {network.slots[node]} at "
        "most, jobs on slots of their own"
    )
