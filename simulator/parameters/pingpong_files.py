"""Ping-pong measurements: CSV, and what osu_latency and IMB-MPI1 PingPong print.

Sources: OSU Micro-Benchmarks, osu_latency (size, latency in us); Intel MPI Benchmarks user guide,
PingPong (#bytes, #repetitions, t[usec], Mbytes/sec). Both print half of a round trip.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from hopmap.errors import HopmapError
from hopmap.units import UnitError, parse_quantity

from .calibration import PingPong

MICROSECONDS = 1e6  # in a second
LARGEST = 2**26  # bytes of a file
FORMATS: Mapping[str, str] = {
    "ping-pong CSV": "size,time[,hops]; in units like 8 KiB and 1.5 us, else bytes and s",
    "osu_latency": "what OSU's osu_latency prints",
    "IMB PingPong": "what Intel's IMB-MPI1 PingPong prints",
}
# Heads of tables, and the titles above them; with the last group they are titles of ping-pongs.
_IMB = re.compile(r"\s*#bytes\s+#repetitions(\s+t\[usec\])?")
_IMB_TITLE = re.compile(r"#\s*Benchmarking\s+(PingPong)?")
_OSU = re.compile(r"#\s*Size\s.*(Latency)")
_OSU_TITLE = re.compile(r"#\s*OSU\s(MPI(?:-\S+)? (?:Multi\S* |Persistent )?Latency)?")


class PingPongError(HopmapError, ValueError):
    """A file of ping-pongs cannot be read; names file, line and what was expected."""


def read_pingpong(path: str | Path, *, hops: int = 1, round_trip: bool = False) -> PingPong:
    """Read measurements, their format known by what is in the file.

    `hops` are links between the two nodes, where the file has no such column; 0 within a node.
    Times may be of whole round trips.
    """
    try:
        with Path(path).open("rb") as stream:
            text = stream.read(LARGEST).decode("utf-8-sig")
    except OSError as error:
        raise PingPongError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise PingPongError(f"{path}: cannot be read (it is not text)") from None
    lines = text.splitlines()
    imb = _find_table(lines, _IMB, _IMB_TITLE, str(path), "PingPong of IMB-MPI1, with t[usec]")
    osu = _find_table(lines, _OSU, _OSU_TITLE, str(path), "what osu_latency prints")
    if imb:
        rows = _columns(lines, imb, 2, str(path))
    elif osu:
        rows = _columns(lines, osu, 1, str(path))
    else:
        rows = _table(lines, str(path))
    if not rows:
        raise PingPongError(f"{path}: no measurements: expected one of {', '.join(FORMATS)}")
    size = np.array([row[0] for row in rows])
    if not (np.abs(size) <= 2**50).all():
        wrong = size[~(np.abs(size) <= 2**50)][0]
        raise PingPongError(f"{path}: {wrong:g} bytes: expected a size of a message")
    links = [hops if row[2] is None else row[2] for row in rows]
    return PingPong(
        size=size.astype(np.int64),
        time=np.array([row[1] for row in rows]) / (2 if round_trip else 1),
        hops=np.array(links, dtype=np.int64),
    )


Row = tuple[float, float, int | None]


def _find_table(
    lines: list[str], head: re.Pattern[str], title: re.Pattern[str], name: str, expected: str
) -> int:
    """Return the line below the head of the first table of a ping-pong, 0 without such tables.

    A head or title that matches without its last group is another benchmark's.
    """
    titled = other = 0
    ours = True  # without a title
    for number, line in enumerate(lines, 1):
        if found := title.match(line):
            titled, ours = number, found[1] is not None
        elif found := head.match(line):
            if ours and found[1] is not None:
                return number
            other = number if ours else titled
    if other:
        raise PingPongError(
            f"{name}: line {other} is {lines[other - 1].strip()[:60]!r}: expected {expected}"
        )
    return 0


def _columns(lines: list[str], first: int, place: int, name: str) -> list[Row]:
    """Read a benchmark's table, from a line on to its end."""
    rows: list[Row] = []
    for number, line in enumerate(lines[first:], first + 1):
        cells = line.split()
        if not cells or cells[0].startswith("#"):
            if rows:
                break  # another benchmark follows
            continue
        try:
            rows.append((_size(cells[0]), float(cells[place]) / MICROSECONDS, None))
        except (ValueError, IndexError):
            raise PingPongError(
                f"{name}: line {number} is {line.strip()[:40]!r}: expected size and microseconds"
            ) from None
    return rows


def _size(text: str) -> float:
    if not text.isdecimal():
        raise ValueError(text)
    return float(text)


def _table(lines: list[str], name: str) -> list[Row]:
    """Read a CSV with a header."""
    header: list[str] = []
    rows: list[Row] = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            cells = [cell.strip() for cell in next(csv.reader([line]))]
        except csv.Error:
            cells = []
        if not header:
            header = [cell.lower() for cell in cells]
            if sorted(header) not in (["size", "time"], ["hops", "size", "time"]):
                raise PingPongError(
                    f"{name}: line {number} is {line.strip()[:40]!r}: expected the header "
                    f"size,time[,hops], or what osu_latency or IMB-MPI1 PingPong prints"
                )
            continue
        row = dict(zip(header, cells, strict=False))
        try:
            if len(cells) != len(header):
                raise UnitError(f"{len(cells)} cells: expected {len(header)}")
            size, time = parse_quantity(row["size"], "bytes"), parse_quantity(row["time"], "s")
            if size != int(size):
                raise UnitError(f"{row['size']!r}: expected whole bytes")
            if not row.get("hops", "0").isdecimal() or len(row.get("hops", "")) > 9:
                raise UnitError(f"hops {row['hops']!r}: expected a whole number")
        except (UnitError, OverflowError, ValueError) as error:
            raise PingPongError(f"{name}: line {number}: {error}") from None
        rows.append((size, time, int(row["hops"]) if "hops" in row else None))
    return rows
