"""The files of an OTF2 archive: finding them, and what they must hold before libotf2 sees them.

An archive's companion says who sends how much to whom in MPI_Alltoallv and _Alltoallw.
OTF2 has one number of bytes sent and one received for each member of a collective. A file next to
the anchor, ``traces.counts`` for ``traces.otf2``, has the counts themselves: a table in text::

    # comments begin like this
    rank,call,peer,bytes
    0,0,1,4096

* rank: world rank of the sender.
* call: how many of these calls the rank began before, non-blocking ones included, on communicators
  of at least two members.
* peer: place in `sendcounts`, that is, rank in the communicator.
* bytes: ``sendcounts[peer]`` times the size of the type. Pairs without bytes may be left out; with
  MPI_IN_PLACE, bytes are from `recvcounts`, without one's own.

The reader compares the sums of every call with the trace's.
"""

from __future__ import annotations

import io
import os
import warnings
from pathlib import Path
from typing import Literal

import numpy as np

from hopmap.traces.safety.atomic_files import replacing
from hopmap.traces.safety.memory import require_memory
from hopmap.traces.trace import PairCounts, TraceError

HEADER = "rank,call,peer,bytes"
SUFFIX = ".counts"
_PER_BYTE = 20  # bytes of memory that reading takes at its peak, a byte of the file


def companion_of(anchor: Path) -> Path:
    """Return where the counts of an archive stand, whether they are there or not."""
    return anchor.with_suffix(SUFFIX)


def read_pair_counts(path: str | Path) -> PairCounts:
    """Read a file of counts."""
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
    """Write a file of counts, sorted; it appears whole or not at all."""
    some = counts.size > 0
    rows = np.stack([np.asarray(column)[some] for column in counts[1:]], axis=1)
    rows = rows[np.lexsort(rows[:, 2::-1].T)]
    with replacing(path) as partial:
        np.savetxt(partial, rows, fmt="%d", delimiter=",", header=HEADER, comments="")


_LARGEST_ANCHOR = 1 << 20
_ANCHOR_STRINGS = 46  # where the first string of an anchor file begins
_WITH_PROPERTIES = b"\3"  # version of the anchor file's format


def find_archive(path: str | os.PathLike[str]) -> Path:
    """Return the anchor file of the archive that a path means."""
    archive = Path(path)
    if archive.is_file():
        if archive.suffix != ".otf2":
            raise TraceError(f"{archive}: not an OTF2 anchor file (*.otf2) or archive folder")
        return archive
    if not archive.is_dir():
        raise TraceError(f"{archive}: no such file or folder")
    found = sorted(archive.glob("*.otf2"))
    if archive / "traces.otf2" in found:  # what Score-P writes
        return archive / "traces.otf2"
    if len(found) != 1:
        names = ", ".join(entry.name for entry in found[:3]) or "none"
        raise TraceError(f"{archive}: expected one OTF2 anchor file (*.otf2) in it, found {names}")
    return found[0] if found[0].is_file() else find_archive(found[0])


def archive_files(path: str | os.PathLike[str]) -> list[Path]:
    """Return an archive's files: anchor, definitions, one or two a location, counts of pairs."""
    anchor = find_archive(path)
    definitions, folder = anchor.with_suffix(".def"), anchor.with_suffix("")
    inside = sorted(folder.iterdir()) if folder.is_dir() else []
    others = (definitions, *inside, companion_of(anchor))
    return [anchor, *(file for file in others if file.is_file())]


def expect_anchor(anchor: Path) -> None:
    """Turn away files that libotf2 takes long over (a corrupt count) or does not close again."""
    content = anchor.read_bytes() if anchor.stat().st_size < _LARGEST_ANCHOR else b""
    if content[2:7] != b"OTF2\0":
        raise TraceError(f"{anchor}: not an anchor file of OTF2")
    # Fixed fields, then machine, creator and description, then the number of properties.
    *_, properties = content[_ANCHOR_STRINGS:].split(b"\0", 3)
    byte_order: Literal["little", "big"] = "little" if content[1:2] == b"B" else "big"
    count = int.from_bytes(properties[:4], byte_order)
    if content[7:8] >= _WITH_PROPERTIES and 2 * count > len(content):
        raise TraceError(f"{anchor}: {count} properties do not fit into {len(content)} bytes")


def expect_end(file: Path, chunk_size: int, place: str) -> None:
    """Turn away what libotf2 would complete from its own memory."""
    try:
        complete = is_complete(file, chunk_size)
    except OSError as error:
        raise TraceError(f"{place}: {error.strerror}") from None
    if not complete:
        raise TraceError(
            f"{place}: {file.stat().st_size} bytes without the mark that ends a file: "
            "it is cut or damaged"
        )


def is_complete(file: Path, chunk_size: int) -> bool:
    """Whether the records in a file of an archive lead to the mark of its end.

    libotf2 takes a file in chunks, each into memory that it does not clear, and decodes until a
    mark ends the chunk or the file. In a file that is cut it goes on with what that memory held
    before, an older chunk perhaps, as if it were recorded. So the records of the last chunk are
    followed here from length to length, at memory speed. Every chunk but the last has `chunk_size`
    bytes.
    """
    from .state_kernels import leads_to_the_end

    size = file.stat().st_size
    start = max(size - 1, 0) // chunk_size * chunk_size
    chunk = np.fromfile(file, dtype=np.uint8, offset=start)
    return bool(leads_to_the_end(chunk, file.suffix == ".evt"))
