"""Which class of virtual channels a packet takes on each link, so that none waits in a ring.

With finite buffers a packet holds one buffer while it waits for the next. If those that hold and
those that are waited for form a cycle, nothing moves again; routes without such a cycle are free of
deadlock (Dally and Seitz, Deadlock-free message routing in multiprocessor interconnection networks,
IEEE Trans. Computers 36, 1987). A class is one or more virtual channels of every link.

- **dateline**, rings: class 0 up to the link that wraps around, class 1 behind it, again in every
  dimension (the same work). Dimension order needs nothing more, and meshes not even that.
- **global links crossed**, dragonflies: class 0 up to the global link, class 1 behind it, on
  minimal routes (Kim, Dally, Scott and Abts, ISCA 2008, section 4.1).
- **up and down**, fat trees and hierarchies: one class, since no route goes up again.
- **hops**, any other network whose routes have a cycle: a class for each hop (Merlin and
  Schweitzer, Deadlock avoidance in store-and-forward networks, IEEE Trans. Comm. 28, 1980).

`classes_by_place` says it of every place and destination for packets that may come by any way. It
knows no past, and so counts what is ahead: class 1 where no wrap-around, or no global link, is left
on the route from here.

`waiting_cycle` looks at the routes themselves, from any rule.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Bools, Ints, Ints32
from hopmap.compilation import njit

from .box_kernels import BoxRouter, FoldedRouter
from .next_hops import NextHops, has_groups
from .switch_kernels import DragonflyPlusRouter, DragonflyRouter, FatTreeRouter
from .topology import Topology
from .tree_kernels import TreeRouter

LAST_ONLY = 4  # nodes of a ring up to which a wrap-around link is the last one of a route


def channel_classes(topology: Topology, indptr: Ints, links: Ints) -> Ints:
    """Return the class of virtual channels of every hop of some routes, from 0 on, shape (hops,).

    Route r takes ``links[indptr[r]:indptr[r + 1]]``, in order, as of `Topology.routes`.
    """
    router, route = topology.router, np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    if isinstance(router, FatTreeRouter | TreeRouter):
        return np.zeros(len(links), dtype=np.int64)
    if isinstance(router, BoxRouter | FoldedRouter):
        dimension, wraps = _dimensions(topology, router)
        return _count_before(route * len(router.dims) + dimension[links], wraps[links])
    if isinstance(router, DragonflyRouter | DragonflyPlusRouter):
        crosses = np.array([kind.name == "global" for kind in topology.kinds])
        return _count_before(route, crosses[topology.link_kind[links]])
    alone = np.zeros(len(links), dtype=np.int64)
    if not len(waiting_cycle(indptr, links)):
        return alone
    return np.arange(len(links)) - indptr[route]


def class_count(topology: Topology) -> int:
    """Return how many classes the routes of a network have, all of them together.

    0 of a graph, where only the routes that are asked for can tell. On a ring of four, half-way
    routes at most wrap around, with their last link: nothing goes on behind it.
    """
    router = topology.router
    if isinstance(router, FatTreeRouter | TreeRouter):
        return 1
    if isinstance(router, DragonflyRouter | DragonflyPlusRouter):
        return 1 + any(kind.name == "global" for kind in topology.kinds)
    if isinstance(router, BoxRouter | FoldedRouter):
        return 1 + bool((router.dims[router.wraps] > LAST_ONLY).any())
    return 0


def classes_by_place(topology: Topology, tables: NextHops) -> NDArray[np.int16]:
    """Return the class of the next hop of the topology's route, shape (destinations, places).

    From 0 on; 0 at home.
    """
    router, links = topology.router, tables.links
    if isinstance(router, FatTreeRouter | TreeRouter):
        return np.zeros(tables.port.shape, dtype=np.int16)
    group, mark = np.zeros((2, len(links)), dtype=np.int64)
    if isinstance(router, BoxRouter | FoldedRouter):
        dimension, wraps = _dimensions(topology, router)
        group, mark = dimension[links], wraps[links].astype(np.int64)
    elif has_groups(tables):
        crosses = np.array([kind.name == "global" for kind in topology.kinds])
        mark = crosses[topology.link_kind[links]].astype(np.int64)
    else:
        alone = np.zeros(tables.port.shape, dtype=np.int16)
        if not len(waiting_cycle(*dependencies(tables, alone, 1))):
            return alone
        mark[:] = 1
    ahead = np.zeros(tables.port.shape, dtype=np.int16)
    _count_ahead(tables.port, tables.starts, tables.ends, group, mark, ahead)
    return np.where(tables.port >= 0, ahead.max(initial=0) - ahead, 0).astype(np.int16)


def dependencies(tables: NextHops, classes: NDArray[np.int16], most: int) -> tuple[Ints, Ints]:
    """Return every two hops in a row of routes by tables, as `waiting_cycle` takes them."""
    row, here = np.nonzero(tables.port >= 0)
    number = tables.starts[here] + tables.port[row, here]
    there = tables.ends[number]
    goes_on = tables.port[row, there] >= 0
    row, here, there, number = (each[goes_on] for each in (row, here, there, number))
    after = tables.starts[there] + tables.port[row, there]
    pairs = np.column_stack(
        (number * most + classes[row, here], after * most + classes[row, there])
    ).astype(np.int64)
    pairs = np.unique(pairs, axis=0)
    return 2 * np.arange(len(pairs) + 1), pairs.ravel()


@njit
def _count_ahead(
    port: NDArray[np.int16],
    starts: Ints32,
    ends: Ints32,
    group: Ints,
    mark: Ints,
    ahead: NDArray[np.int16],
) -> None:
    """Count the marks on what is left of routes, as far as links are of the group of the first."""
    for row in range(port.shape[0]):
        for place in range(port.shape[1]):
            here, first, marks = place, -1, 0
            while port[row, here] >= 0:
                number = starts[here] + port[row, here]
                if first < 0:
                    first = group[number]
                if group[number] != first:
                    break
                marks += mark[number]
                here = ends[number]
            ahead[row, place] = marks


def _dimensions(topology: Topology, router: BoxRouter | FoldedRouter) -> tuple[Ints, Bools]:
    """Dimension of every link of a box, and whether it wraps around."""
    step = router.coords[topology.link_to] - router.coords[topology.link_from]
    # of the HAEC Box' wireless links, which may change all three, only straight ones follow
    dimension = np.argmax(step != 0, axis=1)
    far = np.abs(step[np.arange(len(step)), dimension]) > 1
    return dimension.astype(np.int64), far & router.wraps[dimension]


def _count_before(group: Ints, mark: Bools) -> Ints:
    """Count the marks before each place within its group; groups are runs of equal numbers."""
    count: Ints = np.cumsum(mark) - mark
    first = np.concatenate(([True], group[1:] != group[:-1])) if len(group) else mark
    begin = np.maximum.accumulate(np.where(first, np.arange(len(group)), 0))
    return count - count[begin]


def waiting_cycle(indptr: Ints, channels: Ints) -> Ints:
    """Return channels of which each waits for the next, and the last for the first; none if none.

    Routes are like the routes of `channel_classes`, by channels: a link, or a link and its class.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, connected_components

    inner = np.ones(len(channels), dtype=np.bool_)
    inner[indptr[1:][np.diff(indptr) > 0] - 1] = False  # the last one of a route waits for nothing
    before = np.flatnonzero(inner)
    size = int(channels.max(initial=-1)) + 1
    edges = channels[before], channels[before + 1]
    waits = csr_array((np.ones(len(before), dtype=np.int8), edges), shape=(size, size))
    _, part = connected_components(waits, directed=True, connection="strong")
    within = np.flatnonzero(part[edges[0]] == part[edges[1]])
    if not len(within):
        return np.empty(0, dtype=np.int64)
    start, second = edges[0][within[0]], edges[1][within[0]]
    # the shortest way back from the second to the first
    _, came_from = breadth_first_order(waits, second, return_predecessors=True)
    cycle = [int(start)]
    while cycle[-1] != second:
        cycle.append(int(came_from[cycle[-1]]))
    return np.array(cycle[::-1][-1:] + cycle[::-1][:-1], dtype=np.int64)
