"""Buffers that algorithms allocate in every call, as large as what their sources ask malloc for.

Sources: Open MPI, ompi/mca/coll/base/coll_base_*.c, the same in 4.1 and 5.0; for Bine's algorithms
and MPICH's, HLC-Lab/pico, libbine/libbine_*.c. Left out are buffers of a block or a segment beside
one of the whole buffer, and what is put into memory (`Schedule.puts`), which is registered once.
What is not listed allocates nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints

from .schedules import NO_BUFFERS, Buffers, Schedule


class Call(NamedTuple):
    """A call: its messages, and what it was made of."""

    given: Schedule
    members: int
    root: int
    volume: Ints


Allocation = Callable[[Call], Buffers]


def buffers_of(operation: str, algorithm: str, call: Call) -> Buffers:
    """List what members allocate in a call by an algorithm, both keys of `ALGORITHMS`."""
    allocation = ALLOCATED.get(operation, {}).get(algorithm)
    return NO_BUFFERS if allocation is None or call.given.puts else allocation(call)


def _each(size: Ints | int, members: int, count: int) -> Buffers:
    sizes = np.broadcast_to(size, members)
    return Buffers(np.tile(np.arange(members), count), np.tile(sizes, count))


def _wholes(count: int) -> Allocation:
    """As many buffers as large as all that a member has, on everyone."""
    return lambda call: _each(
        call.volume.sum(axis=-1 if call.volume.ndim == 2 else None), call.members, count
    )


def _largest_message(count: int) -> Allocation:
    """As many buffers as large as the largest message, on everyone."""
    return lambda call: _each(call.given.size.max(initial=0), call.members, count)


def _of_root(call: Call) -> Buffers:
    """Give the root a whole buffer."""
    found = _wholes(1)(call)
    return found.at(found.member == call.root)


def _of_others(call: Call) -> Buffers:
    """Give everyone but the root a whole buffer."""
    found = _wholes(1)(call)
    return found.at(found.member != call.root)


def _own_and_others(call: Call) -> Buffers:
    """Give everyone a whole buffer, and everyone but the root another."""
    parts = _wholes(1)(call), _of_others(call)
    return Buffers(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _in_tree(last: bool = False) -> Allocation:
    """On who has children and is no root what is added up; on both what comes in, from two at most.

    With `last`, the last member is the root of the tree, and passes the result on.
    """

    def allocation(call: Call) -> Buffers:
        given, members, root, volume = call
        passes_on = last and root != members - 1
        edges, messages = np.unique(given.src * members + given.dst, return_counts=True)
        inside = (edges != (members - 1) * members + root) | (not passes_on)
        children = np.bincount(edges[inside] % members, minlength=members)
        incoming = np.minimum(children, 2) if messages[inside].max(initial=1) == 1 else 0
        count = (children > 0) + incoming  # else segments come in
        count[root] -= children[root] > 0 and not passes_on
        member = np.repeat(np.arange(members), count)
        return Buffers(member, np.full(len(member), volume[0]))

    return allocation


def _behind(call: Call) -> Buffers:
    """As large as the blocks behind each member, which Bruck's allgather puts into order."""
    behind = call.volume.sum() - np.cumsum(call.volume)[:-1]
    return Buffers(np.arange(1, call.members), behind)


def _inner_wholes(call: Call) -> Buffers:
    """Give who passes on what comes a whole buffer; a root only if it is not the first."""
    inner = np.unique(call.given.dst)
    inner = inner[(inner != call.root) | (call.root > 0)]
    return Buffers(inner, np.full(len(inner), call.volume.sum()))


def _passed_on(call: Call) -> Buffers:
    """As large as what is received to pass on; whole on a root that is not the first."""
    given = call.given
    received = np.bincount(given.dst, given.size, call.members).astype(np.int64)
    received[call.root] = call.volume.sum() if call.root > 0 else 0
    inner = np.intersect1d(given.src, np.flatnonzero(received))
    return Buffers(inner, received[inner])


_GATHER: Mapping[str, Allocation] = {
    "binomial": _inner_wholes,
    "bine": _of_others,
    "bine_increasing": _of_others,
    "bine_ranges": _of_others,
}
_SCATTER: Mapping[str, Allocation] = {
    "binomial": _passed_on,
    "bine": _passed_on,
    "bine_decreasing": _passed_on,
    "bine_ranges": _passed_on,
}
_ALLGATHER: Mapping[str, Allocation] = {"bruck": _behind}
_ALLTOALL: Mapping[str, Allocation] = {
    "bruck": _wholes(1),
    "bruck_by_blocks": _wholes(2),  # one, and two halves
    "bine": _wholes(1),
}
_REDUCE_SCATTER: Mapping[str, Allocation] = {
    "recursive_halving": _wholes(2),
    "butterfly": _wholes(2),
    "ring": _wholes(1),
    "pairwise": _largest_message(1),
    "bine": _wholes(2),
    "bine_sending": _wholes(2),
    "bine_any_even": _wholes(2),
    "reduce_scatter": _of_root,
}
ALLOCATED: Mapping[str, Mapping[str, Allocation]] = {
    "gather": _GATHER,
    "gatherv": _GATHER,
    "scatter": _SCATTER,
    "scatterv": _SCATTER,
    "allgather": _ALLGATHER,
    "allgatherv": _ALLGATHER,
    "alltoall": _ALLTOALL,
    "alltoallv": _ALLTOALL,
    "alltoallw": _ALLTOALL,
    "allreduce": {
        "recursive_doubling": _wholes(1),
        "rabenseifner": _wholes(1),
        "ring": _largest_message(2),
        "segmented_ring": _largest_message(2),
        "linear": _of_root,
        "bine": _wholes(1),
        "bine_folded": _wholes(1),
        "bine_halving": _wholes(1),
        "bine_halving_in_turns": _largest_message(2),
        "bine_any_even": _wholes(1),
    },
    "reduce": {
        "binomial": _in_tree(),
        "binary": _in_tree(),
        "chain": _in_tree(),
        "pipeline": _in_tree(),
        "in_order_binary": _in_tree(last=True),
        "linear": _of_root,
        "rabenseifner": _own_and_others,
        "bine": _own_and_others,
        "bine_whole": _own_and_others,
        "bine_reduce_scatter_gather": _own_and_others,
        "bine_reduce_scatter_gather_copied": _own_and_others,
    },
    "reduce_scatter": _REDUCE_SCATTER,
    "reduce_scatter_block": _REDUCE_SCATTER,
    "scan": {"recursive_doubling": _wholes(2)},
    "exscan": {"recursive_doubling": _wholes(2)},
}
