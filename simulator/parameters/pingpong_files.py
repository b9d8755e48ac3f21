"""Ping-pong measurements: CSV, and what osu_latency and IMB-MPI1 PingPong print.

Units of a CSV are in its cells (1.5 us), in the names of its columns (bytes, time_us), or said by
the caller. They are never guessed.

Sources: OSU Micro-Benchmarks, osu_latency (size, latency in us); Intel MPI Benchmarks user guide,
PingPong (#bytes, #repetitions, t[usec], Mbytes/sec). Both print half of a round trip.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from hopmap.errors import HopmapError, expect_between
from hopmap.units import UNITS, NoUnitError, UnitError, parse_quantity, require_unit

from .closed_form import PingPong

MICROSECONDS = 1e6  # in a second
LARGEST = 2**26  # bytes of a file
MOST_HOPS = 10_000
FORMATS: Mapping[str, str] = {
    "ping-pong CSV": "bytes,time_us[,hops], or size,time[,hops] with units in the cells",
    "osu_latency": "what OSU's osu_latency prints",
    "IMB PingPong": "what Intel's IMB-MPI1 PingPong prints",
}
# Heads of tables, and the titles above them; with the last group they are titles of ping-pongs.
_IMB = re.compile(r"\s*#bytes\s+#repetitions(\s+t\[usec\])?")
_IMB_TITLE = re.compile(r"#\s*Benchmarking\s+(PingPong)?")
_OSU = re.compile(r"#\s*Size\s(?:.*(Latency\s*\(us\)))?")
_OSU_TITLE = re.compile(r"#\s*OSU\s(MPI(?:-\S+)? (?:Multi\S* |Persistent )?Latency)?")
# What columns are called, and in which unit their quantity is.
_COLUMNS = {"size": "bytes", "message": "bytes", "time": "s", "latency": "s", "t": "s", "hops": "1"}
_UNIT_WORDS = {
    name: unit
    for unit, names in {
        "s": ("sec", "second", "seconds"),
        "ms": ("msec", "millisecond", "milliseconds"),
        "us": ("usec", "microsecond", "microseconds"),
        "ns": ("nsec", "nanosecond", "nanoseconds"),
    }.items()
    for name in names
}
_USUAL = {"s": ("time", "us"), "bytes": ("size", "B")}


class PingPongError(HopmapError, ValueError):
    """A file of ping-pongs cannot be read; names file, line and what was expected."""


def read_pingpong(
    path: str | Path,
    *,
    hops: int | None = None,
    round_trip: bool = False,
    unit: str | Sequence[str] = (),
) -> PingPong:
    """Read measurements, their format known by what is in the file.

    `hops` are links between the two nodes, 1 when left out, where the file has no such column; 0
    is within a node.
    Times may be of whole round trips. Units are of times, of sizes, or of both, where neither the
    cells of a CSV nor the names of its columns have them.
    """
    name, units = str(path), _units([unit] if isinstance(unit, str) else unit)
    try:
        with Path(path).open("rb") as stream:
            text = stream.read(LARGEST).decode("utf-8-sig")
    except OSError as error:
        raise PingPongError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise PingPongError(f"{path}: cannot be read (it is not text)") from None
    lines = text.splitlines()
    imb = _find_table(lines, _IMB, _IMB_TITLE, name, "PingPong of IMB-MPI1, with t[usec]")
    osu = _find_table(lines, _OSU, _OSU_TITLE, name, "what osu_latency prints, with (us)")
    if units and (imb or osu):
        printed = "IMB-MPI1 PingPong" if imb else "osu_latency"
        raise PingPongError(
            f"{name}: unit {', '.join(units.values())}: what {printed} prints has units: "
            f"expected none"
        )
    if imb:
        rows = _columns(lines, imb, 2, name)
    elif osu:
        rows = _columns(lines, osu, 1, name)
    else:
        rows = _table(lines, units, name)
    if not rows:
        raise PingPongError(f"{path}: no measurements: expected one of {', '.join(FORMATS)}")
    size = np.array([row[0] for row in rows])
    if not (np.abs(size) <= 2**50).all():
        wrong = size[~(np.abs(size) <= 2**50)][0]
        raise PingPongError(f"{path}: {wrong:g} bytes: expected a size of a message")
    if hops is not None and any(row[2] is not None for row in rows):
        raise PingPongError(f"{name}: hops {hops}: the file has a column hops: expected none")
    assumed = 1 if hops is None else hops
    expect_between(PingPongError, f"{name}: hops {hops}", assumed, 0, MOST_HOPS)
    links = [assumed if row[2] is None else row[2] for row in rows]
    return PingPong(
        size=size.astype(np.int64),
        time=np.array([row[1] for row in rows]) / (2 if round_trip else 1),
        hops=np.array(links, dtype=np.int64),
    )


Row = tuple[float, float, int | None]


def _unit_of(word: str) -> tuple[str, str]:
    """Return base unit and unit of a word in any case, ("s", "us") of usec; ("", "") of others."""
    written = _UNIT_WORDS.get(word.lower(), word).lower()
    known = [(base, unit) for base in _USUAL for unit in UNITS[base] if unit.lower() == written]
    return known[0] if known else ("", "")


def _units(words: Sequence[str]) -> dict[str, str]:
    """Return the units that are said, by base unit."""
    units: dict[str, str] = {}
    for word in words:
        base, unit = _unit_of(word)
        if not base:
            raise PingPongError(
                f"unit {word!r}: expected one of times, like us, or of sizes, like KiB"
            )
        if units.setdefault(base, unit) != unit:
            raise PingPongError(f"units {units[base]} and {unit}: expected one of them")
    return units


def _read_column(cell: str) -> tuple[str, str]:
    """Return base unit and unit of a column: ("s", "us") of time_us, t[usec] and usec."""
    base, unit = "", ""
    for word in re.findall(r"[^\W_]+", cell):
        of = (_COLUMNS.get(word.lower(), ""), "")
        if not of[0]:
            of = _unit_of(word)
        if not of[0] or unit or base not in ("", of[0]):
            return "", ""
        base, unit = of
    return base, unit


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


def _header(cells: list[str], units: Mapping[str, str], name: str) -> dict[str, str] | None:
    """Return the unit of each column by its base unit, "" of none; None for other columns."""
    columns = [_read_column(cell) for cell in cells]
    header = dict(columns)
    if len(header) < len(columns) or not {"bytes", "s"} <= {*header} <= {"bytes", "s", "1"}:
        return None
    for base, unit in units.items():
        if header[base]:
            column = cells[columns.index((base, header[base]))]
            raise PingPongError(f"{name}: unit {unit}: column {column!r} has one: expected none")
        header[base] = unit
    return header


def _quantity(text: str, base: str, unit: str) -> float:
    """Read a cell; its own unit wins over that of its column."""
    try:
        return require_unit(text, base)
    except NoUnitError:
        if unit:
            return parse_quantity(f"{text} {unit}", base)
        column, like = _USUAL[base]
        raise UnitError(
            f"{column} {text} has no unit: name the column {column}_{like}, write {text}{like}, or "
            f"give --unit {like}"
        ) from None


def _table(lines: list[str], units: Mapping[str, str], name: str) -> list[Row]:
    """Read a CSV with a header."""
    header: dict[str, str] | None = None
    rows: list[Row] = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            cells = [cell.strip() for cell in next(csv.reader([line]))]
        except csv.Error:
            cells = []
        if header is None:
            header = _header(cells, units, name)
            if header is None:
                raise PingPongError(
                    f"{name}: line {number} is {line.strip()[:40]!r}: expected a header like "
                    f"bytes,time_us[,hops], or what osu_latency or IMB-MPI1 PingPong prints"
                )
            continue
        row = dict(zip(header, cells, strict=False))
        try:
            if len(cells) != len(header):
                raise UnitError(f"{len(cells)} cells: expected {len(header)}")
            size, time = (_quantity(row[base], base, header[base]) for base in ("bytes", "s"))
            if size != int(size):
                raise UnitError(f"{row['bytes']!r}: expected whole bytes")
            hops = row.get("1", "0")
            if not hops.isdecimal() or len(hops) > 9:
                raise UnitError(f"hops {hops!r}: expected a whole number")
        except (UnitError, OverflowError, ValueError) as error:
            raise PingPongError(f"{name}: line {number}: {error}") from None
        rows.append((size, time, int(hops) if "1" in row else None))
    return rows
