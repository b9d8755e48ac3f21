"""What a partial partition of a grid will cost yet, at least; see `exact_partition`.

Ranks are placed row by row. The part of a node that is still to be placed lies in some R rows and C
columns, with R * C at least its ranks. A row or a column with m nodes is cut m - 1 times; so over
all nodes the rows that are not full are cut sum(R) - rows times, and the columns alike, a node also
counting in the columns that have reached it, where they go on. With all nodes at their least R + C
that is a bound of the sum. A node by itself is left at least once in each of its rows and columns
that it does not take to the end.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hopmap.arrays import Ints, Ints8

if TYPE_CHECKING:
    from hopmap.mappers.cartesian.off_node_kernels import Peers

NEVER = 2**40  # there is no room for its ranks


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
    """Bounds after so many ranks are placed, of so many; `slots` fit on each node."""

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
            # In the first row, columns that nobody has reached may become its own altogether.
            through = columns if self.placed >= self.row.length else max(c, columns)
            if rest > 0:
                through = min(through, room // rest)
            whole = room // self.row.length if c == self.row.length else 0
            sides = max(r - self.begun - whole, 0)
            costs.append(along * sides + down * (max(c, columns) - through))
        return min(costs, default=NEVER)

    def _reached(self, node: Ints8, used: Ints) -> Ints:
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
        found: Ints = self._sum[self.slots - used, self._reached(node, used), last].sum(axis=1)
        there = self.row.along[0] * self.rows + self.row.down[0] * self.row.length
        more: Ints = np.maximum(found - there, 0)
        return more

    def each(self, node: Ints8, used: Ints) -> Ints:
        """Least that will leave each node, shape (rows, nodes)."""
        found: Ints = self._each[self.slots - used, self._reached(node, used)]
        return found
