"""Networks of switches with computed routes: fat trees, clusters behind one switch, dragonflies.

Vertices are the nodes, then the switches; a route runs node, switch, ..., switch, node, and its
hops are the links on it. Nothing but the links is stored.

Dragonfly+: groups of leaf and spine switches. Nodes are behind leaves, every leaf has a link to
every spine of its group, and only spines have global links, to spines of all other groups. Routes
are minimal: at most one global link; which spine is taken, and which of several global links, is
decided by the target's number, as by tables of a destination (InfiniBand).

Sources: Oehring et al., On generalized fat trees (IPPS 1995); Petrini and Vanneschi, k-ary n-trees
(IPPS 1997); Zahavi, Fat-tree routing and node ordering providing contention free traffic for MPI
global collectives (J. Parallel Distrib. Comput. 72, 2012): parallel-ports trees and d-mod-k; Kim,
Dally, Scott and Abts, Technology-driven, highly-scalable dragonfly topology (ISCA 2008); Camarero,
Vallejo and Beivide, Topological characterization of Hamming and dragonfly networks (ACM TACO 11,
2014): the palm tree arrangement; Shpiner, Haramaty, Eliad, Zdornov, Gafni and Zahavi, Dragonfly+:
low cost topology for scaling datacenters (HiPINEB 2017); Turisini, Amati and Cestari, LEONARDO: a
pan-European pre-exascale supercomputer (JLSRF 8, 2024): cells of 18 leaves and 18 spines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from hopmap.arrays import Ints
from hopmap.topologies.topology import (
    MOST_LEVELS,
    Topology,
    TopologyError,
    by_x,
    check_size,
    check_slots,
    times,
    whole,
)

from .grid import DEFAULT_LINK

ROUTINGS = ("dmodk", "ecmp")


def fat_tree(
    children: Sequence[int],
    parents: Sequence[int] | None = None,
    parallel: Sequence[int] | None = None,
    *,
    slots: int = 1,
    routing: str = "dmodk",
    seed: int = 0,
) -> Topology:
    """Fat tree of any number of levels (parallel-ports generalized), routed by d-mod-k or ECMP.

    - `children` of each switch, level by level from the nodes upwards: m_1, ..., m_h.
    - `parents` of each node, of each switch of level 1, ...: w_1, ..., w_h. When left out, 1 and
      then as many as a switch has children, which is full bisection: m = (k, ..., k) is the k-ary
      n-tree.
    - `parallel` links from each node, switch of level 1, ... to each parent; one when left out.
    - `routing`: the way up by the target's number (dmodk, balanced on shifts), or by a hash of
      `seed`, source and target (ecmp).

    A vertex of level l has digits x_h ... x_(l+1) (below m) and y_l ... y_1 (below w), most
    significant first; the neighbours one level up agree in all digits but the (l+1)-th.
    """
    from hopmap.topologies.switch_kernels import FatTreeRouter

    m = whole("fattree: children", *children)
    if len(m) > MOST_LEVELS:
        raise TopologyError(f"fattree: {len(m)} levels: expected at most {MOST_LEVELS}")
    w = [1, *m[:-1]] if parents is None else whole("fattree: parents", *parents)
    p = [1] * len(m) if parallel is None else whole("fattree: parallel links", *parallel)
    for name, numbers in (("children", m), ("parents", w), ("parallel links", p)):
        if len(numbers) != len(m) or not m or any(x < 1 for x in numbers):
            raise TopologyError(
                f"fattree: {name} {by_x(numbers)}: expected one whole number of at least 1 for "
                f"each of the {len(m)} levels"
            )
    if routing not in ROUTINGS:
        raise TopologyError(f"fattree: routing {routing!r}: expected {' or '.join(ROUTINGS)}")
    if not 0 <= seed < 2**32 or (seed and routing != "ecmp"):
        raise TopologyError(f"fattree: seed {seed}: expected 0 to 2^32 - 1, with routing=ecmp")
    counts = [prod(w[:level]) * prod(m[level:]) for level in range(len(m) + 1)]
    ups = [counts[level] * w[level] * p[level] for level in range(len(m))]
    spec = f"fattree:{by_x(m)}"
    if p != [1] * len(m):
        spec += f":{by_x(w)}:{by_x(p)}"
    elif w != [1, *m[:-1]]:
        spec += f":{by_x(w)}"
    _check(spec, counts[0], 2 * sum(ups), slots)

    levels = np.zeros((len(m) + 1, 8), dtype=np.int64)
    ends: list[tuple[Ints, Ints]] = []
    vertex = link = 0
    for level, count in enumerate(counts):
        copies, subtree = prod(w[:level]), prod(m[:level])
        levels[level] = (1, 1, 1, copies, subtree, vertex, link, link)
        if level < len(m):
            levels[level, :3] = m[level], w[level], p[level]
            levels[level, 7] = link + ups[level]
            above = vertex + count
            # Links up from a level, then down to it, between switches of one copy.
            for first, number, own, then, others in (
                (vertex, count, m[level], above, w[level]),
                (above, counts[level + 1], w[level], vertex, m[level]),
            ):
                begin = np.arange(number)
                same = begin // (copies * own) * copies * others + begin % copies
                end = same[:, None] + np.arange(others) * copies
                both = (first + np.repeat(begin, others), then + end.ravel())
                ends.append((np.repeat(both[0], p[level]), np.repeat(both[1], p[level])))
            vertex += count
            link += 2 * ups[level]
    link_from, link_to = (np.concatenate(part).astype(np.int32) for part in zip(*ends, strict=True))
    kinds = tuple(replace(DEFAULT_LINK, name=f"level{level + 1}") for level in range(len(m)))
    options = f",routing=ecmp{f',seed={seed}' if seed else ''}" if routing == "ecmp" else ""
    return Topology(
        spec=spec + times(slots) + options,
        slots=np.full(counts[0], slots, dtype=np.int64),
        link_from=link_from,
        link_to=link_to,
        link_kind=np.repeat(np.arange(len(m), dtype=np.uint8), 2 * np.array(ups)),
        kinds=kinds,
        router=FatTreeRouter(levels, routing == "ecmp", seed, link_to),
        switches=sum(counts[1:]),
    )


def dragonfly(
    hosts: int, routers: int, ports: int, groups: int | None = None, *, slots: int = 1
) -> Topology:
    """Dragonfly of fully connected groups, palm tree arrangement, one global link a route.

    `hosts` are nodes a router (p), `routers` routers a group (a), `ports` global links a router
    (h). There are a h + 1 `groups` when left out, which is one link between any two. With fewer
    groups floor(a h / (groups - 1)) links join any two, and the ports that are left stay unused.

    Global port q = 0 .. a h - 1 of group G belongs to its router floor(q / h) and leads to group
    G - 1 - (q mod (groups - 1)), where it is port q' with q + q' = groups - 2 modulo (groups - 1),
    in the same round. Routes are local-global-local: one global link, where several lead to the
    group one with the fewest local hops, of these the next from round (target router mod rounds).
    Two global links would be shorter for some pairs, 2.8 % of 2x4x2.
    """
    from hopmap.topologies.switch_kernels import DragonflyRouter

    if groups is None:
        groups = routers * ports + 1
    hosts, routers, ports, groups = whole("dragonfly: sizes", hosts, routers, ports, groups)
    if min(hosts, routers, groups) < 1 or ports < 0:
        raise TopologyError(
            f"dragonfly: {hosts}x{routers}x{ports}x{groups}: expected whole numbers of at least 1"
        )
    if groups > routers * ports + 1:
        raise TopologyError(
            f"dragonfly: {groups} groups: expected at most {routers * ports + 1}, which "
            f"{routers} routers of {ports} global links can join"
        )
    switches = routers * groups
    nodes = hosts * switches
    rounds = routers * ports // (groups - 1) if groups > 1 else 0
    used = rounds * (groups - 1)
    full = "" if groups == routers * ports + 1 else f"x{groups}"
    spec = f"dragonfly:{hosts}x{routers}x{ports}{full}"
    _check(spec, nodes, 2 * nodes + switches * (routers - 1) + groups * used, slots)

    node = np.arange(nodes, dtype=np.int64)
    router = np.arange(switches, dtype=np.int64)
    other = np.arange(routers - 1)[None, :]
    other = other + (other >= (router % routers)[:, None])
    group, port = (x.ravel() for x in np.indices((groups, used)))
    step = port % max(groups - 1, 1)
    peer = (group - step - 1) % groups * routers + (port - 2 * step + groups - 2) // max(ports, 1)
    switch = nodes + node // hosts
    switch_of_local = nodes + np.repeat(router, routers - 1)
    local_target = nodes + (router[:, None] // routers * routers + other).ravel()
    leaves_by = nodes + group * routers + port // max(ports, 1)
    link_from = np.concatenate((node, switch, switch_of_local, leaves_by)).astype(np.int32)
    link_to = np.concatenate((switch, node, local_target, nodes + peer)).astype(np.int32)
    return Topology(
        spec=spec + times(slots),
        slots=np.full(nodes, slots, dtype=np.int64),
        link_from=link_from,
        link_to=link_to,
        link_kind=np.repeat(
            np.arange(3, dtype=np.uint8), (2 * nodes, switches * (routers - 1), groups * used)
        ),
        kinds=KINDS,
        router=DragonflyRouter(hosts, routers, ports, groups, rounds, link_to),
        switches=switches,
    )


def cluster(slots: Sequence[int]) -> Topology:
    """Nodes of any numbers of slots behind one switch."""
    sizes = np.array(whole("cluster: slots", *slots), dtype=np.int64)
    if not len(sizes) or sizes.min() < 1:
        raise TopologyError("cluster: expected nodes of at least 1 slot, like 33*32 or 17*9+9*8")
    check_size("cluster", nodes=len(sizes), links=2 * len(sizes), slots=int(sizes.sum()))
    tree = fat_tree([len(sizes)])
    runs = np.flatnonzero(np.diff(sizes, prepend=-1))
    lengths = np.diff(runs, append=len(sizes))
    parts = [
        f"{count}{times(size)}"
        for count, size in zip(lengths.tolist(), sizes[runs].tolist(), strict=True)
    ]
    spec = "cluster:" + "+".join(parts)
    return replace(tree, spec=spec, slots=sizes, kinds=(DEFAULT_LINK,))


def _check(spec: str, nodes: int, links: int, slots: int) -> None:
    check_slots(spec, slots)
    check_size(spec, nodes=nodes, links=links, slots=nodes * slots)


KINDS = tuple(replace(DEFAULT_LINK, name=name) for name in ("node", "local", "global"))


def dragonfly_plus(
    hosts: int, leaves: int, spines: int, groups: int, ports: int | None = None, *, slots: int = 1
) -> Topology:
    """Dragonfly+: groups of leaf and spine switches, all to all between groups, minimal routing.

    `hosts` are nodes a leaf, `leaves` and `spines` switches a group, and `ports` global links a
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
