"""Programs as SimGrid's time-independent traces, which its ``smpirun -replay`` reads.

One file a rank, one action a line: ``rank action arguments``. Computation is given in floating
point operations, so that the speed of the hosts turns it into seconds. Source: SimGrid 3.32,
src/smpi/internals/smpi_replay.cpp, and its documentation, "Replaying traces". What is written:

* ``init``, which without an argument makes sizes bytes, and ``finalize``;
* ``compute flops``;
* ``send target tag bytes``, ``isend`` likewise, ``recv source tag bytes``, ``irecv`` likewise;
* ``wait source target tag``: for the oldest request of these that nobody has waited for.

Collectives are written as their messages, so that both simulators replay the same ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hopmap.errors import HopmapWarning
from hopmap.simulator.programs.program import Op, Program
from hopmap.simulator.programs.send_modes import SendMode
from hopmap.simulator.programs.unrolling import without_loops
from hopmap.traces import TraceError, require_memory
from hopmap.traces.safety.atomic_files import replacing_folder

Ints = NDArray[np.int64]

INDEX = "traces.txt"  # file that names the ranks' files, one a line
FLOPS = 1e9  # of a host, in one second
BYTES_PER_ROW = 100  # in memory: the program without loops, its flops, tags and sizes


def write_tit(folder: str | Path, program: Program, *, compute_scale: float = 1.0) -> None:
    """Write a program into a folder, which is made, or replaced as a whole.

    Parameters
    ----------
    compute_scale : float
        As `Parameters.compute_scale`; computation of 0 s is left out.

    Raises
    ------
    TraceError
        Non-blocking collectives, which go on beside their rank: a trace of this format cannot.
    OutOfMemoryError
        A program whose loops, written out, do not fit.
    """
    with replacing_folder(folder) as partial:
        fill_tit(partial, program, compute_scale=compute_scale)


def fill_tit(folder: Path, program: Program, *, compute_scale: float = 1.0) -> None:
    """Write a program into a folder that is there; see `write_tit`."""
    warn_of_modes(program)
    if program.strands > program.ranks:
        strand = int(np.flatnonzero(np.diff(program.rank_of) == 0)[0]) + 1
        rank, what = int(program.rank_of[strand]), "begins a non-blocking collective"
        if program.serves_memory(strand):
            what = "is the target of one-sided operations"
        raise TraceError(
            f"{program.name}: rank {rank} {what}: expected a trace without them, which is all that "
            f"a time-independent trace can say"
        )
    operations = int(program.trips().sum())
    require_memory(
        BYTES_PER_ROW * operations,
        f"{program.name}: a trace of {operations:,} operations",
        "take fewer steps or ranks",
    )
    program = without_loops(program)
    names = [f"rank{rank}.tit" for rank in range(program.ranks)]
    (folder / INDEX).write_text("".join(f"{name}\n" for name in names), encoding="ascii")
    flops = program.compute * compute_scale * FLOPS
    tag, size = _tags(program), message_sizes(program)
    for rank, name in enumerate(names):
        rows = slice(int(program.offsets[rank]), int(program.offsets[rank + 1]))
        with (folder / name).open("w", encoding="ascii") as file:
            file.writelines(_actions(program, rank, rows, flops[rows], tag, size[rows]))


def _actions(
    program: Program, rank: int, rows: slice, flops: NDArray[np.float64], tag: Ints, size: Ints
) -> Iterator[str]:
    """Lines of one rank."""
    target = program.target[rows]
    waits = program.kind[rows] == Op.WAIT
    # A wait has the partner and tag of what it waits for.
    of = np.where(waits, target, np.arange(rows.start, rows.stop))
    sent = np.isin(program.kind[of], (Op.SEND, Op.ISEND))
    columns = (program.kind[rows], flops, program.peer[of], tag[of], size, sent)
    yield f"{rank} init\n"
    for kind, work, peer, label, amount, sends in zip(*(c.tolist() for c in columns), strict=True):
        if work > 0:
            yield f"{rank} compute {work!r}\n"
        if kind in WORDS:
            yield f"{rank} {WORDS[kind]} {peer} {label} {amount}\n"
        elif kind == Op.WAIT:
            ends = f"{rank} {peer}" if sends else f"{peer} {rank}"
            yield f"{rank} wait {ends} {label}\n"
    yield f"{rank} finalize\n"


WORDS = {int(op): op.name.lower() for op in (Op.SEND, Op.ISEND, Op.RECV, Op.IRECV)}


def warn_of_modes(program: Program) -> None:
    """Warn of sends in another mode than standard, which formats of other simulators lack."""
    mode = program.mode[program.sends()]
    puts = mode >= SendMode.PUT
    counted = {
        "buffered, synchronous or ready sends": int(((mode > 0) & ~puts).sum()),
        "puts, and answers of memory,": int(puts.sum()),
    }
    for what, sends in counted.items():
        if sends:
            said = f"{program.name}: {sends} {what} are written as standard"
            warnings.warn(said, HopmapWarning, stacklevel=3)


def message_sizes(program: Program) -> Ints:
    """Bytes of each row; a receive has those of the message that it takes."""
    size = program.size.copy()
    sends, receives = program.sends(), program.receives()
    taken = receives >= 0
    size[receives[taken]] = program.size[sends[taken]]
    return size


def _tags(program: Program) -> Ints:
    """Tag of each row that sends or receives: one for each tag of a communicator or collective.

    Where requests of a channel are not waited for in the order in which they began, each message
    of that channel has a tag of its own, so that a wait finds the right one.
    """
    channel, kind = program.channels(), program.kind
    rows = np.flatnonzero(channel >= 0)
    pairs = np.stack((program.context[rows], program.tag[rows]))
    labels, label = np.unique(pairs, axis=1, return_inverse=True)
    tag = np.full(program.operations, -1, dtype=np.int64)
    tag[rows] = label.reshape(-1)

    sending = (kind[rows] == Op.SEND) | (kind[rows] == Op.ISEND)
    side = channel[rows] * 2 + sending
    apart = np.isin(channel[rows], _disordered(program, channel))
    mine, order = rows[apart], np.argsort(side[apart], kind="stable")
    ordered = side[apart][order]
    place = np.empty(len(mine), dtype=np.int64)
    place[order] = np.arange(len(mine)) - np.searchsorted(ordered, ordered)
    # As many tags for each channel as it has messages, or receives if they are more.
    used = np.zeros(int(channel.max(initial=-1)) + 1, dtype=np.int64)
    np.maximum.at(used, channel[mine], place + 1)
    tag[mine] = labels.shape[1] + (np.cumsum(used) - used)[channel[mine]] + place
    return tag


def _disordered(program: Program, channel: Ints) -> Ints:
    """Channels with requests that nobody waits for, or not in the order in which they began."""
    requests = np.flatnonzero((program.kind == Op.ISEND) | (program.kind == Op.IRECV))
    waits = np.flatnonzero(program.kind == Op.WAIT)
    waited = np.full(program.operations, -1, dtype=np.int64)
    waited[program.target[waits]] = waits
    side = channel[requests] * 2 + (program.kind[requests] == Op.ISEND)
    order = np.argsort(side, kind="stable")
    side, when = side[order], waited[requests][order]
    bad = when < 0
    bad[1:] |= (side[1:] == side[:-1]) & (when[1:] < when[:-1])
    return np.unique(side[bad] // 2)
