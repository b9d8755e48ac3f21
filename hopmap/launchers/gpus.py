"""Nodes that are the GPUs of hosts, called HOST-gpuN, in files that name hosts alone.

A file says the hosts of the ranks, and in a comment their GPUs, so that it can be read back. Most
programs take the GPU of their number on the host, which is in order of the ranks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hopmap.arrays import Ints, equals_before
from hopmap.topologies import MappingError

from .node_names import GPU, host_of

KEY = "gpus"  # of the comment with the GPU of rank 0, 1, ...


@dataclass(frozen=True)
class Merged:
    """A mapping on hosts, in place of their GPUs."""

    node_of: Ints  # the first GPU of each rank's host
    names: list[str]  # of all nodes; the first GPU is called like its host
    slots: Ints  # of all nodes; the first GPU has all slots of its host
    gpus: list[str]  # of each rank

    @property
    def in_order(self) -> bool:
        """Whether ranks of a host are on its GPUs 0, 1, ... in order."""
        return list(map(int, self.gpus)) == list(equals_before(self.node_of))

    @property
    def note(self) -> str:
        """What becomes of the GPUs."""
        if self.in_order:
            return "nodes are GPUs: the file names their hosts; local rank K is on GPU K"
        return (
            "nodes are GPUs: the file names their hosts, and not every local rank K is on GPU K: "
            "let the program take the GPU of its rank, or use torchrun"
        )


def first_of_hosts(names: Sequence[str]) -> dict[str, int]:
    """Return the first node of every host."""
    first: dict[str, int] = {}
    for node, name in enumerate(names):
        first.setdefault(host_of(name), node)
    return first


def merge(node_of: Ints, names: Sequence[str], slots: Ints) -> Merged | None:
    """Return a mapping on hosts, None unless all ranks are on GPUs."""
    found = [GPU.fullmatch(names[node]) for node in node_of]
    gpus = [gpu[2] for gpu in found if gpu]
    if len(gpus) < len(found):
        return None
    first = first_of_hosts(names)
    owner = np.array([first[host_of(name)] for name in names], dtype=np.int64)
    summed = np.zeros_like(slots)
    np.add.at(summed, owner, slots)
    merged = list(names)
    for host, node in first.items():
        merged[node] = host
    return Merged(owner[node_of], merged, summed, gpus)


def names_of_ranks(
    node_of: Mapping[int, int], nodes: Mapping[str, int], said: str, file: str
) -> dict[int, str]:
    """Return the name of each rank's GPU as the comment of a file says it."""
    gpus = said.split(",")
    if sorted(node_of) != [*range(len(gpus))]:
        raise MappingError(
            f"{file}: {KEY}: {len(gpus)} of them: expected one for each of {len(node_of)} ranks"
        )
    hosts = {node: host_of(name) for name, node in nodes.items()}
    return {rank: f"{hosts[node]}-gpu{gpus[rank]}" for rank, node in node_of.items()}
