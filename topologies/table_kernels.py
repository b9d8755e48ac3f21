"""Distance and routes from a table of all routes; see `routed.py`.

Plain functions, compiled where `kernels.distance` and `kernels.next_link` are called.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class RouteRouter(NamedTuple):
    """All that a kernel needs to know of a network whose routes are listed.

    Attributes
    ----------
    nodes : int
        Number of nodes.
    starts : ndarray(int64, shape=(nodes * nodes + 1,))
        The route from node s to t is ``links[starts[s * nodes + t]:starts[s * nodes + t + 1]]``.
    links : ndarray(int32, shape=(total hops,))
        Links of all routes.
    link_from, link_to : ndarray(int32, shape=(links,))
        Vertices at the ends of each link.
    """

    nodes: int
    starts: NDArray[np.int64]
    links: NDArray[np.int32]
    link_from: NDArray[np.int32]
    link_to: NDArray[np.int32]


def route_distance(router: RouteRouter, source: int, target: int) -> int:
    """Links on the route."""
    pair = source * router.nodes + target
    return int(router.starts[pair + 1] - router.starts[pair])


def route_link(router: RouteRouter, here: int, target: int, source: int) -> int:
    """Link of the route that leaves `here`; a route comes to a vertex once."""
    hop = router.starts[source * router.nodes + target]
    while router.link_from[router.links[hop]] != here:
        hop += 1
    return int(router.links[hop])
