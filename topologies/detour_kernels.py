"""The router of a network in which some pairs of nodes take other routes; see `failures.py`.

The routes of these pairs are listed, by source and then by target; all others are the network's
own. Distance and links are in `routing.py`, since they ask the network's own router.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.compilation import njit


class DetourRouter(NamedTuple):
    """Another router, and the routes that are not its own.

    Attributes
    ----------
    base : Router
        Of all links.
    number : ndarray(int32, shape=(links of base,))
        What each link of the base is called here; -1 where it is none any more.
    starts : ndarray(int64, shape=(nodes + 1,))
        Detours from node s are ``starts[s]:starts[s + 1]``.
    targets : ndarray(int32, shape=(detours,))
        Where they go, ascending for each source.
    begins : ndarray(int64, shape=(detours + 1,))
        Detour d is ``links[begins[d]:begins[d + 1]]``.
    links : ndarray(int32)
    link_from, link_to : ndarray(int32, shape=(links,))
        Vertices at the ends of each link.
    """

    base: Any
    number: NDArray[np.int32]
    starts: NDArray[np.int64]
    targets: NDArray[np.int32]
    begins: NDArray[np.int64]
    links: NDArray[np.int32]
    link_from: NDArray[np.int32]
    link_to: NDArray[np.int32]


@njit
def detour(router: DetourRouter, source: int, target: int) -> int:
    """Return the number of the detour of a pair, -1 where it has none; O(log detours)."""
    low, high = router.starts[source], router.starts[source + 1]
    end = high
    while low < high:
        middle = (low + high) // 2
        if router.targets[middle] < target:
            low = middle + 1
        else:
            high = middle
    if low < end and router.targets[low] == target:
        return int(low)
    return -1
