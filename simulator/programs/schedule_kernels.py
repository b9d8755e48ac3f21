"""Compiled: a graph of operations becomes tasks, and tasks become rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Bools, Ints
from hopmap.compilation import njit, subroutine
from hopmap.traces.schedule import Task

from .program import Op

SEND, RECV, CALC = int(Task.SEND), int(Task.RECV), int(Task.CALC)
# How an edge is kept: by the order of the task, by a WAIT, by a START that shows the begin, or
# because the task begins there.
BY_ORDER, BY_WAIT, BY_SIGN, BY_START = 0, 1, 2, 3
SEND_ROW, ISEND, RECV_ROW, IRECV = int(Op.SEND), int(Op.ISEND), int(Op.RECV), int(Op.IRECV)
WAIT, START, FINISH = int(Op.WAIT), int(Op.START), int(Op.FINISH)


class Graph(NamedTuple):
    """Operations of all ranks, and the edges between them."""

    offsets: Ints  # shape (ranks + 1,): operations of rank r are ``offsets[r]:offsets[r + 1]``
    kind: NDArray[np.uint8]
    size: Ints
    after: Ints  # by edge, the operation that waits
    before: Ints  # for which it waits
    begun: Bools  # whether for its begin alone
    first: Ints  # first, edges: edges of each operation to what it waits for
    edges: Ints
    needs: Ints  # needs, gives: edges of each operation to what waits for it
    gives: Ints


class Division(NamedTuple):
    """How operations are divided among tasks, as `tasks_of` fills it."""

    kept: NDArray[np.uint8]  # `BY_...` of each edge
    task: Ints  # of each operation, counted from 0 in its rank
    # of an operation that begins a task, the one behind whose row it starts, -1 at the rank's
    # begin; -2 of others
    parent: Ints


class Order(NamedTuple):
    """Which operations each task has, and which tasks start where."""

    tasks: Ints  # shape (ranks + 1,): tasks of operations of rank r begin at ``tasks[r]``
    begins: Ints  # begins, listed: operations of each task, in order
    listed: Ints
    # child, children: tasks that start behind an operation's row; behind all operations, one entry
    # for each rank with those that start at its begin
    child: Ints
    children: Ints


class Written(NamedTuple):
    """Rows of all tasks."""

    of_task: Ints  # of_task, rank_of: shape (tasks,): first row and rank of each task
    rank_of: Ints
    # shape (rows, 4): `Op`, nanoseconds before it, operation that it is about, or -1, and target
    table: Ints


@njit
def sort_operations(graph: Graph, works: Bools) -> tuple[Ints, int]:
    """Operations of each rank in an order in which they can run, those that take no time first.

    Returns also the first operation that waits for itself, or -1.
    """
    offsets, after, needs, gives = graph.offsets, graph.after, graph.needs, graph.gives
    order = np.empty(len(works), dtype=np.int64)
    open_ = np.zeros(len(works), dtype=np.int64)
    for edge in range(len(after)):
        open_[after[edge]] += 1
    later = np.empty(len(works), dtype=np.int64)
    done = 0
    for rank in range(len(offsets) - 1):
        begin, end = offsets[rank], offsets[rank + 1]
        # `order` is the queue of what takes no time; computations queue in `later`.
        head, tail, late_head, late_tail = begin, begin, begin, begin
        for node in range(begin, end):
            if open_[node] == 0:
                if works[node]:
                    later[late_tail] = node
                    late_tail += 1
                else:
                    order[tail] = node
                    tail += 1
        while head < tail or late_head < late_tail:
            if head == tail:
                order[tail] = later[late_head]
                late_head += 1
                tail += 1
            node = order[head]
            head += 1
            done += 1
            for k in range(needs[node], needs[node + 1]):
                follower = after[gives[k]]
                open_[follower] -= 1
                if open_[follower] == 0:
                    if works[follower]:
                        later[late_tail] = follower
                        late_tail += 1
                    else:
                        order[tail] = follower
                        tail += 1
        if head < end:
            for node in range(begin, end):
                if open_[node] > 0:
                    return order, node
    return order, -1


@njit
def tasks_of(graph: Graph, order: Ints, division: Division) -> Ints:
    """Put every operation into a task of its rank, say how edges are kept; count each rank's tasks.

    An operation goes on with a task if that delays nothing: it waits, perhaps through others, for
    all that the task has waited for so far. So does what depends on an operation that stands
    there since the task last waited or computed (`now`). Else it begins a task of its own.
    """
    offsets, kind, size = graph.offsets, graph.kind, graph.size
    before, begun, first, edges = graph.before, graph.begun, graph.first, graph.edges
    kept, task, parent = division.kept, division.task, division.parent
    counts = np.ones(len(offsets) - 1, dtype=np.int64)
    epoch = np.zeros(len(kind) + 1, dtype=np.int64)
    now = np.full(len(kind), -1, dtype=np.int64)
    settled = np.zeros(len(kind), dtype=np.bool_)
    seen = np.full(len(kind), -1, dtype=np.int64)
    for rank in range(len(offsets) - 1):
        count = 1
        epoch[0] = 0
        for place in range(offsets[rank], offsets[rank + 1]):
            node = order[place]
            begin, end = first[node], first[node + 1]
            best, free, plain = -1, False, -1
            if begin == end and epoch[0] == 0:
                best, free = 0, True
            for k in range(begin, end):
                source = before[edges[k]]
                here = task[source]
                if now[source] != epoch[here]:
                    continue
                if begun[edges[k]] and kind[source] == CALC and size[source] > 0:
                    continue  # the task goes on behind its end
                if best >= 0 and (free or here > best):
                    continue
                all_settled = True
                for other in range(begin, end):
                    edge = edges[other]
                    one = before[edge]
                    if task[one] != here or not (settled[one] or begun[edge]):
                        all_settled = False
                        break
                if all_settled or best < 0 or here < best:
                    best, free = here, all_settled
            parent[node] = -2
            if best < 0:
                best, free = count, False
                epoch[count] = 0
                count += 1
                parent[node] = -1
                for k in range(begin, end):
                    if plain < 0 or (begun[plain] and not begun[edges[k]]):
                        plain = edges[k]
                if plain >= 0 and begun[plain] and kind[before[plain]] == CALC:
                    plain = -1  # its begin has no row: a sign tells it
                if plain >= 0:
                    parent[node] = before[plain]
            elif not free:
                epoch[best] += 1
            task[node] = best
            awaited, only = 0, -1
            for k in range(begin, end):
                edge = edges[k]
                source = before[edge]
                inside = task[source] == best
                if begun[edge]:
                    kept[edge] = BY_ORDER if inside or seen[source] == node else BY_SIGN
                    awaited += kept[edge] == BY_SIGN
                    if edge == plain:
                        kept[edge] = BY_START
                    continue
                if seen[source] == node or (inside and settled[source]):
                    kept[edge] = BY_ORDER
                elif edge == plain and kind[source] == CALC:
                    kept[edge] = BY_START
                else:
                    kept[edge] = BY_WAIT
                    awaited += 1
                    if inside:
                        settled[source] = True
                        if now[source] == epoch[best] - 1:
                            only = source
                seen[source] = node
            if awaited == 1 and only >= 0:
                now[only] = epoch[best]  # what waits for this alone may go on here, too
            if kind[node] == CALC:
                settled[node] = True
                if size[node] > 0:
                    epoch[best] += 1
            now[node] = epoch[best]
        counts[rank] = count
    return counts


ROWS, EXTRA, FIRST_EXTRA = 0, 1, 2  # of the state: rows, extra tasks of the rank, their number
OP, PAUSE, ABOUT, TARGET = 0, 1, 2, 3  # columns of rows


@njit
def rows_of(graph: Graph, division: Division, order: Order, rows: Written) -> tuple[int, int]:
    """Write the rows of all tasks, or only count them if there is no room; return both numbers."""
    offsets, kind, size = graph.offsets, graph.kind, graph.size
    after, before, first, edges = graph.after, graph.before, graph.first, graph.edges
    needs, gives = graph.needs, graph.gives
    kept, task, parent = division.kept, division.task, division.parent
    tasks, begins, listed = order.tasks, order.begins, order.listed
    child, children = order.child, order.children
    of_task, rank_of, out = rows.of_task, rows.rank_of, rows.table
    total, fill = len(kind), len(out) > 0
    waits = np.zeros(total, dtype=np.int64)  # explicit ones, of each operation
    lone = np.full(total, -1, dtype=np.int64)  # edge that waits in a task which may come too soon
    for edge in range(len(before)):
        if kept[edge] == BY_WAIT:
            source = before[edge]
            waits[source] += 1
            if task[source] != task[after[edge]] and parent[after[edge]] != source:
                lone[source] = edge
    row_of = np.full(total, -1, dtype=np.int64)
    # By edge, the WAIT that keeps it; or -2 - the START of its sign while there is no WAIT yet.
    waiting = np.full(len(before), -1, dtype=np.int64)
    queue = np.empty(total + len(before), dtype=np.int64)  # extra tasks: an operation, or -1
    state = np.zeros(3, dtype=np.int64)
    made = 0
    for rank in range(len(offsets) - 1):
        base, count = tasks[rank], tasks[rank + 1] - tasks[rank]
        started = np.full(count, -1, dtype=np.int64)
        joins, first_task = 0, made
        state[EXTRA], state[FIRST_EXTRA] = 0, made + count
        for local in range(count):
            if fill:
                of_task[made], rank_of[made] = state[ROWS], rank
            made += 1
            gap: Any = np.int64(0)
            if local == 0:
                for k in range(child[total + rank], child[total + rank + 1]):
                    started[children[k]] = state[ROWS]
                    gap = _put(out, state, START, gap, -1, first_task + children[k])
            for place in range(begins[base + local], begins[base + local + 1]):
                node = listed[place]
                for k in range(first[node], first[node + 1]):
                    edge = edges[k]
                    source = before[edge]
                    if kept[edge] != BY_WAIT and kept[edge] != BY_SIGN:
                        continue
                    at_once = kept[edge] == BY_WAIT and kind[source] != CALC and gap == 0
                    at_once = at_once and waits[source] == 1 and lone[source] < 0
                    if at_once and state[ROWS] > 0 and row_of[source] == state[ROWS] - 1:
                        if fill:  # posted and waited for at once: blocking
                            out[state[ROWS] - 1, OP] -= 1
                        row_of[source] = -1
                        continue
                    sign = -2 - waiting[edge] if waiting[edge] < -1 else -1
                    waiting[edge] = state[ROWS]
                    gap = _put(out, state, WAIT, gap, -1, sign)
                if kind[node] != CALC:
                    row_of[node] = state[ROWS]
                    gap = _put(out, state, ISEND if kind[node] == SEND else IRECV, gap, node, -1)
                # Signs of what has begun, then of what is over.
                for shown in (BY_SIGN, BY_WAIT):
                    if shown == BY_WAIT:
                        if kind[node] == CALC:
                            gap += size[node]
                        else:
                            break
                    for k in range(needs[node], needs[node + 1]):
                        if kept[gives[k]] == shown:
                            gap = _sign(out, state, queue, waiting, gives[k], gap, -1)
                if kind[node] != CALC and (waits[node] > 1 or lone[node] >= 0):
                    # Only a START can be waited for before it is there.
                    edge = lone[node] if waits[node] == 1 else -1
                    gap = _sign(out, state, queue, waiting, edge, gap, node)
                for k in range(child[node], child[node + 1]):
                    started[children[k]] = state[ROWS]
                    gap = _put(out, state, START, gap, -1, first_task + children[k])
            for place in range(begins[base + local], begins[base + local + 1]):
                node = listed[place]
                if kind[node] != CALC and waits[node] == 0:
                    if row_of[node] == state[ROWS] - 1 and gap == 0:
                        if fill:
                            out[state[ROWS] - 1, OP] -= 1
                        continue
                    gap = _put(out, state, WAIT, gap, -1, row_of[node])
            if local == 0:
                # The rank ends with the last of its tasks; their STARTs may stand further below.
                joins = state[ROWS]
                for _ in range(1, count):
                    gap = _put(out, state, WAIT, gap, -1, -1)
            _put(out, state, FINISH, gap, -1, -1)
        at = 0
        while at < state[EXTRA]:
            if fill:
                of_task[made], rank_of[made] = state[ROWS], rank
            made += 1
            node = queue[at]
            at += 1
            if node >= 0:
                _put(out, state, WAIT, 0, -1, row_of[node])
                for k in range(needs[node], needs[node + 1]):
                    if kept[gives[k]] == BY_WAIT and waits[node] > 1:
                        _sign(out, state, queue, waiting, gives[k], 0, -1)
            _put(out, state, FINISH, 0, -1, -1)
        if fill:
            for other in range(1, count):
                out[joins + other - 1, TARGET] = started[other]
            for node in range(offsets[rank], offsets[rank + 1]):
                for k in range(first[node], first[node + 1]):
                    row = waiting[edges[k]]
                    if kept[edges[k]] == BY_WAIT and row >= 0 and out[row, TARGET] < 0:
                        out[row, TARGET] = row_of[before[edges[k]]]
    return made, state[ROWS]


@subroutine
def _put(out: Ints, state: Ints, op: int, gap: int, about: int, target: int) -> int:
    """Write a row; return the nanoseconds that are left to write: none."""
    row = state[ROWS]
    if len(out):
        out[row, OP], out[row, PAUSE], out[row, ABOUT], out[row, TARGET] = op, gap, about, target
    state[ROWS] = row + 1
    return 0


@subroutine
def _sign(
    out: Ints, state: Ints, queue: Ints, waiting: Ints, edge: int, gap: int, node: int
) -> int:
    """START a task whose end is the sign that an edge's WAIT is for; of a `node`, its end."""
    row = state[ROWS]
    queue[state[EXTRA]] = node
    _put(out, state, START, gap, -1, state[FIRST_EXTRA] + state[EXTRA])
    state[EXTRA] += 1
    if edge >= 0 and waiting[edge] < 0:
        waiting[edge] = -2 - row  # the WAIT is not written yet
    elif edge >= 0 and len(out):
        out[waiting[edge], TARGET] = row
    return 0
