"""What a search over exchanges starts from: who is in which slot, and which slots are near.

Distances are in tables where they can be (see `distances`).
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

import numpy as np

from hopmap.arrays import Ints, Ints32
from hopmap.mappers.cost_model import CostModel
from hopmap.mappers.distances import TABLE, table_of
from hopmap.topologies import Topology, hierarchy
from hopmap.topologies.tree_kernels import TreeRouter

if TYPE_CHECKING:
    from hopmap.topologies import Router

    from .annealing_kernels import Assignment
    from .bokhari_kernels import NodeAssignment

LINKED = 1024  # above so many nodes with few links each, these say who is near
NEAR = 12  # whole shells of nearest nodes up to so many
FEWEST, MILD = 4, 2  # slots of the nearest nodes, if at most so many times as far as the first
FIRST = 32  # of the first shell, however large it is, no more than this


def assignment_of(
    model: CostModel, topology: Topology, places: Ints, rng: np.random.Generator
) -> Assignment:
    """Everybody at their places, with the nodes near each node looked up."""
    free = np.flatnonzero(topology.slots)
    whole = len(free) == topology.nodes
    sparse = whole and topology.switches == 0 and topology.links <= NEAR * topology.nodes
    span = _group_of_many(topology) if whole else None
    room = int(topology.slots.max())
    if span is not None:
        pairs = _near_nodes(model.router, free, span, room)
    elif len(free) > TABLE or (sparse and len(free) > LINKED):
        pairs = _linked_nodes(topology, free)
    else:
        pairs = _near_nodes(model.router, free, None, room)
    return _assignment(model, topology.slots, pairs, places, rng)


def assignment_to_groups(
    model: CostModel, slots: Ints, places: Ints, rng: np.random.Generator
) -> Assignment:
    """Everybody at their places in groups of nodes, which the model's router knows."""
    near = _near_nodes(model.router, np.arange(len(slots)))
    return _assignment(model, slots, near, places, rng)


def _assignment(
    model: CostModel, slots: Ints, pairs: tuple[Ints, Ints], places: Ints, rng: np.random.Generator
) -> Assignment:
    from .annealing_kernels import Assignment

    indptr = np.concatenate(([0], np.cumsum(slots))).astype(np.int64)
    near_indptr, near = _near_slots(*pairs, indptr)
    assignment = Assignment(
        places=np.empty_like(places),
        slot_of=np.empty_like(places),
        item_at=np.empty_like(places),
        slot_indptr=indptr,
        own=np.empty_like(places),
        active=np.flatnonzero(np.diff(model.indptr)).astype(np.int64),
        near_indptr=near_indptr,
        near=near,
        random=rng.integers(1, 2**63, size=1, dtype=np.uint64),
    )
    assign(model, assignment, places)
    return assignment


def in_slots(places: Ints) -> tuple[Ints, Ints]:
    """Item on each slot and slot of each item, slots being numbered node by node."""
    item_at = np.argsort(places, kind="stable")
    slot_of = np.empty_like(item_at)
    slot_of[item_at] = np.arange(len(places))
    return item_at, slot_of


def assign(model: CostModel, assignment: Assignment | NodeAssignment, places: Ints) -> None:
    """Assign all ranks again, in place."""
    from hopmap.mappers import cost_kernels

    assignment.places[:] = places
    assignment.item_at[:], assignment.slot_of[:] = in_slots(places)
    assignment.own[:] = cost_kernels.own_costs(model, places)


def cost_of(assignment: Assignment | NodeAssignment) -> int:
    """Cost of the present mapping."""
    return int(assignment.own.sum()) // 2


def _linked_nodes(topology: Topology, free: Ints) -> tuple[Ints, Ints]:
    """Pairs of free nodes that share a link.

    Where none do, or some nodes are not free, also those at most 4 apart in the order of numbers.
    """
    nodes = topology.nodes
    linked = np.zeros(topology.vertices, dtype=np.bool_)
    linked[free] = True
    linked = linked[topology.link_from] & linked[topology.link_to]
    x = np.concatenate((free, topology.link_from[linked])).astype(np.int64)
    y = np.concatenate((free, topology.link_to[linked])).astype(np.int64)
    if len(free) < nodes or not linked.any():
        steps = np.arange(-4, 5)
        near = np.repeat(np.arange(len(free)), len(steps)) + np.tile(steps, len(free))
        x = np.concatenate((x, np.repeat(free, len(steps))))
        y = np.concatenate((y, free[np.clip(near, 0, len(free) - 1)]))
    pairs = np.sort(x * nodes + y)
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]  # ten times as fast as numpy's unique
    return pairs // nodes, pairs % nodes


def _group_of_many(topology: Topology) -> int | None:
    """Nodes of the smallest subsystem that holds all that are near; None where it is large."""
    from hopmap.topologies.switch_kernels import FatTreeRouter

    if not isinstance(topology.router, TreeRouter | FatTreeRouter):
        return None
    spans = np.cumprod(hierarchy(topology) or ())
    many = [int(span) for span in spans if FIRST < span <= LINKED and span < topology.nodes]
    return many[0] if many else None


def _near_nodes(
    router: Router, free: Ints, span: int | None = None, room: int = 1
) -> tuple[Ints, Ints]:
    """Pairs of a free node and one near it, sorted by the first; a node is near itself.

    Where all nodes are free and every group of `span` is like the first, that one is looked at.
    """
    from . import annealing_kernels

    count = len(free)
    if count == 1:
        return free, free
    stride = next(s for s in range(int(count * 0.618) + 1, 2 * count + 1) if gcd(s, count) == 1)
    if span is None:
        rows, hops = annealing_kernels.nearest(router, free, stride, min(count - 1, FIRST))
    else:
        group = np.arange(span)
        far = table_of(router, group).astype(np.int64)
        np.fill_diagonal(far, -1)
        turn = (group - group[:, None]) * pow(stride, -1, count) % count
        first = np.lexsort((turn, far))[:, 1 : FIRST + 1]
        hops = np.tile(np.take_along_axis(far, first, axis=1), (count // span, 1))
        rows = np.tile(first, (count // span, 1)) + (free // span * span)[:, None]
    # A shell counts if it is the first, ends within the first NEAR, or is not much farther and has
    # some of the nearest FEWEST slots.
    last = hops[:, min(NEAR, hops.shape[1] - 1)][:, None]
    enough = min(max(FEWEST // room, 1), hops.shape[1])
    keep = (hops < last) | ((hops <= hops[:, enough - 1][:, None]) & (hops <= MILD * hops[:, :1]))
    if hops.shape[1] <= NEAR:
        keep[:] = True
    x = np.concatenate((free, np.repeat(free, keep.sum(axis=1))))
    y: Ints = np.concatenate((free, rows[keep]))
    order = np.argsort(x, kind="stable")
    return x[order], y[order]


def _near_slots(x: Ints, y: Ints, indptr: Ints) -> tuple[Ints, Ints32]:
    """Slots of the near nodes, as row pointers and columns; a lone slot is not near itself."""
    slots = np.diff(indptr)
    if len(slots) > 1 and (slots <= 1).all():
        x, y = x[x != y], y[x != y]
    counts = slots[y]
    starts = np.cumsum(counts) - counts
    columns = np.repeat(indptr[y] - starts, counts) + np.arange(counts.sum())
    rows = np.searchsorted(np.repeat(x, counts), np.arange(len(slots) + 1))
    return rows.astype(np.int64), columns.astype(np.int32)
