"""Compiled distance and routing: the only place where hops are counted or routes walked.

Kernels take a `Router`, a named tuple of plain arrays and numbers. Every family of topologies has a
router type of its own, and numba compiles a kernel once for each type that it meets, so that one
`distance` serves all of them and none pays for another. No n x n table is kept except for arbitrary
graphs and listed routes, which are limited in size; mappers keep tables of their own. Vertices are
the nodes, then the switches. At the end the routes that meet a link that is down, and the shortest
ways round, for `failures.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numba import types
from numba.extending import overload

from hopmap.arrays import Bools, Ints, Ints32
from hopmap.compilation import NO_WRAPPERS, njit

from .box_kernels import BoxRouter, FoldedRouter, box_distance, box_link
from .graph_kernels import DetourRouter, GraphRouter, detour, graph_distance, graph_link
from .switch_kernels import (
    DragonflyPlusRouter,
    DragonflyRouter,
    FatTreeRouter,
    dragonfly_distance,
    dragonfly_link,
    fattree_distance,
    fattree_link,
    plus_distance,
    plus_link,
)
from .table_kernels import (
    PartRouter,
    RouteRouter,
    part_distance,
    part_link,
    route_distance,
    route_link,
)
from .tree_kernels import TreeRouter, tree_distance, tree_hops, tree_link

Router: TypeAlias = (
    BoxRouter
    | FoldedRouter
    | FatTreeRouter
    | DragonflyRouter
    | DragonflyPlusRouter
    | TreeRouter
    | GraphRouter
    | RouteRouter
    | PartRouter
    | DetourRouter
)


def detour_distance(router: DetourRouter, source: int, target: int) -> int:
    """Links of the detour, or what the network's own router says."""
    place = detour(router, source, target)
    if place < 0:
        return distance(router.base, source, target)
    return int(router.begins[place + 1] - router.begins[place])


def detour_link(router: DetourRouter, here: int, target: int, source: int) -> int:
    """Link that leaves `here` on the detour, which comes to a vertex once, or the router's own."""
    place = detour(router, source, target)
    if place < 0:
        return int(router.number[next_link(router.base, here, target, source)])
    hop = router.begins[place]
    while router.link_from[router.links[hop]] != here:
        hop += 1
    return int(router.links[hop])


# The two functions of each family, written in Python and compiled into their callers.
ROUTING: dict[type, tuple[Callable[..., int], Callable[..., int]]] = {
    BoxRouter: (box_distance, box_link),
    FoldedRouter: (box_distance, box_link),
    FatTreeRouter: (fattree_distance, fattree_link),
    DragonflyRouter: (dragonfly_distance, dragonfly_link),
    DragonflyPlusRouter: (plus_distance, plus_link),
    TreeRouter: (tree_distance, tree_link),
    GraphRouter: (graph_distance, graph_link),
    RouteRouter: (route_distance, route_link),
    PartRouter: (part_distance, part_link),
    DetourRouter: (detour_distance, detour_link),
}
# Where the distance of two nodes is a cost and not the number of links between them.
HOPS: dict[type, Callable[..., int]] = {TreeRouter: tree_hops}


def distance(router: Router, source: int, target: int) -> int:
    """Hops of the route from source to target, both nodes, or its cost; O(dimensions or levels).

    Only hierarchies have a cost of their own (`hierarchy.py`).
    """
    return ROUTING[type(router)][0](router, source, target)


def hops(router: Router, source: int, target: int) -> int:
    """Links on the route from source to target, both nodes; O(dimensions) or O(levels)."""
    return _hops_of(type(router))(router, source, target)


def _hops_of(family: type) -> Callable[..., int]:
    return HOPS.get(family, ROUTING[family][0])


def next_link(router: Router, here: int, target: int, source: int) -> int:
    """Link that leaves `here`, a node or a switch, on the route from source to target.

    Source and target are nodes, and `here` is not the target. Walking a route means calling this
    again at the end of the link. Only a fat tree's ECMP looks at the source.
    """
    return ROUTING[type(router)][1](router, here, target, source)


@overload(distance, jit_options=NO_WRAPPERS | {"error_model": "numpy"}, strict=False)
def _distance(router: types.NamedTuple, source: types.Integer, target: types.Integer) -> Any:
    return ROUTING[router.instance_class][0]


@overload(hops, jit_options=NO_WRAPPERS | {"error_model": "numpy"}, strict=False)
def _hops(router: types.NamedTuple, source: types.Integer, target: types.Integer) -> Any:
    return _hops_of(router.instance_class)


@overload(next_link, jit_options=NO_WRAPPERS | {"error_model": "numpy"}, strict=False)
def _next_link(
    router: types.NamedTuple, here: types.Integer, target: types.Integer, source: types.Integer
) -> Any:
    return ROUTING[router.instance_class][1]


@njit
def distances(router: Router, source: Ints, target: Ints) -> Ints:
    """Distance of each pair."""
    far = np.empty(len(source), dtype=np.int64)
    for i in range(len(source)):
        far[i] = distance(router, source[i], target[i])
    return far


@njit
def route_lengths(router: Router, source: Ints, target: Ints) -> Ints:
    """Hops of each pair."""
    lengths = np.empty(len(source), dtype=np.int64)
    for i in range(len(source)):
        lengths[i] = hops(router, source[i], target[i])
    return lengths


@njit
def walk_routes(router: Router, source: Ints, target: Ints, indptr: Ints, links: Ints32) -> None:
    """Write the links of each pair's route to ``links[indptr[i]:indptr[i + 1]]``."""
    for i in range(len(source)):
        here, start, goal = source[i], source[i], target[i]
        for hop in range(indptr[i], indptr[i + 1]):
            link = next_link(router, here, goal, start)
            links[hop] = link
            here = int(router.link_to[link])


@njit
def add_loads(router: Router, source: Ints, target: Ints, weights: Ints, loads: Ints) -> None:
    """Add each pair's row of weights to the loads of every link on its route; nothing is stored."""
    for i in range(len(source)):
        here, start, goal = source[i], source[i], target[i]
        while here != goal:
            link = next_link(router, here, goal, start)
            for k in range(weights.shape[1]):
                loads[link, k] += weights[i, k]
            here = int(router.link_to[link])


@njit
def routes_met(router: Router, nodes: int, down: Bools) -> Ints:
    """Pairs, ``target * nodes + source``, whose route takes a link that is down; ascending."""
    found = np.empty(1024, dtype=np.int64)
    count = 0
    for target in range(nodes):
        for source in range(nodes):
            here, met = source, False
            while here != target and not met:
                link = next_link(router, here, target, source)
                met = down[link]
                here = int(router.link_to[link])
            if met:
                if count == len(found):
                    more = np.empty(2 * count, dtype=np.int64)
                    more[:count] = found
                    found = more
                found[count] = target * nodes + source
                count += 1
    return found[:count]


@njit
def ways_round(
    pairs: Ints,
    nodes: int,
    into: Ints,
    into_from: Ints32,
    out: Ints,
    out_link: Ints,
    link_to: Ints32,
    lengths: Ints,
    links: Ints32,
) -> None:
    """Find a shortest route of each pair, that to the lowest vertex first.

    A search from each target against the direction of the links, in O(vertices + links), then a
    walk from each source. `pairs` are ``target * nodes + source``, ascending. Links into vertex v
    begin at ``into_from[into[v]:into[v + 1]]``, those that leave it are
    ``out_link[out[v]:out[v + 1]]``, to ascending vertices. `lengths`, shape (pairs,), are filled
    with the links of each route, -1 where there is none, and `links` with the routes one after the
    other; it is empty to learn the lengths only.
    """
    vertices = len(into) - 1
    left = np.empty(vertices, dtype=np.int64)
    queue = np.empty(vertices, dtype=np.int64)
    now, written = -1, 0
    for pair in range(len(pairs)):
        target, source = pairs[pair] // nodes, pairs[pair] % nodes
        if target != now:
            now = target
            left[:] = -1
            left[target] = 0
            queue[0] = target
            head, tail = 0, 1
            while head < tail:
                there = queue[head]
                head += 1
                for place in range(into[there], into[there + 1]):
                    here = into_from[place]
                    if left[here] < 0:
                        left[here] = left[there] + 1
                        queue[tail] = here
                        tail += 1
        lengths[pair] = left[source]
        if len(links) == 0 or left[source] < 0:
            continue
        here = source
        while here != target:
            place = out[here]
            while left[link_to[out_link[place]]] != left[here] - 1:
                place += 1
            links[written] = out_link[place]
            written += 1
            here = link_to[out_link[place]]
