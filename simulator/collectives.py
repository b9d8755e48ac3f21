"""Collective operations as rounds of point-to-point messages.

A schedule lists who sends how many bytes to whom in which round, by position in the communicator.
In a round a member posts its receives, then its sends, and waits for all of them; a message
carries what its sender held when the round began. Reductions take no time themselves.

What an operation moves is a volume, see `volumes.py`: one whole buffer, a block of bytes per
member, or bytes per pair of members.

Sources: R. Thakur, R. Rabenseifner, W. Gropp, Optimization of collective communication operations
in MPICH, 2005; J. Bruck et al., Efficient algorithms for all-to-all communications, 1997;
D. Hensgen, R. Finkel, U. Manber, Two algorithms for barrier synchronization, 1988.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..traces import Collective
from .volumes import volume

Ints = NDArray[np.int64]


class Schedule(NamedTuple):
    """Messages of one collective, sorted by round; all of shape (messages,).

    Attributes
    ----------
    round : ndarray(int64)
    src, dst : ndarray(int64)
        Positions in the communicator.
    size : ndarray(int64)
        Bytes.
    """

    round: Ints
    src: Ints
    dst: Ints
    size: Ints


Algorithm = Callable[[int, int, Ints], Schedule]  # (members, root, volume)


def _schedule(rounds: Iterable[tuple[Ints, Ints, Ints]]) -> Schedule:
    """Give each round, a tuple (src, dst, size), its number."""
    columns = [(np.full(len(src), k), src, dst, size) for k, (src, dst, size) in enumerate(rounds)]
    if not columns:
        return Schedule(*(np.zeros(0, dtype=np.int64) for _ in range(4)))
    return Schedule(
        *(np.concatenate(column).astype(np.int64) for column in zip(*columns, strict=True))
    )


def _masks(members: int) -> list[int]:
    """1, 2, 4, ... below the number of members."""
    return [1 << k for k in range((members - 1).bit_length())]


def dissemination(members: int, _root: int, volume: Ints) -> Schedule:
    """Barrier: in round k everyone tells the member 2^k further on."""
    me = np.arange(members)
    size = np.full(members, volume[0])
    return _schedule((me, (me + mask) % members, size) for mask in _masks(members))


def _tree(members: int, root: int, blocks: Ints | None, whole: int) -> Schedule:
    """Binomial tree towards the root; a message carries the sender's subtree, or the whole."""
    inner = None if blocks is None else np.concatenate(([0], np.cumsum(np.roll(blocks, -root))))
    rounds = []
    for mask in _masks(members):
        parent = np.arange(0, members - mask, 2 * mask)
        child = parent + mask
        if inner is None:
            size = np.full(len(child), whole)
        else:
            size = inner[np.minimum(child + mask, members)] - inner[child]
        rounds.append(((child + root) % members, (parent + root) % members, size))
    return _schedule(rounds)


def _reversed(schedule: Schedule) -> Schedule:
    """Send the same messages the other way, last round first."""
    last = schedule.round.max(initial=0)
    order = np.argsort(last - schedule.round, kind="stable")
    turned = Schedule(last - schedule.round, schedule.dst, schedule.src, schedule.size)
    return Schedule(*(column[order] for column in turned))


def binomial_reduce(members: int, root: int, volume: Ints) -> Schedule:
    """Binomial tree towards the root; every message is the whole buffer."""
    return _tree(members, root, None, int(volume[0]))


def binomial_bcast(members: int, root: int, volume: Ints) -> Schedule:
    """Binomial tree from the root, farthest subtree first."""
    return _reversed(binomial_reduce(members, root, volume))


def binomial_gather(members: int, root: int, volume: Ints) -> Schedule:
    """Binomial tree towards the root; a message carries all blocks of the sender's subtree."""
    return _tree(members, root, volume, 0)


def binomial_scatter(members: int, root: int, volume: Ints) -> Schedule:
    """Binomial tree from the root; a message carries all blocks of the receiver's subtree."""
    return _reversed(binomial_gather(members, root, volume))


def linear_gather(members: int, root: int, volume: Ints) -> Schedule:
    """Everyone sends to the root at once: its block, or the whole buffer of a reduction."""
    src = np.delete(np.arange(members), root)
    size = np.broadcast_to(volume, members)[src]
    return _schedule([(src, np.full(len(src), root), size)] if len(src) else [])


def linear_scatter(members: int, root: int, volume: Ints) -> Schedule:
    """Send from the root to everyone at once: its block, or a broadcast's whole buffer."""
    return _reversed(linear_gather(members, root, volume))


def recursive_doubling(members: int, _root: int, volume: Ints) -> Schedule:
    """Allreduce: exchange with the member whose number differs in bit k.

    Beyond the last power of two, members 0, 2, 4, ... first fold into 1, 3, 5, ... and get the
    result back in the end.
    """
    whole = int(volume[0])
    power = 1 << (members.bit_length() - 1)
    extra = members - power
    folded = np.arange(0, 2 * extra, 2)
    active = np.concatenate((folded + 1, np.arange(2 * extra, members)))
    rounds = [(folded, folded + 1, np.full(extra, whole))] if extra else []
    me = np.arange(power)
    for mask in _masks(power):
        rounds.append((active[me], active[me ^ mask], np.full(power, whole)))
    if extra:
        rounds.append((folded + 1, folded, np.full(extra, whole)))
    return _schedule(rounds)


def ring(members: int, _root: int, volume: Ints) -> Schedule:
    """Allgather: pass on to the next member the block that came in last."""
    me = np.arange(members)
    return _schedule(
        (me, (me + 1) % members, volume[(me - k) % members]) for k in range(members - 1)
    )


def bruck(members: int, _root: int, volume: Ints) -> Schedule:
    """Allgather: send the 2^k blocks held (at the end, those still missing) 2^k members back."""
    me = np.arange(members)
    held = np.concatenate(([0], np.cumsum(np.tile(volume, 2))))
    rounds = []
    for mask in _masks(members):
        count = min(mask, members - mask)
        rounds.append((me, (me - mask) % members, held[me + count] - held[me]))
    return _schedule(rounds)


def pairwise(members: int, _root: int, volume: Ints) -> Schedule:
    """Alltoall: in round k send to the member k further on, receive from k further back."""
    me = np.arange(members)
    return _schedule(
        (me, (me + k) % members, volume[me, (me + k) % members]) for k in range(1, members)
    )


def linear_exchange(members: int, _root: int, volume: Ints) -> Schedule:
    """Alltoall: post everything at once."""
    flat = pairwise(members, 0, volume)
    return flat._replace(round=np.zeros_like(flat.round))


def pairwise_reduce_scatter(members: int, _root: int, volume: Ints) -> Schedule:
    """Reduce-scatter: in round k send the member k further on its own contribution's block."""
    return pairwise(members, 0, np.broadcast_to(volume, (members, members)))


def reduce_then_scatter(members: int, _root: int, volume: Ints) -> Schedule:
    """Reduce-scatter: binomial reduction to the first member, which scatters the blocks."""
    reduce = binomial_reduce(members, 0, volume.sum(keepdims=True))
    scatter = binomial_scatter(members, 0, volume)
    later = scatter._replace(round=scatter.round + reduce.round.max(initial=-1) + 1)
    return Schedule(*(np.concatenate(columns) for columns in zip(reduce, later, strict=True)))


def chain(members: int, _root: int, volume: Ints) -> Schedule:
    """Scan: each member waits for the one before it."""
    one = volume[:1]
    return _schedule((np.array([k]), np.array([k + 1]), one) for k in range(members - 1))


def doubling_scan(members: int, _root: int, volume: Ints) -> Schedule:
    """Scan: in round k send what is known to the member 2^k further on."""
    rounds = []
    for mask in _masks(members):
        src = np.arange(members - mask)
        rounds.append((src, src + mask, np.full(len(src), volume[0])))
    return _schedule(rounds)


_TREE_GATHER = {"binomial": binomial_gather, "linear": linear_gather}
_TREE_SCATTER = {"binomial": binomial_scatter, "linear": linear_scatter}
_EXCHANGE = {"pairwise": pairwise, "linear": linear_exchange}
_REDUCE_SCATTER = {"pairwise": pairwise_reduce_scatter, "reduce_scatter": reduce_then_scatter}
_SCAN = {"recursive_doubling": doubling_scan, "linear": chain}

# By operation; the first algorithm is the default.
ALGORITHMS: Mapping[str, Mapping[str, Algorithm]] = {
    "barrier": {"dissemination": dissemination},
    "bcast": {"binomial": binomial_bcast, "linear": linear_scatter},
    "gather": _TREE_GATHER,
    "gatherv": dict(reversed(_TREE_GATHER.items())),
    "scatter": _TREE_SCATTER,
    "scatterv": dict(reversed(_TREE_SCATTER.items())),
    "allgather": {"bruck": bruck, "ring": ring},
    "allgatherv": {"ring": ring, "bruck": bruck},
    "alltoall": _EXCHANGE,
    "alltoallv": _EXCHANGE,
    "alltoallw": _EXCHANGE,
    "allreduce": {"recursive_doubling": recursive_doubling},
    "reduce": {"binomial": binomial_reduce, "linear": linear_gather},
    "reduce_scatter": _REDUCE_SCATTER,
    "reduce_scatter_block": _REDUCE_SCATTER,
    "scan": _SCAN,
    "exscan": _SCAN,
}


def schedule_of(
    operation: Collective,
    root: int,
    sent: Ints,
    received: Ints,
    algorithms: Mapping[str, str] | None = None,
) -> Schedule:
    """Messages of one collective call.

    Creating, destroying, allocating and freeing handles synchronise: they are barriers.

    Parameters
    ----------
    root : int
        Position of the root, or -1.
    sent, received : ndarray(int64, shape=(members,))
        Bytes as recorded at each member, see `volume`.
    algorithms : mapping of str to str, optional
        Choices other than the default.
    """
    name = operation.name.lower()
    if name not in ALGORITHMS:
        name, operation = "barrier", Collective.BARRIER
    table = ALGORITHMS[name]
    algorithm = table[(algorithms or {}).get(name, next(iter(table)))]
    return algorithm(len(sent), max(root, 0), volume(operation, root, sent, received))
