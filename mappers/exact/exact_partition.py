"""Exact optimum for small grids: dynamic programming along the border of what is placed.

Ranks join nodes row by row, a row being what lies across the longest dimension. What the rest can
cost depends on the nodes of those ranks alone that have peers to come (the border), on how full
every node is and, for the worst node, on what leaves each so far; nodes of equal size are
interchangeable. Of all partial partitions that agree in that the cheapest are kept, none that
cannot become better than the mapping to begin with (`Ahead`). What is left at the end is the
optimum; if nothing is, that mapping was. Parts may have any shape, and may fall apart.

Time and memory grow exponentially with the border, and what is too large is refused. All grids up
to 6 x 6 with 5 points on 2 to 6 nodes take a second at most each, so does 8 x 8 on 4. Borders are
longer where a grid closes or has three dimensions: 6 x 6 closed both ways and 4 x 3 x 3 are solved
on 3 nodes and refused on 4. The problem is NP-hard even on grids (Lehr 2019, chapter 3). Dynamic
programming along a border is how graphs of small pathwidth are solved; equal nodes and the
bounds are ours.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hopmap.arrays import Ints, Ints8
from hopmap.mappers.cartesian.grid import cartesian
from hopmap.mappers.cartesian.grid_portfolio import grid_portfolio
from hopmap.mappers.cartesian.off_node import Amount, Measure, outgoing, peers_of
from hopmap.mappers.mapper import mapper
from hopmap.mappers.stop import Moves
from hopmap.topologies import Mapping, MappingError, Topology
from hopmap.traces import Traffic

if TYPE_CHECKING:
    from hopmap.mappers.cartesian.off_node_kernels import Peers


MOST_RANKS = 64
MOST_NODES = 127  # numbers of an int8
MOST = 4_000_000  # partial partitions
LEADERS = 8  # partial partitions that another one is compared with
NEVER = 2**40  # there is no room for its ranks


class Limits(NamedTuple):
    """What may leave all nodes, and each of them (None: no limit)."""

    sum: int
    worst: int | None


class Partials(NamedTuple):
    """Partial partitions, one a row."""

    node: Ints8  # shape (rows, ranks): of every rank that is placed, in order
    used: Ints  # shape (rows, nodes): ranks on every node
    # shape (rows, 1) or (rows, 1 + nodes): what leaves all nodes; and each, but 0 for nodes that
    # are full and off the border
    cost: Ints


def small_grid(name: str, traffic: Traffic, topology: Topology) -> None:
    """Raise `MappingError` unless the traffic is that of a grid which is small enough."""
    cartesian(traffic, name)
    if traffic.ranks > MOST_RANKS:
        raise _too_large(f"{traffic.ranks} ranks")
    if topology.nodes > MOST_NODES:
        raise _too_large(f"{topology.nodes} nodes")


@mapper("exact_partition", source="this project", needs=small_grid)
def exact_partition(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    measure: Measure = "sum",
    amount: Amount = "bytes",
) -> Mapping:
    """Cartesian grid: the least that can leave all nodes or the worst, proven; small grids only.

    - `measure`: of what leaves all nodes, or the worst of them.
    - `amount`: what is counted.
    """
    grid = cartesian(traffic, "exact_partition")
    small_grid("exact_partition", traffic, topology)
    start = grid_portfolio(traffic, topology, rng=rng, first=measure, amount=amount, stop=Moves())
    rank_at = np.argsort(grid.cells).reshape(grid.dims)
    longest_first = np.argsort([-size for size in grid.dims], kind="stable")
    order = rank_at.transpose(longest_first).ravel()
    peers = peers_of(traffic, amount, traffic.ranks)
    row = row_of(peers, order, traffic.ranks // max(grid.dims), flat=len(grid.dims) == 2)
    while True:  # each time better, until nothing is
        load = outgoing(peers, start, topology.nodes)
        limits = Limits(int(load.sum()) - 1, None)
        if measure == "worst":
            most = int(load.max()) - 1
            limits = Limits(most * topology.nodes, most)
        found = find_within(peers, order, topology.slots, row, limits) if limits.sum >= 0 else None
        if found is None:
            return start
        start = found


def find_within(peers: Peers, order: Ints, slots: Ints, row: Row, limits: Limits) -> Mapping | None:
    """Partition within the limits, of all these one of the least sum; None if there is none.

    Ranks are placed in `order`, and `slots` fit on each node; for `row` see `row_of`.
    """
    ranks, nodes = len(order), len(slots)
    time = np.empty(ranks, dtype=np.int64)
    time[order] = np.arange(ranks)
    of = [slice(peers.indptr[rank], peers.indptr[rank + 1]) for rank in order]
    last = np.array([time[peers.peer[at]].max(initial=-1) for at in of])
    loads = 0 if limits.worst is None else nodes
    some = Partials(
        np.zeros((1, ranks), dtype=np.int8),
        np.zeros((1, nodes), dtype=np.int64),
        np.zeros((1, 1 + loads), dtype=np.int64),
    )
    for t in range(ranks):
        near = zip(time[peers.peer[of[t]]], peers.sent[of[t]], peers.got[of[t]], strict=True)
        before = [edge for edge in near if edge[0] < t]
        ahead = Ahead(row, t + 1, slots, ranks)
        parts = [
            _possible(_place(some, t, node, slots, before), ahead, limits) for node in range(nodes)
        ]
        some = Partials(*map(np.concatenate, zip(*parts, strict=True)))
        border = np.flatnonzero(last[: t + 1] > t)
        if len(some.node) <= MOST:
            some = _distinct(_normalise(some, border, slots), border, slots)
        if len(some.node) > MOST // 4:
            raise _too_large(f"{len(some.node)} partial partitions of {t + 1} ranks")
    if not len(some.node):
        return None
    node_of = np.empty(ranks, dtype=np.int64)
    node_of[order] = some.node[some.cost[:, 0].argmin()]
    return node_of


def _place(
    some: Partials, t: int, node: int, slots: Ints, before: list[tuple[int, int, int]]
) -> Partials:
    """Those partial partitions in which the next rank fits on the node, with it there."""
    fits = some.used[:, node] < slots[node]
    same_size = np.flatnonzero(slots[:node] == slots[node])
    if len(same_size):  # of empty nodes of one size only the first is taken
        fits &= (some.used[:, node] > 0) | (some.used[:, same_size[-1]] > 0)
    parts, used, cost = (array[fits] for array in some)
    every = np.arange(len(parts))
    for peer, sent, got in before:
        there = parts[:, peer].astype(np.int64)
        apart = there != node
        cost[:, 0] += (sent + got) * apart
        if cost.shape[1] > 1:
            cost[:, 1 + node] += sent * apart
            cost[every, 1 + there] += got * apart
    parts[:, t] = node
    used[:, node] += 1
    return Partials(parts, used, cost)


def _possible(some: Partials, ahead: Ahead, limits: Limits) -> Partials:
    """Those that can still become a partition within the limits."""
    good = some.cost[:, 0] + ahead.sum(some.node, some.used) <= limits.sum
    if limits.worst is not None:
        good &= (some.cost[:, 1:] + ahead.each(some.node, some.used)).max(axis=1) <= limits.worst
    return Partials(some.node[good], some.used[good], some.cost[good])


def _normalise(some: Partials, border: Ints, slots: Ints) -> Partials:
    """Renumber nodes of one size as they appear on the border, then by ranks and cost."""
    rows, nodes = some.used.shape
    seen = np.full((rows, nodes), len(border), dtype=np.int64)
    for i, t in reversed(list(enumerate(border))):
        seen[np.arange(rows), some.node[:, t]] = i
    cost = some.cost
    if cost.shape[1] > 1:
        cost[:, 1:][(seen == len(border)) & (some.used == slots)] = 0
    group = np.broadcast_to(np.unique(slots, return_inverse=True)[1], seen.shape)
    keys = (-some.used, seen, group)
    order = np.lexsort((cost[:, 1:], *keys) if cost.shape[1] > 1 else keys, axis=-1)
    slot_of = np.broadcast_to(np.argsort(slots, kind="stable"), seen.shape)
    new = np.empty_like(order)  # new number of every node
    np.put_along_axis(new, order, slot_of, 1)
    old = np.argsort(new, axis=1)
    return Partials(
        np.take_along_axis(new, some.node.astype(np.int64), 1).astype(np.int8),
        np.take_along_axis(some.used, old, 1),
        cost
        if cost.shape[1] == 1
        else np.hstack((cost[:, :1], np.take_along_axis(cost[:, 1:], old, 1))),
    )


def _distinct(some: Partials, border: Ints, slots: Ints) -> Partials:
    """Without those that another one equals in border and used slots and is not worse than."""
    key = np.zeros(len(some.node), dtype=np.int64)
    radices = [len(slots)] * len(border) + [int(size) + 1 for size in slots]
    if prod(radices) >= 2**63:
        raise _too_large(f"a border of {len(border)} ranks on {len(slots)} nodes")
    columns = [*some.node[:, border].T, *some.used.T]
    for radix, column in zip(radices, columns, strict=True):
        key = key * radix + column
    at = np.lexsort((some.cost.sum(axis=1), key))
    key, cost = key[at], some.cost[at]
    begin = np.flatnonzero(np.diff(key, prepend=-1))
    leader = np.repeat(begin, np.diff(begin, append=len(key)))
    keep = np.ones(len(key), dtype=bool)
    here = np.arange(len(key))
    for k in range(LEADERS if cost.shape[1] > 1 else 1):
        other = leader + k
        earlier = other < here
        keep[earlier] &= (cost[other[earlier]] > cost[earlier]).any(axis=1)
    at = at[keep]
    return Partials(some.node[at], some.used[at], some.cost[at])


def _too_large(reason: str) -> MappingError:
    return MappingError(
        f"mapper exact_partition: {reason}: expected a small grid, like 6x6 on six nodes, or on "
        "three if it is periodic both ways or 4x3x3"
    )


class Row(NamedTuple):
    """Ranks of a row, and the least that a step between rows, or within one, costs."""

    length: int
    # down, along: of both directions in sum, and of one: for steps to the next row and within a row
    down: tuple[int, int]
    along: tuple[int, int]


def row_of(peers: Peers, order: Ints, length: int, *, flat: bool) -> Row:
    """Row of ranks that are placed in that order; steps within it count in flat grids only."""

    def least(pairs: list[tuple[int, int]]) -> tuple[int, int]:
        costs = []
        for one, other in pairs:
            at = slice(peers.indptr[one], peers.indptr[one + 1])
            is_it = peers.peer[at] == other
            sent, got = int(peers.sent[at][is_it].sum()), int(peers.got[at][is_it].sum())
            costs.append((sent + got, min(sent, got)))
        return min((c[0] for c in costs), default=0), min((c[1] for c in costs), default=0)

    rows = order.reshape(-1, length)
    down = list(zip(rows[:-1].ravel().tolist(), rows[1:].ravel().tolist(), strict=True))
    along = list(zip(rows[:, :-1].ravel().tolist(), rows[:, 1:].ravel().tolist(), strict=True))
    return Row(length, least(down), least(along) if flat else (0, 0))


class Ahead:
    """What a partial partition will cost yet, at least: after so many ranks are placed, of so many.

    `slots` fit on each node. The part of a node that is still to be placed lies in some R rows and
    C columns, with R * C at least its ranks. A row or a column with m nodes is cut m - 1 times; so
    over all nodes the rows that are not full are cut sum(R) - rows times. So are the columns, a
    node also counting in the columns that have reached it, where they go on. With all nodes at
    their least R + C that is a bound of the sum. A node by itself is left at least once in each of
    its rows and columns that it does not take to the end.
    """

    def __init__(self, row: Row, placed: int, slots: Ints, ranks: int) -> None:
        self.row, self.placed, self.slots = row, placed, slots
        self.spare = int(slots.sum()) - ranks
        self.rows = -(-(ranks - placed) // row.length)  # with ranks to come
        self.begun = placed % row.length > 0
        room = range(int(slots.max()) + 1)
        columns = range(row.length + 1)
        self._sum = np.array([
            [[self._least_sum(r, c, last) for last in (0, 1)] for c in columns] for r in room
        ])  # fmt: skip
        self._each = np.array([[self._least_each(r, c) for c in columns] for r in room])

    def _shapes(self, room: int) -> list[tuple[int, int]]:
        """Rows and columns of the ranks that a node has yet to get; all but the spare ones."""
        need = max(room - self.spare, 0)
        if need == 0:
            return [(0, 0)]
        every = product(range(1, self.rows + 1), range(1, self.row.length + 1))
        return [(r, c) for r, c in every if r * c >= need]

    def _least_sum(self, room: int, columns: int, last: int) -> int:
        down, along = self.row.down[0], self.row.along[0]
        return min(
            (along * max(r, last) + down * max(c, columns) for r, c in self._shapes(room)),
            default=NEVER,
        )

    def _least_each(self, room: int, columns: int) -> int:
        down, along = self.row.down[1], self.row.along[1]
        rest = self.rows - self.begun  # ranks to come in the shortest column
        costs = []
        for r, c in self._shapes(room):
            # In the first row, columns without any rank may become its own altogether.
            through = columns if self.placed >= self.row.length else max(c, columns)
            if rest > 0:
                through = min(through, room // rest)
            whole = room // self.row.length if c == self.row.length else 0
            sides = max(r - self.begun - whole, 0)
            costs.append(along * sides + down * (max(c, columns) - through))
        return min(costs, default=NEVER)

    def _columns(self, node: Ints8, used: Ints) -> Ints:
        """Columns that have reached each node."""
        columns = np.zeros_like(used)
        every = np.arange(len(used))
        for t in range(max(self.placed - self.row.length, 0), self.placed):
            columns[every, node[:, t]] += 1
        return columns

    def sum(self, node: Ints8, used: Ints) -> Ints:
        """Least that will leave all nodes, shape (rows,)."""
        last = np.zeros_like(used)
        if self.begun:
            last[np.arange(len(used)), node[:, self.placed - 1]] = 1
        found: Ints = self._sum[self.slots - used, self._columns(node, used), last].sum(axis=1)
        there = self.row.along[0] * self.rows + self.row.down[0] * self.row.length
        more: Ints = np.maximum(found - there, 0)
        return more

    def each(self, node: Ints8, used: Ints) -> Ints:
        """Least that will leave each node, shape (rows, nodes)."""
        found: Ints = self._each[self.slots - used, self._columns(node, used)]
        return found
