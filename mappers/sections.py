"""Sections of a hierarchy: who goes to which subsystem, improved a few subsystems at a time.

From the largest level down, the ranks of two subsystems with a common parent are split anew, and
those of three or four that talk, wherever that cuts less (`pairwise_kernels`). In a hierarchy that
is exact: what is outside is equally far from all of them. The levels below start from where their
ranks sit. Multisection along a hierarchy is Schulz and Traeff's (2017, section 3.1).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..topologies import Topology, hierarchy
from . import pairwise_kernels
from .cooling import Search

PAIRS = 16  # pairs split between two looks at the clock
SOME = 2_000  # trials times ranks between two looks at the clock


def spans_of(topology: Topology) -> list[int]:
    """Nodes of a subsystem, level by level from the second largest down to more than one."""
    sizes = hierarchy(topology) or ()
    spans = np.cumprod(sizes)[:-1]
    return [int(span) for span in spans[::-1] if 1 < span < topology.nodes]


def split_anew(
    search: Search,
    rng: np.random.Generator,
    *,
    sweeps: int,
    tries: int,
    fours: int,
    seconds: float | None = None,
) -> None:
    """Split the ranks of a few subsystems with a common parent anew, the largest level first.

    Parameters
    ----------
    search, rng
        Whose seating is improved, and what for.
    sweeps, tries : int
        Sweeps over the pairs that talk, and bisections of each.
    fours : int
        Trials with three or four subsystems, for each of them.
    seconds : float, optional
        Time for those trials; seven tenths of what is left go to each level.
    """
    topology, model, now = search.topology, search.model, search.watch.now
    draws = rng.integers(1, 2**63, size=1, dtype=np.uint64)
    end = None if seconds is None else now() + seconds
    above = topology.nodes
    for span in spans_of(topology):
        block = search.seating.places // span
        groups = topology.nodes // span
        parent = np.arange(groups) // (above // span)
        above = span
        for _ in range(sweeps):
            saved = 0.0
            pairs = rng.permutation(
                pairwise_kernels.talking(model.indptr, model.peer, block, parent)
            )
            for first in range(0, len(pairs), PAIRS):
                if search.watch.over():
                    break
                saved += pairwise_kernels.refine_pairs(
                    model.indptr, model.peer, model.weight, block, pairs[first : first + PAIRS],
                    groups, tries, draws,
                )  # fmt: skip
            if saved == 0 or search.done():
                break
        stop = None if end is None else now() + 0.7 * (end - now())
        left = fours * groups
        while left > 0 and not search.done() and (stop is None or now() < stop):
            some = min(left, SOME // len(block) + 1)
            pairwise_kernels.regroup(
                model.indptr, model.peer, model.weight, block, parent, some, draws
            )
            left -= some
        search.sit(_in_order(block, search.seating.seat_of, topology))


def _in_order(
    group: NDArray[np.int64], seat_of: NDArray[np.int64], topology: Topology
) -> NDArray[np.int64]:
    """Node of everybody: within their group in the order in which they sit now."""
    seats = np.repeat(np.arange(topology.nodes, dtype=np.int64), topology.slots)
    places = np.empty_like(seats)
    places[np.lexsort((seat_of, group))] = seats
    return places
