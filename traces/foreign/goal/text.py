"""GOAL's text.

``num_ranks N``, then for every rank ``rank R { ... }`` with one statement a line:
``label: send SIZEb to RANK tag T cpu C nic N``, ``recv ... from``, ``calc NANOSECONDS cpu C``, and
``label requires label`` or ``label irequires label``. Labels stand before they are named; a source
or tag of -1 is any, tags count modulo 2^32. Comments are ``//`` and ``/* */``.

Source: spcl/LogGOPSim, src/LogGOPSim/txt2bin.re.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hopmap.traces.schedule import Schedule
from hopmap.traces.trace import TraceError
from hopmap.traces.traffic import MOST_RANKS


def schedule_of_text(file: Path, data: bytes) -> Schedule:
    """Return the schedule that a text says.

    Raises
    ------
    TraceError
        A statement that is not understood, ranks that are missing; the message names the line.
    """
    from . import parse_kernels as kernels

    text = np.frombuffer(data, dtype=np.uint8)
    most, named, listed = kernels.room(text)
    sorts: list[Any] = [np.uint8, *[np.int64] * 4, np.uint16, np.uint16, np.int64, np.int64]
    columns: Any = [np.empty(most, dtype=sort) for sort in sorts]
    rows = kernels.Operations(*columns)
    columns = [np.empty(most, dtype=sort) for sort in (np.int64, np.int64, np.bool_)]
    edges = kernels.Edges(*columns)
    labels = np.full(1 << (2 * named + 1).bit_length(), -1, dtype=np.int64)
    told = np.zeros(5, dtype=np.int64)
    order_of = np.zeros(listed + 1, dtype=np.int64)
    code, place, rank = kernels.parse(text, rows, edges, labels, order_of, told)
    if code != kernels.FINE:
        raise _wrong(file, data, code, place, rank)
    ranks, count, dependencies, again, listed = told.tolist()
    if ranks < 0:
        raise TraceError(f"{file}: no ranks: expected num_ranks and how many there are")
    if ranks > MOST_RANKS:
        raise TraceError(f"{file}: num_ranks {ranks}: expected at most {MOST_RANKS}")
    blocks = np.bincount(order_of[:listed], minlength=ranks)
    if (blocks != 1).any():
        odd = int(np.flatnonzero(blocks != 1)[0])
        raise TraceError(
            f"{file}: rank {odd} stands there {blocks[odd]} times: expected each of {ranks} ranks "
            "once"
        )
    if again:
        raise TraceError(f"{file}: {again} labels stand twice in a rank: expected each once")
    columns = [column[:count] for column in rows]
    rows = kernels.Operations(*columns)
    after, before = edges.after[:dependencies], edges.before[:dependencies]
    begun = edges.begun[:dependencies]
    if (rows.rank[1:] < rows.rank[:-1]).any():
        order = np.argsort(rows.rank, kind="stable")
        place_of = np.empty(count, dtype=np.int64)
        place_of[order] = np.arange(count)
        columns = [column[order] for column in rows]
        rows = kernels.Operations(*columns)
        after, before = place_of[after], place_of[before]
    return Schedule(
        name=str(file),
        offsets=np.searchsorted(rows.rank, np.arange(ranks + 1)).astype(np.int64),
        kind=rows.kind,
        size=rows.size,
        peer=rows.peer,
        tag=rows.tag,
        cpu=rows.cpu,
        nic=rows.nic,
        after=after,
        before=before,
        begun=begun,
    )


_OPERATION = "send SIZEb to RANK, recv SIZEb from RANK or calc NANOSECONDS"


def _wrong(file: Path, data: bytes, code: int, place: int, rank: int) -> TraceError:
    """Say what is wrong in a text."""
    from . import parse_kernels as kernels

    expected = {
        kernels.WRONG_STATEMENT: f"a label and a colon, requires or irequires; or {_OPERATION}",
        kernels.WRONG_OPERATION: _OPERATION,
        kernels.WRONG_NUMBER: f"a whole number >= 0 in {_OPERATION}",
        kernels.WRONG_LABEL: "labels of operations that stand above in this rank",
        kernels.WRONG_END: "tag, cpu or nic with a number, or the end of the line",
        kernels.TOO_LARGE: "at most 2^53 bytes or nanoseconds, and cpu and nic of 16 bits",
        kernels.OUTSIDE: "num_ranks, or rank R {",
        kernels.WRONG_RANK: "num_ranks N, then rank R { with R below N, and partners below N",
    }[code]
    if place >= len(data):
        return TraceError(f"{file}: ends within rank {rank}: expected a closing bracket: it is cut")
    line = data.count(b"\n", 0, place) + 1
    text = data[place:].split(b"\n", 1)[0][:60].decode("ascii", "replace").strip()
    inside = f" of rank {rank}" if rank >= 0 else ""
    return TraceError(f"{file}: line {line}{inside} is {text!r}: expected {expected}")
