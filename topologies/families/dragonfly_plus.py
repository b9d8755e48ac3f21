"""Dragonfly+: groups of leaf and spine switches, spines of all groups joined to each other.

Nodes are behind leaves, every leaf has a link to every spine of its group, and only spines have
global links. Routes are minimal: at most one global link; which spine is taken, and which of
several global links, is decided by the target's number, as by tables of a destination (InfiniBand).

Sources: Shpiner, Haramaty, Eliad, Zdornov, Gafni and Zahavi, Dragonfly+: low cost topology for
scaling datacenters (HiPINEB 2017); Turisini, Amati and Cestari, LEONARDO: a pan-European
pre-exascale supercomputer (JLSRF 8, 2024): cells of 18 leaves and 18 spines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hopmap.topologies.topology import (
    Topology,
    TopologyError,
    by_x,
    check_size,
    check_slots,
    times,
    whole,
)

from .grid import DEFAULT_LINK

KINDS = tuple(replace(DEFAULT_LINK, name=name) for name in ("node", "local", "global"))


def dragonfly_plus(
    hosts: int, leaves: int, spines: int, groups: int, ports: int | None = None, *, slots: int = 1
) -> Topology:
    """Dragonfly+: groups of leaf and spine switches, all to all between groups, minimal routing.

    `hosts` are nodes a leaf, `leaves` and `spines` those of a group, and `ports` global links a
    spine: one to every other group when left out. With others,
    floor(spines ports / (groups - 1)) links join any two groups.
    """
    numbers = whole("dragonfly+: sizes", hosts, leaves, spines, groups)
    text = by_x(numbers) + ("" if ports is None else f"x{ports}")
    if min(numbers) < 1:
        raise TopologyError(f"dragonfly+: {text}: expected whole numbers of at least 1")
    check_slots("dragonfly+", slots)
    nodes = hosts * leaves * groups
    check_size(f"dragonfly+: {text}", nodes=nodes, links=2 * nodes, slots=nodes * slots)
    leaf = np.repeat(np.arange(leaves * groups), hosts)
    group = np.repeat(np.arange(groups), leaves)
    spec = f"dragonfly+:{text}{times(slots)}"
    return from_leaves(leaf, group, spines, ports, slots=slots, spec=spec)


def from_leaves(
    leaf: Sequence[int] | np.ndarray,
    group: Sequence[int] | np.ndarray,
    spines: int,
    ports: int | None = None,
    *,
    slots: int = 1,
    spec: str,
) -> Topology:
    """Dragonfly+ of groups and leaves of any sizes; see `dragonfly_plus`.

    `leaf` is that of each node, `group` that of each leaf, from 0 and rising. Messages begin with
    the spec.
    """
    from hopmap.topologies.switch_kernels import DragonflyPlusRouter

    leaf_of, group_of = np.asarray(leaf, dtype=np.int32), np.asarray(group, dtype=np.int32)
    nodes, leaves, groups = len(leaf_of), len(group_of), int(group_of.max()) + 1
    ports = max(groups - 1, 1) if ports is None else ports
    rounds = spines * ports // (groups - 1) if groups > 1 else 1
    if rounds < 1:
        raise TopologyError(
            f"{spec}: {spines} spines of {ports} global links: expected {groups - 1} links a group"
        )
    used = rounds * (groups - 1) if groups > 1 else 0
    links = 2 * nodes + 2 * leaves * spines + groups * used
    check_size(spec, nodes=nodes, links=links, slots=nodes * slots)
    node, switch = np.arange(nodes), nodes + leaf_of
    below = np.repeat(nodes + np.arange(leaves), spines)
    above = (nodes + leaves + group_of[:, None] * spines + np.arange(spines)).ravel()
    at, port = (x.ravel() for x in np.indices((groups, used)))
    step = port % max(groups - 1, 1)
    first = nodes + leaves
    leaves_by = first + at * spines + port // ports
    lands_on = first + (at - step - 1) % groups * spines + (port - 2 * step + groups - 2) // ports
    link_from = np.concatenate((node, switch, below, above, leaves_by)).astype(np.int32)
    link_to = np.concatenate((switch, node, above, below, lands_on)).astype(np.int32)
    kinds = np.repeat(np.arange(3, dtype=np.uint8), (2 * nodes, 2 * leaves * spines, groups * used))
    return Topology(
        spec=spec,
        slots=np.full(nodes, slots, dtype=np.int64),
        link_from=link_from,
        link_to=link_to,
        link_kind=kinds,
        kinds=KINDS if groups > 1 else KINDS[:2],
        router=DragonflyPlusRouter(leaf_of, group_of, spines, groups, ports, rounds, link_to),
        switches=leaves + groups * spines,
    )
