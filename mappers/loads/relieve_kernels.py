"""Compiled search for an exchange that takes load off the busiest links; see `relieve.py`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.compilation import njit
from hopmap.mappers.exchanges.annealing_kernels import Assignment

from .link_loads_kernels import LinkLoads, forget, reroute, settle


@njit
def exchange(
    loads: LinkLoads,
    assignment: Assignment,
    ranks: NDArray[np.int64],
    candidates: int,
    most: int,
    carriers: int,
) -> bool:
    """Make the first exchange of one of the ranks that gains; whether there is one.

    Slots are tried in rounds: one near each of the rank's peers, then a next one, and so on.
    ``most`` is the highest load, and ``carriers`` how many links carry it.
    """
    indptr, peer = loads.indptr, loads.peer
    load, change, touched = loads.load, loads.change, loads.touched
    places, slot_of, item_at = assignment.places, assignment.slot_of, assignment.item_at
    near_indptr, near = assignment.near_indptr, assignment.near
    for u in ranks:
        tried, turn, more = 0, 0, True
        while more and tried < candidates:
            more = False
            for i in range(indptr[u], indptr[u + 1]):
                x = places[peer[i]]
                if near_indptr[x] + turn >= near_indptr[x + 1] or tried >= candidates:
                    continue
                more = True
                slot = near[near_indptr[x] + turn]
                v = item_at[slot]
                if places[u] == places[v]:
                    continue
                tried += 1
                count = reroute(loads, places, u, v)
                above, total, worse = carriers, 0, False
                for k in range(count):
                    now = load[touched[k]]
                    then = now + change[touched[k]]
                    worse |= then > most
                    above += int(then == most) - int(now == most)
                    total += then - now
                if worse or above > carriers or (above == carriers and total >= 0):
                    forget(loads, count)
                    continue
                settle(loads, count)
                places[u], places[v] = places[v], places[u]
                slot_of[v], slot_of[u] = slot_of[u], slot
                item_at[slot] = u
                item_at[slot_of[v]] = v
                return True
            turn += 1
    return False
