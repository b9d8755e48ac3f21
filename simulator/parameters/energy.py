"""Energy of a run: what links and nodes draw, by the linear model that energy studies use.

A link costs joules for every byte and watts as long as the run lasts; a node draws one power while
it computes and another while it does not. See docs/explanations/network-and-routing.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from hopmap.arrays import Floats, Ints
from hopmap.topologies import Topology

LINK = {"per_byte": "J/byte", "static": "W"}  # unit of each quantity
NODE = {"compute": "W", "idle": "W"}
MEANS = {
    "per_byte": "energy of every byte on a link",
    "static": "power of a link as long as the run lasts",
    "compute": "power of a node while it computes",
    "idle": "power of a node while it does not compute",
}


class Energy(NamedTuple):
    """Joules of a run."""

    # transfer, static: by kind of link, what its bytes cost, and what it draws while the run lasts
    transfer: Mapping[str, float]
    static: Mapping[str, float]
    # compute, idle: what nodes draw while they compute, and while they do not
    compute: float
    idle: float
    delay_product: float  # total energy times makespan, in joule-seconds

    @property
    def total(self) -> float:
        """All of it."""
        links = sum(self.transfer.values()) + sum(self.static.values())
        return links + self.compute + self.idle

    def to_dict(self) -> dict[str, Any]:
        """Return what ``simulate --json`` prints."""
        return {
            "total": self.total,
            "delay_product": self.delay_product,
            "links": {
                kind: {"transfer": self.transfer[kind], "static": self.static[kind]}
                for kind in self.transfer
            },
            "nodes": {"compute": self.compute, "idle": self.idle},
        }


def energy_of(
    figures: Mapping[str, float],
    topology: Topology,
    node_of: Ints,
    link_bytes: Ints,
    compute: Floats,
    makespan: float,
) -> Energy:
    """Add up the energy of a run.

    Figures are `Parameters.energy`: "link.per_byte", "link.static" of all links,
    "link.KIND.per_byte", ... of one kind, which wins; "node.compute", "node.idle". What is missing
    is 0. `compute` is seconds that each rank computes, shape (ranks,): of n ranks on a node, each
    stands for an n-th of it.
    """

    def figure(kind: str, quantity: str) -> float:
        return figures.get(f"link.{kind}.{quantity}", figures.get(f"link.{quantity}", 0.0))

    kinds = [kind.name for kind in topology.kinds]
    links = np.bincount(topology.link_kind, minlength=len(kinds))
    moved = [int(link_bytes[topology.link_kind == k].sum()) for k in range(len(kinds))]
    ranks = np.bincount(node_of, minlength=topology.nodes)
    computing = float((compute / ranks[node_of]).sum())
    parts = Energy(
        transfer={
            kind: figure(kind, "per_byte") * total for kind, total in zip(kinds, moved, strict=True)
        },
        static={
            kind: figure(kind, "static") * int(number) * makespan
            for kind, number in zip(kinds, links, strict=True)
        },
        compute=figures.get("node.compute", 0.0) * computing,
        idle=figures.get("node.idle", 0.0) * (topology.nodes * makespan - computing),
        delay_product=0.0,
    )
    return parts._replace(delay_product=parts.total * makespan)
