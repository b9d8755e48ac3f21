"""Distance and routes in a machine of nested subsystems, from its spans; see `hierarchy.py`.

Plain functions, compiled where `routing.distance`, `routing.hops` and `routing.next_link` are
called.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class TreeRouter(NamedTuple):
    """All that a kernel needs to know of a hierarchy of k levels; level 0 are the nodes.

    Attributes
    ----------
    spans : ndarray(int64, shape=(k + 1,))
        Nodes below a vertex of each level: 1, a_1, a_1 a_2, ...
    costs : ndarray(int64, shape=(k + 1,))
        Distance of two nodes whose lowest common subsystem is of that level: 0, d_1, d_2, ...
    first : ndarray(int64, shape=(k + 1,))
        First vertex of each level.
    up, down : ndarray(int64, shape=(k + 1,))
        First link from a vertex of each level to the one above, and back; one each a vertex.
    link_to : ndarray(int32, shape=(links,))
        Vertex at the end of each link.
    """

    spans: NDArray[np.int64]
    costs: NDArray[np.int64]
    first: NDArray[np.int64]
    up: NDArray[np.int64]
    down: NDArray[np.int64]
    link_to: NDArray[np.int32]


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
