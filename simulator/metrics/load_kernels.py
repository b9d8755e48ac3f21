"""Compiled loops of the static metrics."""

from __future__ import annotations

import numpy as np

from hopmap.arrays import Bools, Ints
from hopmap.compilation import njit
from hopmap.topologies.box_kernels import HAEC, BoxRouter
from hopmap.topologies.routing import Router, next_link


@njit
def pairs_over_link(router: Router, source: Ints, target: Ints, wanted: int) -> Bools:
    """Whether the route of each pair uses the link."""
    uses = np.zeros(len(source), dtype=np.bool_)
    for i in range(len(source)):
        here, start, goal = source[i], source[i], target[i]
        while here != goal:
            link = next_link(router, here, goal, start)
            if link == wanted:
                uses[i] = True
                break
            here = int(router.link_to[link])
    return uses


@njit
def maplib_walk(
    router: BoxRouter, rings: bool, source: Ints, target: Ints, indptr: Ints, keys: Ints, fill: bool
) -> None:
    """Walk the published tool's routes, rules 2 to 4 of `maplib_ienpc`.

    First with fill = False, which writes each pair's number of hops to ``indptr[i + 1]``; then,
    after summing up, with fill = True, which writes ``from * nodes + to`` of each hop to keys.
    A pair on one node takes one hop, (u, u).
    """
    nodes = len(router.coords)
    axes = len(router.dims)
    haec = router.family == HAEC
    here = np.empty(axes, dtype=np.int64)
    for i in range(len(source)):
        u, v = source[i], target[i]
        at = indptr[i]
        hops = 0
        away = 0
        for k in range(axes):
            here[k] = router.coords[u, k]
            away += abs(here[k] - int(router.coords[v, k]))
        node = u
        if away <= 1:
            if fill:
                keys[at] = u * nodes + v
            hops = 1
        elif haec and router.coords[u, 2] != router.coords[v, 2]:
            board = int(router.dims[0] * router.dims[1])
            step = 1 if router.coords[v, 2] > router.coords[u, 2] else -1
            place = v % board
            for z in range(here[2] + step, int(router.coords[v, 2]) + step, step):
                there = z * board + place
                if fill:
                    keys[at + hops] = node * nodes + there
                hops += 1
                node = there
        else:
            stride = 1
            for k in range(2 if haec else axes):
                ring = int(router.dims[k])
                b = int(router.coords[v, k])
                s = 1 if rings and abs(here[k] - b) <= ring // 2 else -1
                # Two loops, one after the other, as published: with s = -1 they stop wherever the
                # comparison fails, which need not be the target.
                for upwards in (True, False):
                    while (here[k] < b) if upwards else (here[k] > b):
                        moved = (here[k] + (s if upwards else -s)) % ring
                        there = node + (moved - here[k]) * stride
                        if fill:
                            keys[at + hops] = node * nodes + there
                        hops += 1
                        here[k] = moved
                        node = there
                stride *= ring
        if not fill:
            indptr[i + 1] = hops
