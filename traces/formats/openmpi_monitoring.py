"""Traffic as Open MPI's monitoring counts it: a file NAME.RANK.prof or NAME_PHASE_RANK.prof a rank.

``mpirun --mca pml_monitoring_enable 2 --mca pml_monitoring_enable_output 3 --mca
pml_monitoring_filename NAME`` writes, for every partner, ``E <from> <to> <n> bytes <m> msgs sent``
for what the application sends and ``I`` for what its collectives do. The former ends in a histogram
of sizes, the latter only for a pair that has no former. Early releases have the letters the other
way round: their ``E`` never has one, and there is no line ``# OSC``. With ``enable 1`` all is the
application's letter. ``S`` and ``R`` are one-sided, put and got; ``C`` counts collectives by pair,
once more, and ``D`` with the three lines below it, ``O2A``, ``A2O``, ``A2A``, by communicator.
Unlike profile2mat.pl this keeps directions.

Source: Open MPI, ompi/mca/common/monitoring (README.md, common_monitoring.c), test/monitoring.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np

from hopmap.errors import HopmapWarning
from hopmap.traces.trace import TraceError
from hopmap.traces.traffic import Traffic

from .files import TrafficFileSource

SUFFIX = ".prof"
_LINE = re.compile(
    r"([EISR])\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,18}) bytes\s+(\d{1,18}) msgs sent(\s+\S+)?"
)
_SKIPPED = re.compile(r"(#.*|(?:[CD]|O2A|A2O|A2A)\b.*|)")
_OF_RANK = re.compile(r"(.*[._])(\d{1,9})\.prof")


def profiles(path: str | Path) -> list[Path]:
    """Return the files of a run: all of a folder, or those that differ in the rank alone."""
    file_path = Path(path)
    if file_path.is_dir():
        return sorted(file_path.glob(f"*{SUFFIX}"))
    match = _OF_RANK.fullmatch(file_path.name)
    if match is None:
        return [file_path]
    matches = (_OF_RANK.fullmatch(file.name) for file in file_path.parent.iterdir())
    return sorted(file_path.parent / m[0] for m in matches if m is not None and m[1] == match[1])


def read_monitoring(path: str | Path, *, collectives: bool = False) -> Traffic:
    """Read a run's files, phases added up.

    `path` is a folder of ``.prof`` files, one of a run's files, or one that holds all of them. What
    collectives send counts if `collectives`; of early releases, what is all one letter always does.
    """
    files = profiles(path)
    if not files:
        raise TraceError(f"{path}: no files *{SUFFIX}: expected files of Open MPI's monitoring")
    rows: list[tuple[str, int, int, int, int]] = []
    histograms: set[str] = set()
    early, ranks = True, 0
    for file in files:
        try:
            # Other letters may be in the names of communicators.
            lines = file.read_text(encoding="ascii", errors="replace").splitlines()
        except OSError as error:
            raise TraceError(f"{file}: cannot be read ({error.strerror})") from None
        named = _OF_RANK.fullmatch(file.name)
        ranks = max(ranks, int(named[2]) + 1 if named and len(files) > 1 else 0)
        early &= "# OSC" not in lines
        for number, line in enumerate(lines, 1):
            match = _LINE.fullmatch(line.rstrip())
            if match is not None:
                rows.append((match[1], *map(int, match.group(2, 3, 4, 5))))  # type: ignore[arg-type]
                histograms |= {match[1]} if match[6] else set()
            elif not _SKIPPED.fullmatch(line.strip()):
                raise TraceError(
                    f"{file}: line {number} is {line[:40]!r}: expected E, I, S or R, two ranks, "
                    f"bytes and msgs sent"
                )
    letters = {letter for letter, *_ in rows}
    if not letters:
        raise TraceError(
            f"{path}: no messages in it: expected lines like E 0 1 12 bytes 3 msgs sent"
        )
    own = "E"
    if early and not {"E", "I"} <= letters:
        own = "EI"
    elif early and "I" in histograms and "E" not in histograms:
        own = "I"
    kept = [row for row in rows if collectives or row[0] in own or row[0] in "SR"]
    # What a rank got by R came from its partner.
    pairs = np.array(
        [(t, s, m, n) if letter == "R" else (s, t, m, n) for letter, s, t, n, m in kept],
        dtype=np.int64,
    ).reshape(-1, 4)
    ranks = max(ranks, 1 + max(max(s, t) for _, s, t, _, _ in rows))
    if ranks > len(rows) + 2**20:
        raise TraceError(f"{path}: rank {ranks - 1} with {len(rows)} lines: expected fewer ranks")
    _warn_of_missing(path, files, {s for _, s, *_ in rows}, ranks)
    return Traffic.from_pairs(ranks, *pairs.T, name=str(path))


def _warn_of_missing(path: str | Path, files: list[Path], senders: set[int], ranks: int) -> None:
    """Warn of ranks without a file of their own, where others have one, and without any line."""
    named = {int(match[2]) for file in files if (match := _OF_RANK.fullmatch(file.name))}
    missing = [] if not named else sorted(set(range(ranks)) - named - senders)
    if missing:
        some = ", ".join(map(str, missing[:4])) + ", ..." * (len(missing) > 4)
        are = "is" if len(missing) == 1 else "are"
        text = f"{path}: no file of rank {some}: of {ranks} ranks, {len(missing)} {are} missing"
        warnings.warn(text, HopmapWarning, stacklevel=3)


class MonitoredSource(TrafficFileSource):
    """What Open MPI's monitoring counted, collectives apart."""

    @property
    def has_collectives(self) -> bool:
        """Whether it is known what its collectives send."""
        return True

    def traffic_with_collectives(self) -> Traffic:
        """Read what is sent, also by collectives."""
        return read_monitoring(self.path, collectives=True)

    def files(self) -> list[Path]:
        """Files of all ranks."""
        return profiles(self.path)


def open_monitoring(text: str, _: Path | None) -> MonitoredSource:
    """Return the source that a folder or a file is."""
    path = Path(text)
    return MonitoredSource(path.resolve().name if path.is_dir() else path.stem, path)
