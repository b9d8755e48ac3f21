"""Distance and minimal routes through a Dragonfly+; see `families/dragonfly_plus.py`.

Plain functions, compiled where `routing.distance` and `routing.next_link` are called.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class DragonflyPlusRouter(NamedTuple):
    """All that a kernel needs to know of a Dragonfly+.

    Attributes
    ----------
    leaf : ndarray(int32, shape=(nodes,))
        Of each node.
    group : ndarray(int32, shape=(leaves,))
        Of each leaf.
    spines, groups : int
        Spines a group, groups.
    ports, rounds : int
        Global links a spine, global links between any two groups.
    link_to : ndarray(int32, shape=(links,))
        Vertex at the end of each link.
    """

    leaf: NDArray[np.int32]
    group: NDArray[np.int32]
    spines: int
    groups: int
    ports: int
    rounds: int
    link_to: NDArray[np.int32]


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
