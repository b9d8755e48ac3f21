"""Communicators by the handles, own ranks and sizes that a rank's calls name."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.trace import TraceError

from .lines import Lines, Rank
from .members import Key, Resolved, resolve
from .signatures import SIGNATURES, place

Ints = NDArray[np.int64]
_MPICH_WORLD = 0x44000000


def communicators_of(ranks: list[Rank]) -> Resolved:
    """Find out who is in which communicator."""
    used, splits = [], []
    for rank in ranks:
        seen: dict[Key, int] = {}
        for function in rank.names:
            if _place_of_comm(function) is None:
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
                    f"{key[2]}: its members cannot be told: expected MPI_COMM_WORLD, or one made "
                    "by MPI_Comm_split"
                )
    return found


def is_of_mpich(numbers: dict[Key, int]) -> bool:
    """Whether a rank's handles are MPICH's, which has one number for MPI_COMM_WORLD."""
    return any(handle == _MPICH_WORLD for handle, *_ in numbers)


def _place_of_comm(function: str) -> int | None:
    """Place of the communicator among the arguments, if there is one."""
    return place(function, "comm") if function in SIGNATURES else None


def numbers_of(lines: Lines, numbers: dict[Key, int]) -> Ints:
    """Communicator of each call."""
    keys = np.stack([lines.get("comm", k) for k in range(3)], axis=1)
    rows, inverse = np.unique(keys, axis=0, return_inverse=True)
    known = [numbers[a, b, c] for a, b, c in rows.tolist()]
    return np.array(known, dtype=np.int64)[inverse.reshape(-1)]


def world_of(peer: Ints, comm: Ints, members: list[Ints], name: str) -> Ints:
    """World ranks of partners given as ranks in communicators; below 0 they stay."""
    size = np.array([len(each) for each in members])
    size[1] = 1
    first = np.concatenate(([0], np.cumsum(size)))
    table = np.concatenate([each if len(each) else np.zeros(1, np.int64) for each in members])
    if (peer >= size[comm]).any():
        k = int(np.flatnonzero(peer >= size[comm])[0])
        raise TraceError(f"{name}: partner {peer[k]}: expected a rank below {size[comm[k]]}")
    return np.where(peer >= 0, table[first[comm] + np.maximum(peer, 0)], peer)
