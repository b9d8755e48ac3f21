"""Scans: for every member what those before it have, added up; with its own or without.

Source: Open MPI, ompi/mca/coll/base/coll_base_scan.c and coll_base_exscan.c, the same in 4.1 and
5.0; operations are taken to commute, and not to be in place.
"""

from __future__ import annotations

import numpy as np

from .schedules import Done, Ints, Schedule, masks, schedule


def linear_scan(members: int, _root: int, volume: Ints, /) -> Schedule:
    """Each member waits for the one before it: scan_intra_linear."""
    return _chain(members, volume, np.arange(members), np.arange(1, members))


def linear_exscan(members: int, _root: int, volume: Ints, /) -> Schedule:
    """As the scan; the ends add nothing: exscan_intra_linear."""
    inner = np.arange(1, members - 1)
    return _chain(members, volume, inner, inner)


def _chain(members: int, volume: Ints, copying: Ints, adding: Ints) -> Schedule:
    one = volume[:1]
    rounds = ((np.array([k]), np.array([k + 1]), one) for k in range(members - 1))
    return schedule(rounds, [(-1, copying, one)], [(adding - 1, adding, one)])


def doubling_scan(members: int, _root: int, volume: Ints, /) -> Schedule:
    """Exchange with the member whose number differs in bit k: scan_intra_recursivedoubling.

    The later one of a pair adds what comes to its result; both add it to what they send next.
    """
    return _doubling(members, volume, exclusive=False)


def doubling_exscan(members: int, _root: int, volume: Ints, /) -> Schedule:
    """As the scan; what comes first is the result so far: exscan_intra_recursivedoubling."""
    return _doubling(members, volume, exclusive=True)


def _doubling(members: int, volume: Ints, exclusive: bool) -> Schedule:
    me, one = np.arange(members), volume[:1]
    rounds: list[tuple[Ints, Ints, Ints]] = []
    copied: list[Done] = [(-1, me, one if exclusive else 2 * one)]
    reduced: list[Done] = []
    for k, mask in enumerate(masks(members)):
        src = me[me ^ mask < members]
        later = src[src & mask != 0]
        rounds.append((src, src ^ mask, np.full(len(src), one[0])))
        first = exclusive & (later & (mask - 1) == 0)
        copied.append((k, later[first], one))
        reduced += [(k, later[~first], one), (k, src, one)]
    return schedule(rounds, copied, reduced)
