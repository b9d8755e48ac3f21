"""Communicators by the handles, own ranks and sizes that calls name, and their members.

Handles are addresses or numbers of the process: what they have in common is found by what fits. All
of the world, each in its own place, is MPI_COMM_WORLD; of one member, MPI_COMM_SELF. Of others, the
processes that use the same handle, or the k-th of their handles, are one communicator if their
ranks are 0 to size - 1, each once; else a call of MPI_Comm_split decides whose colours do fit. If
all say that they are rank 0 of the world, they are copies of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints
from hopmap.traces.trace import TraceError

from .lines import SIGNATURES, Lines, Rank

_MPICH_WORLD = 0x44000000
SELF = 1  # number of MPI_COMM_SELF


def communicators_of(ranks: list[Rank]) -> Resolved:
    """Find out who is in which communicator."""
    used, splits = [], []
    for rank in ranks:
        seen: dict[Key, int] = {}
        for function in rank.names:
            if "comm" not in SIGNATURES.get(function, ()):
                continue
            lines = Lines(rank, function)
            keys = np.stack([lines.get("comm", k) for k in range(3)], axis=1)
            rows, at = np.unique(keys, axis=0, return_index=True)
            for key, k in zip(map(tuple, rows.tolist()), at.tolist(), strict=True):
                call = int(lines.calls[k])
                if not 0 <= key[1] < key[2]:
                    raise lines.wrong(k)
                if key[2] > len(ranks):
                    raise TraceError(
                        f"{rank.fields.file}: a communicator of {key[2]} ranks, and {len(ranks)} "
                        "files: expected the files of all ranks"
                    )
                seen[key] = min(call, seen.get(key, call))
        used.append(sorted(seen, key=seen.__getitem__))
        lines = Lines(rank, "MPI_Comm_split")
        parents = zip(*(lines.get("comm", k).tolist() for k in range(3)), strict=True)
        colours = lines.get("color").tolist(), lines.get("key").tolist()
        splits.append(list(zip(parents, *colours, strict=True)))
    found = resolve(used, splits)
    for number, of_rank in enumerate(used):
        for key in of_rank:
            if key not in found.number[number]:
                raise TraceError(
                    f"{ranks[number].fields.file}: communicator {key[0]}, rank {key[1]} of "
                    f"{key[2]}: its members are unknown: expected MPI_COMM_WORLD, or one made "
                    "by MPI_Comm_split"
                )
    return found


def is_of_mpich(numbers: dict[Key, int]) -> bool:
    """Whether a rank's handles are MPICH's, which has one number for MPI_COMM_WORLD."""
    return any(handle == _MPICH_WORLD for handle, *_ in numbers)


def numbers_of(lines: Lines, numbers: dict[Key, int]) -> Ints:
    """Communicator of each call."""
    keys = np.stack([lines.get("comm", k) for k in range(3)], axis=1)
    rows, inverse = np.unique(keys, axis=0, return_inverse=True)
    known = [numbers[a, b, c] for a, b, c in rows.tolist()]
    return np.array(known, dtype=np.int64)[inverse.reshape(-1)]


Key = tuple[int, int, int]  # handle, own rank and size


class Resolved(NamedTuple):
    """What handles mean."""

    # World ranks, in the communicator's order; the first is MPI_COMM_WORLD, and the second, which
    # is empty, MPI_COMM_SELF
    members: list[Ints]
    number: list[dict[Key, int]]  # by process, the communicator of each handle that was found
    copies: bool = False  # whether all processes say that they are rank 0 of the world


def resolve(
    used: Sequence[Sequence[Key]], splits: Sequence[Sequence[tuple[Key, int, int]]]
) -> Resolved:
    """Find out who is in which communicator.

    `used` are communicators by process, in the order in which they first appear; `splits` the calls
    of MPI_Comm_split by process, in order: parent, colour, key.
    """
    ranks = len(used)
    found = Resolved([np.arange(ranks), np.zeros(0, dtype=np.int64)], [{} for _ in used])
    whole = [[key for key in keys if key[1:] == (rank, ranks)] for rank, keys in enumerate(used)]
    handles = [sorted({key[0] for key in keys}) for keys in whole]
    equal = all(each == handles[0] for each in handles) and len(handles[0]) > 1
    open_: list[list[Key]] = []
    for rank, keys in enumerate(used):
        numbers = found.number[rank]
        for key in keys:
            if key in whole[rank]:
                numbers[key] = 0
            elif key[2] == 1:
                numbers[key] = 1
        open_.append([key for key in keys if key not in numbers])
    if equal:  # copies of the world: the same handle is the same communicator
        first = whole[0][0][0]
        for handle in handles[0]:
            if handle != first:
                found.members.append(np.arange(ranks))
                for rank in range(ranks):
                    found.number[rank][handle, rank, ranks] = len(found.members) - 1
    for by_turn in (False, True):
        for together in _group_calls(open_, found.number, by_turn=by_turn):
            _settle(together, splits, found)
    whose = zip(open_, found.number, strict=True)
    strange = {key for keys, known in whose for key in keys if key not in known}
    for copied in strange if len(strange) == 1 else ():
        if all(copied in keys for keys in used) and found.number[0].get(copied) == 0:
            for known in found.number:
                known[copied] = 0
            return found._replace(copies=True)
    return found


def _group_calls(
    open_: Sequence[Sequence[Key]], known: Sequence[Mapping[Key, int]], *, by_turn: bool
) -> Iterator[list[tuple[int, Key]]]:
    """Put together what has one size and handle, or one turn among a process's handles."""
    groups: dict[tuple[int, int], list[tuple[int, Key]]] = {}
    for rank, keys in enumerate(open_):
        for turn, key in enumerate(keys):
            if key not in known[rank]:
                group = (turn if by_turn else key[0], key[2])
                groups.setdefault(group, []).append((rank, key))
    yield from groups.values()


def _settle(
    together: list[tuple[int, Key]],
    splits: Sequence[Sequence[tuple[Key, int, int]]],
    found: Resolved,
) -> None:
    """Note the communicators that these are, if they can be."""
    size = together[0][1][2]
    own = dict(together)
    places = sorted(key[1] for key in own.values())
    if len(together) == len(own) == size and places == list(range(size)):
        _add(sorted(own, key=lambda rank: own[rank][1]), own, found)
        return
    for turn in range(max(map(len, splits), default=0)):
        groups: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        for rank, calls in enumerate(splits):
            if turn < len(calls) and calls[turn][0] in found.number[rank]:
                parent, colour, key = calls[turn]
                group = (found.number[rank][parent], colour)
                groups.setdefault(group, []).append((key, parent[1], rank))
        sides = [[rank for *_, rank in sorted(group)] for group in groups.values()]
        fits = [
            side
            for side in sides
            if len(side) == size
            and all(rank in own and own[rank][1] == at for at, rank in enumerate(side))
        ]
        if sum(map(len, fits)) == len(own):
            for side in fits:
                _add(side, own, found)
            return


def _add(side: list[int], own: Mapping[int, Key], groups: Resolved) -> None:
    groups.members.append(np.array(side, dtype=np.int64))
    for rank in side:
        groups.number[rank][own[rank]] = len(groups.members) - 1
