"""Distance and routes in a machine of nested subsystems, from its spans; see `hierarchy.py`.

Plain functions, compiled where `routing.distance`, `routing.hops` and `routing.next_link` are
called.
"""

from __future__ import annotations

from typing import NamedTuple

from hopmap.arrays import Ints, Ints32


class TreeRouter(NamedTuple):
    """All that a kernel needs to know of a hierarchy of k levels; level 0 are the nodes.

    All but the last have shape (k + 1,), an entry a level.
    """

    spans: Ints  # nodes below a vertex: 1, a_1, a_1 a_2, ...
    costs: Ints  # distance of two nodes whose lowest common subsystem is here: 0, d_1, d_2, ...
    first: Ints  # first vertex
    # up, down: first link from a vertex to the one above, and back; one each a vertex
    up: Ints
    down: Ints
    link_to: Ints32  # shape (links,): vertex at the end of each link


def tree_distance(router: TreeRouter, source: int, target: int) -> int:
    """Cost of the lowest level that holds both nodes, by two divisions a level."""
    spans = router.spans
    level = 0
    while source // spans[level] != target // spans[level]:
        level += 1
    return int(router.costs[level])


def tree_hops(router: TreeRouter, source: int, target: int) -> int:
    """Links up to the lowest common subsystem and down again."""
    spans = router.spans
    level = 0
    while source // spans[level] != target // spans[level]:
        level += 1
    return 2 * level


def tree_link(router: TreeRouter, here: int, target: int, source: int) -> int:
    """Up while the target is not below, then down."""
    spans, first = router.spans, router.first
    level = 0
    while level + 1 < len(first) and here >= first[level + 1]:
        level += 1
    index = here - first[level]
    if index == target // spans[level]:
        return int(router.down[level - 1] + target // spans[level - 1])
    return int(router.up[level] + index)
