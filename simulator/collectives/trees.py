"""Collectives with a root: along trees and chains.

Sources: R. Thakur, R. Rabenseifner, W. Gropp, Optimization of collective communication operations
in MPICH, 2005 (binomial trees; scatter and allgather, after R. van de Geijn's group: M. Barnett et
al., Building a high-performance collective communication library, 1994); J. Pjesivac-Grbovic et
al., Performance analysis of MPI collective operations, 2007 (chain, pipeline, binary tree).
"""

from __future__ import annotations

import numpy as np

from .exchanges import doubling_allgather, ring
from .schedules import (
    Ints,
    Schedule,
    backwards,
    cut,
    edges,
    masks,
    one_after_another,
    renumbered,
    schedule,
)

RADIX = 4  # of k-nomial trees, as in Open MPI
SEGMENT = 128 * 1024  # bytes of a pipeline's segment, as in Open MPI until 4.0


def _tree(members: int, root: int, blocks: Ints | None, whole: int) -> Schedule:
    """Binomial tree towards the root; a message carries the sender's subtree, or the whole."""
    inner = None if blocks is None else edges(np.roll(blocks, -root))
    rounds = []
    for mask in masks(members):
        parent = np.arange(0, members - mask, 2 * mask)
        child = parent + mask
        if inner is None:
            size = np.full(len(child), whole)
        else:
            size = inner[np.minimum(child + mask, members)] - inner[child]
        rounds.append(((child + root) % members, (parent + root) % members, size))
    return schedule(rounds)


def binomial_reduce(members: int, root: int, volume: Ints) -> Schedule:
    """Binomial tree towards the root; every message is the whole buffer."""
    return _tree(members, root, None, int(volume[0]))


def binomial_bcast(members: int, root: int, volume: Ints) -> Schedule:
    """Binomial tree from the root, farthest subtree first."""
    return backwards(binomial_reduce(members, root, volume))


def binomial_gather(members: int, root: int, volume: Ints) -> Schedule:
    """Binomial tree towards the root; a message carries all blocks of the sender's subtree."""
    return _tree(members, root, volume, 0)


def binomial_scatter(members: int, root: int, volume: Ints) -> Schedule:
    """Binomial tree from the root; a message carries all blocks of the receiver's subtree."""
    return backwards(binomial_gather(members, root, volume))


def linear_gather(members: int, root: int, volume: Ints) -> Schedule:
    """Everyone sends to the root at once: its block, or the whole buffer of a reduction."""
    src = np.delete(np.arange(members), root)
    size = np.broadcast_to(volume, members)[src]
    return schedule([(src, np.full(len(src), root), size)] if len(src) else [])


def linear_scatter(members: int, root: int, volume: Ints) -> Schedule:
    """Send from the root to everyone at once: its block, or a broadcast's whole buffer."""
    return backwards(linear_gather(members, root, volume))


def knomial_bcast(members: int, root: int, volume: Ints) -> Schedule:
    """Tree of radix 4 from the root: three children a round, farthest subtrees first."""
    rounds = []
    mask = 1
    while mask < members:
        child = np.arange(mask, members, mask)
        child = child[child % (RADIX * mask) != 0]
        parent = child - child % (RADIX * mask)
        size = np.full(len(child), volume[0])
        rounds.append(((parent + root) % members, (child + root) % members, size))
        mask *= RADIX
    return schedule(reversed(rounds))


def binary_bcast(members: int, root: int, volume: Ints) -> Schedule:
    """Binary tree from the root, whole levels at a time: in a round each sends to two children."""
    rounds = []
    above = 1  # members in the level above, which are those from above - 1 on
    while 2 * above - 1 < members:
        child = np.arange(2 * above - 1, min(4 * above - 1, members))
        parent = above - 1 + (child - (2 * above - 1)) % above
        size = np.full(len(child), volume[0])
        rounds.append(((parent + root) % members, (child + root) % members, size))
        above *= 2
    return schedule(rounds)


def binary_reduce(members: int, root: int, volume: Ints) -> Schedule:
    """Binary tree towards the root, deepest level first."""
    return backwards(binary_bcast(members, root, volume))


def chain_bcast(members: int, root: int, volume: Ints) -> Schedule:
    """Pass the whole buffer on from member to member."""
    at = (np.arange(members) + root) % members
    return schedule((at[k : k + 1], at[k + 1 : k + 2], volume[:1]) for k in range(members - 1))


def chain_reduce(members: int, root: int, volume: Ints) -> Schedule:
    """Pass the partial result on towards the root from member to member."""
    return backwards(chain_bcast(members, root, volume))


def pipeline_bcast(members: int, root: int, volume: Ints) -> Schedule:
    """Pass the buffer on from member to member in segments, each behind the one before."""
    segments = max(-(-int(volume[0]) // SEGMENT), 1)
    size = np.full(segments, SEGMENT)
    size[-1] = volume[0] - SEGMENT * (segments - 1)
    rounds = []
    for k in range(segments + members - 2 if members > 1 else 0):
        place = np.arange(max(k - segments + 1, 0), min(k + 1, members - 1))
        src = (place + root) % members
        rounds.append((src, (src + 1) % members, size[k - place]))
    return schedule(rounds)


def pipeline_reduce(members: int, root: int, volume: Ints) -> Schedule:
    """Pass the partial result on towards the root in segments."""
    return backwards(pipeline_bcast(members, root, volume))


def scatter_allgather(members: int, root: int, volume: Ints) -> Schedule:
    """Scatter blocks along a binomial tree, then allgather by recursive doubling.

    For powers of two.
    """
    blocks = cut(int(volume[0]), members)
    both = one_after_another(
        binomial_scatter(members, 0, blocks), doubling_allgather(members, 0, blocks)
    )
    return renumbered(both, (np.arange(members) + root) % members)


def scatter_allgather_ring(members: int, root: int, volume: Ints) -> Schedule:
    """Scatter blocks along a binomial tree, then allgather in a ring."""
    blocks = cut(int(volume[0]), members)
    both = one_after_another(binomial_scatter(members, 0, blocks), ring(members, 0, blocks))
    return renumbered(both, (np.arange(members) + root) % members)
