"""The companion of a trace that says who sends how much to whom in MPI_Alltoallv and _Alltoallw.

OTF2 has one number of bytes sent and one received for each member of a collective. A file beside
the anchor, ``traces.counts`` beside ``traces.otf2``, has the counts themselves: a table in text::

    # comments begin like this
    rank,call,peer,bytes
    0,0,1,4096

* rank: world rank of the sender.
* call: how many of these calls the rank began before, non-blocking ones included, on communicators
  of at least two members.
* peer: place in `sendcounts`, that is, rank in the communicator.
* bytes: ``sendcounts[peer]`` times the size of the type. Pairs without bytes may be left out; with
  MPI_IN_PLACE, bytes are those of `recvcounts`, without one's own.

Whoever uses them compares the sums of every call with those of the trace.
"""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import numpy as np

from .safety.atomic_files import replacing
from .safety.memory import require_memory
from .trace import PairCounts, TraceError

HEADER = "rank,call,peer,bytes"
SUFFIX = ".counts"
_PER_BYTE = 20  # bytes of memory that reading takes at its peak, a byte of the file


def companion_of(anchor: Path) -> Path:
    """Return where the counts of an archive stand, whether they are there or not."""
    return anchor.with_suffix(SUFFIX)


def read_pair_counts(path: str | Path) -> PairCounts:
    """Read a file of counts.

    Raises
    ------
    TraceError
        Not such a table, numbers below 0, or a pair that is listed twice; the message names file,
        row and value.
    """
    file = Path(path)
    try:
        size = file.stat().st_size
        require_memory(_PER_BYTE * size, f"{file}: {size:,} bytes of counts", "leave out steps")
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(f"{file}: cannot be read: {' '.join(str(error).split())}") from None
    lines = [line for line in text.splitlines() if line.partition("#")[0].strip()]
    if not lines or lines[0].partition("#")[0].replace(" ", "").rstrip() != HEADER:
        first = lines[0][:60] if lines else ""
        raise TraceError(f"{file}: header {first!r}: expected {HEADER}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # no rows: nothing was sent
            rows = np.loadtxt(io.StringIO("\n".join(lines[1:])), np.int64, delimiter=",", ndmin=2)
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise TraceError(f"{file}: expected whole numbers {HEADER}: {reason}") from None
    if rows.size and rows.shape[1] != 4:
        raise TraceError(f"{file}: {rows.shape[1]} columns: expected {HEADER}")
    rows = rows.reshape(-1, 4)
    bad = np.argwhere(rows < 0)
    if bad.size:
        row, column = bad[0]
        raise TraceError(
            f"{file}: row {row}: {HEADER.split(',')[column]} {rows[row, column]}: expected at "
            "least 0"
        )
    rows = rows[np.lexsort(rows[:, 2::-1].T)]
    twice = np.flatnonzero((rows[1:, :3] == rows[:-1, :3]).all(axis=1))
    if twice.size:
        rank, call, peer, _ = rows[twice[0]].tolist()
        raise TraceError(f"{file}: rank {rank}, call {call}: peer {peer} is listed twice")
    return PairCounts(str(file), *rows.T.copy())


def write_pair_counts(path: str | Path, counts: PairCounts) -> None:
    """Write a file of counts, sorted; it appears whole or not at all.

    Raises
    ------
    OSError
        The folder cannot be written.
    """
    some = counts.size > 0
    rows = np.stack([np.asarray(column)[some] for column in counts[1:]], axis=1)
    rows = rows[np.lexsort(rows[:, 2::-1].T)]
    with replacing(path) as partial:
        np.savetxt(partial, rows, fmt="%d", delimiter=",", header=HEADER, comments="")
