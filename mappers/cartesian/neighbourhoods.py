"""Neighbourhoods of ranks, matched to the stencils of 3 to 27 points and to honeycombs.

A rank's neighbours are ordered by the steps that they are. Two of them are then adjacent, have
another common neighbour or neither, as in the stencil.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints

from .cells import Pairs

ADJACENT = 1
STAR, LOST = 6, 0.2  # neighbours of which faults may hide relations; part of these
REACH = 4  # longest step of a stencil in one dimension
BRICK = (-1, 0), (1, 0), (0, -1)  # neighbours of an even one
SHORT = 3, 4  # periods that a rank's neighbours show


class Lattice(NamedTuple):
    """A stencil that coordinates grow by."""

    steps: Ints  # shape (neighbours, dimensions), of even cells
    odd_steps: Ints  # of odd cells, whose coordinates have an odd sum
    relations: list[list[int]]  # of any two neighbours: see `_relations`
    meet: list[int]  # neighbours that each is adjacent to, sorted


class Around(NamedTuple):
    """A rank with its neighbourhood."""

    rank: int
    peers: list[int]
    reached: list[set[int]]  # peers of each peer
    meet: list[int]


@cache
def lattices() -> list[Lattice]:
    """Stencils of 27 to 3 points: boxes, stars, simplices, boxes in part, steps along axes, bricks.

    Neighbours in a ring of three or four are related by way of its other side, too.
    """
    found: dict[frozenset[tuple[int, ...]], Ints] = {}
    for d in (3, 2, 1):
        box = np.array([v for v in product((-1, 0, 1), repeat=d) if any(v)])
        parts = np.abs(box).sum(axis=1)
        stencils = [box, box[parts == 1], box[(box >= 0).all(axis=1) | (box <= 0).all(axis=1)]]
        stencils += [box[parts < 3], box[parts != 2]]
        axes = np.concatenate((np.eye(d, dtype=np.int64), -np.eye(d, dtype=np.int64)))
        stencils += [
            np.concatenate([k * axes for k in range(1, reach + 1)]) for reach in range(2, REACH + 1)
        ]
        for steps in stencils:
            found.setdefault(frozenset(map(tuple, steps.tolist())), steps)
    lattices = [_lattice(steps, 0, 0) for steps in found.values()]
    lattices += [_bricks(BRICK[k:] + BRICK[:k]) for k in range(3)]
    for steps in found.values():
        rings = range(1, steps.shape[1] + 1) if np.abs(steps).max() == 1 else ()
        lattices += [_lattice(steps, count, length) for count in rings for length in SHORT]
    return lattices


def _lattice(steps: Ints, rings: int, length: int) -> Lattice:
    """Give the cells around its centre numbers; the first dimensions are rings of a length."""
    d = steps.shape[1]
    sides = np.where(np.arange(d) < rings, length, 4 * REACH + 1)
    number = (4 * REACH + 1) ** np.arange(d)
    reached = [((step + steps) % sides @ number).tolist() for step in steps]
    around = (steps % sides @ number).tolist()
    relations = _relations(around, list(map(set, reached)), 0)
    return Lattice(steps, steps, relations, sorted(row.count(ADJACENT) for row in relations))


def _bricks(steps: Sequence[tuple[int, int]]) -> Lattice:
    """Honeycomb as bricks: even cells have one neighbour below, odd ones one above."""
    return Lattice(np.array(steps), -np.array(steps), [[2, 0, 0], [0, 2, 0], [0, 0, 2]], [0] * 3)


def around_of(pairs: Pairs, rank: int) -> Around:
    """Look at the neighbourhood of a rank."""
    peers = peers_of(pairs, rank)
    reached = [set(peers_of(pairs, u)) for u in peers]
    return Around(rank, peers, reached, sorted(len(each.intersection(peers)) for each in reached))


def match(around: Around, lattice: Lattice) -> list[int] | None:
    """Order a rank's neighbours by the steps that they are, after itself; None if they are none."""
    rank, peers, reached, meet = around
    wanted = lattice.relations
    if meet != lattice.meet:
        return None
    found = _relations(peers, reached, rank)
    rows, wanted_rows = list(map(sorted, found)), list(map(sorted, wanted))
    whole = sorted(rows) == sorted(wanted_rows)
    count, most = sum(map(sum, found)), sum(map(sum, wanted))
    if not whole and not (len(peers) <= STAR and (1 - LOST) * most <= count <= most):
        return None
    chosen: list[int] = []

    def extend() -> bool:
        k = len(chosen)
        if k == len(peers):
            return True
        for i in range(len(peers)):
            if (
                i not in chosen
                and (not whole or rows[i] == wanted_rows[k])
                and all(found[i][c] in (0, wanted[k][m]) for m, c in enumerate(chosen))
            ):
                chosen.append(i)
                if extend():
                    return True
                chosen.pop()
        return False

    return [rank, *(peers[i] for i in chosen)] if extend() else None


def peers_of(pairs: Pairs, rank: int) -> list[int]:
    """Return whom a rank talks to."""
    found: list[int] = pairs.peer[pairs.indptr[rank] : pairs.indptr[rank + 1]].tolist()
    return found


def _relations(around: list[int], reached: list[set[int]], centre: int) -> list[list[int]]:
    """Whether any two neighbours are adjacent, or have another common neighbour, or neither."""
    return [
        [
            ADJACENT if b in one else 2 * (len(one & other) > (centre in one & other))
            for b, other in zip(around, reached, strict=True)
        ]
        for one in reached
    ]
