"""Distance and routes through switches, computed from a few numbers: fat trees and dragonflies.

Plain functions, compiled where `routing.distance` and `routing.next_link` are called.
`families/switched.py` numbers vertices and links as it is assumed here.
"""

from __future__ import annotations

from typing import NamedTuple

from hopmap.arrays import Ints, Ints32
from hopmap.compilation import njit

# Columns of FatTreeRouter.levels
CHILDREN, PARENTS, PARALLEL, COPIES, SUBTREE, VERTEX, UP, DOWN = range(8)


class FatTreeRouter(NamedTuple):
    """All that a kernel needs to know of a fat tree of h levels."""

    # shape (h + 1, 8): row l is about level l, 0 being the nodes. CHILDREN, PARENTS and PARALLEL
    # links join it to level l + 1; COPIES are its vertices that have the same nodes below, SUBTREE
    # the number of these nodes; VERTEX is its first vertex; UP and DOWN are the first links up and
    # back down.
    levels: Ints
    ecmp: bool  # ways up by hash instead of d-mod-k
    seed: int  # of the hash
    link_to: Ints32  # shape (links,): vertex at the end of each link


class DragonflyRouter(NamedTuple):
    """All that a kernel needs to know of a dragonfly."""

    hosts: int  # nodes a router
    routers: int  # of a group
    ports: int  # global links a router
    groups: int
    rounds: int  # global links between any two groups
    link_to: Ints32  # shape (links,): vertex at the end of each link


def fattree_distance(router: FatTreeRouter, source: int, target: int) -> int:
    """Hops up to the lowest level that both nodes lie below, and down again."""
    hops = 0
    level = 0
    while source != target:
        children = router.levels[level, CHILDREN]
        source //= children
        target //= children
        level += 1
        hops += 2
    return hops


def fattree_link(router: FatTreeRouter, here: int, target: int, source: int) -> int:
    """Up while the target is not below, then down; the way up decides the way down.

    D-mod-k takes port floor(target / COPIES) mod (PARENTS * PARALLEL) upwards, and back down the
    parallel link of the same port (Zahavi 2012). ECMP takes a hash of seed, source, target and
    level instead, so that a pair of nodes keeps to one route.
    """
    levels = router.levels
    level = 0
    while level + 1 < len(levels) and here >= levels[level + 1, VERTEX]:
        level += 1
    index = here - levels[level, VERTEX]
    down = index // levels[level, COPIES] == target // levels[level, SUBTREE]
    below = level - 1 if down else level
    parents = levels[below, PARENTS]
    parallel = levels[below, PARALLEL]
    if router.ecmp:
        # An integer hash in 32 bits (products stay below 2^63).
        x = router.seed
        for word in (source, target, below):
            x = (x ^ word) & 0xFFFFFFFF
            x = (((x >> 16) ^ x) * 0x45D9F3B) & 0xFFFFFFFF
            x = (((x >> 16) ^ x) * 0x45D9F3B) & 0xFFFFFFFF
            x = ((x >> 16) ^ x) + 0x9E3779B
        port = x % (parents * parallel)
    else:
        port = target // levels[below, COPIES] % (parents * parallel)
    if down:
        children = levels[below, CHILDREN]
        child = target // levels[below, SUBTREE] % children
        return int(levels[below, DOWN] + (index * children + child) * parallel + port // parents)
    return int(levels[below, UP] + (index * parents + port % parents) * parallel + port // parents)


def dragonfly_distance(router: DragonflyRouter, source: int, target: int) -> int:
    """Node link, local, global, local, node link; local ones only where they are needed."""
    here = source // router.hosts
    there = target // router.hosts
    if source == target:
        hops = 0
    elif here == there:
        hops = 2
    elif here // router.routers == there // router.routers:
        hops = 3
    else:
        hops = 2 + _gateway(router, here, there)[0]
    return hops


def dragonfly_link(router: DragonflyRouter, here: int, target: int, source: int) -> int:
    """Local to the gateway, global, local to the target's router (minimal, Kim et al. 2008)."""
    switches = router.routers * router.groups
    nodes = router.hosts * switches
    goal = target // router.hosts
    switch = here - nodes
    group = switch // router.routers
    if here < nodes:
        link = here
    elif switch == goal:
        link = nodes + target
    else:
        port = -1
        if group != goal // router.routers:
            port = _gateway(router, switch, goal)[1]
            goal = group * router.routers + port // router.ports
        if goal == switch:
            first = 2 * nodes + switches * (router.routers - 1)
            link = first + group * router.rounds * (router.groups - 1) + port
        else:
            other = goal % router.routers
            if other > switch % router.routers:
                other -= 1
            link = 2 * nodes + switch * (router.routers - 1) + other
    return int(link)


@njit
def _gateway(router: DragonflyRouter, here: int, there: int) -> tuple[int, int]:
    """Hops between routers of two groups, and the port of the first group that is taken.

    Port q of group G leads to group G - 1 - (q mod (groups - 1)). Where several links join two
    groups, one with the fewest local hops is taken, beginning with round (there mod rounds).
    """
    groups, rounds = router.groups, router.rounds
    group, goal = here // router.routers, there // router.routers
    step = (group - goal - 1) % groups
    best = 4
    port = -1
    for i in range(rounds):
        first = (there + i) % rounds * (groups - 1)
        leaves = group * router.routers + (first + step) // router.ports
        lands = goal * router.routers + (first + groups - 2 - step) // router.ports
        hops = 1 + int(leaves != here) + int(lands != there)
        if hops < best:
            best = hops
            port = first + step
    return best, port


class DragonflyPlusRouter(NamedTuple):
    """All that a kernel needs to know of a Dragonfly+."""

    leaf: Ints32  # shape (nodes,)
    group: Ints32  # shape (leaves,)
    spines: int  # of a group
    groups: int
    ports: int  # global links a spine
    rounds: int  # global links between any two groups
    link_to: Ints32  # shape (links,): vertex at the end of each link


def plus_distance(router: DragonflyPlusRouter, source: int, target: int) -> int:
    """Node link, up, global, down, node link; those that are needed."""
    here, there = router.leaf[source], router.leaf[target]
    if source == target:
        hops = 0
    elif here == there:
        hops = 2
    elif router.group[here] == router.group[there]:
        hops = 4
    else:
        hops = 5
    return hops


def plus_link(router: DragonflyPlusRouter, here: int, target: int, source: int) -> int:
    """Up to a spine that the target's number chooses, over if need be, and down.

    Global port q of group G belongs to spine floor(q / ports), and leads to group
    G - 1 - (q mod (groups - 1)), as in `dragonfly`.
    """
    nodes, leaves, spines = len(router.leaf), len(router.group), router.spines
    goal = int(router.leaf[target])
    home = int(router.group[goal])
    up = 2 * nodes
    down = up + leaves * spines
    if here < nodes:
        link = here
    elif here < nodes + leaves:
        leaf = here - nodes
        group = int(router.group[leaf])
        if leaf == goal:
            link = nodes + target
        elif group == home:
            link = up + leaf * spines + target % spines
        else:
            step = (group - home - 1) % router.groups
            port = target % router.rounds * (router.groups - 1) + step
            link = up + leaf * spines + port // router.ports
    else:
        spine = here - nodes - leaves
        group = spine // spines
        if group == home:
            link = down + goal * spines + spine % spines
        else:
            step = (group - home - 1) % router.groups
            port = target % router.rounds * (router.groups - 1) + step
            first = down + leaves * spines
            link = first + group * router.rounds * (router.groups - 1) + port
    return int(link)
