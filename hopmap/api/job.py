"""Jobs among others on one machine, and the traffic of others, as they are asked for.

In Python, in a line of words, or in a file of tables.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from hopmap.errors import HopmapError
from hopmap.topologies import did_you_mean
from hopmap.topologies.allocation import POLICIES
from hopmap.traces.sources import open_source
from hopmap.units import NoUnitError, UnitError, require_unit

from .input_kinds import MappingLike
from .workload import Workload, WorkloadLike

LATEST = 10**6  # seconds: behind it a time of 64 bits no longer tells a nanosecond
MESSAGE = 64 * 1024  # bytes of a message of background traffic by default
NUMBERS = ("repeat", "seed", "steps", "rounds")
QUANTITIES = ("start", "rate", "size", "duration")


class JobsError(HopmapError, ValueError):
    """Jobs cannot be run as asked."""


@dataclass(frozen=True, eq=False)
class Job:
    """A job among others.

    Attributes
    ----------
    trace : Workload, or what it takes
        What it does.
    mapping : mapping, optional
        A file, an array or a `Placement`; or one of the policies "contiguous", "random nodes",
        "random switches" by which it gets free nodes, the first when left out.
    hosts, nodelist : optional
        Its nodes, instead of a mapping: a file with a host a line, or Slurm's list; ranks sit on
        them in their order.
    name : str, optional
        What results call it.
    start : float or str
        When it begins: seconds, or like "2 ms".
    repeat : int
        How often it runs, one run behind the other.
    seed : int
        Of a random policy.
    steps, rounds : int, optional
        See `Workload`.
    """

    trace: WorkloadLike
    mapping: MappingLike | None = None
    hosts: str | Path | None = None
    nodelist: str | None = None
    name: str | None = None
    start: float | str = 0.0
    repeat: int = 1
    seed: int = 0
    steps: int | None = None
    rounds: int | None = None

    @cached_property
    def workload(self) -> Workload:
        """What it does."""
        workload = Workload.of(self.trace)
        if self.steps is None and self.rounds is None:
            return workload
        steps = workload.steps if self.steps is None else self.steps
        rounds = workload.rounds if self.rounds is None else self.rounds
        return replace(workload, steps=steps, rounds=rounds)

    @property
    def policy(self) -> str | None:
        """Policy that assigns its nodes; None if the job lists them."""
        if self.mapping is None:
            return None if self.hosts or self.nodelist else "contiguous"
        word = str(self.mapping).replace("-", " ") if isinstance(self.mapping, str) else ""
        return word if word in POLICIES else None

    @property
    def begins(self) -> float:
        """Its start in seconds."""
        found = quantity(self.start, "s", "start")
        if found > LATEST:
            raise JobsError(f"start {self.start}: expected at most {LATEST:,} s")
        return found


@dataclass(frozen=True)
class Background:
    """Traffic that others send.

    Attributes
    ----------
    pattern : str
        "uniform", "incast", or another of `BACKGROUNDS`.
    rate : float or str
        That a node sends, in the mean: bytes/s, or like "5 GB/s".
    size : int or str
        Of a message: bytes, or like "64 KiB".
    duration : float or str, optional
        Until when messages set out: seconds, or like "2 ms"; until the jobs have ended when left
        out.
    hosts, nodelist : optional
        Nodes that send, as of a `Job`; all that are free when left out.
    seed : int
    """

    pattern: str
    rate: float | str
    size: int | str = MESSAGE
    duration: float | str | None = None
    hosts: str | Path | None = None
    nodelist: str | None = None
    seed: int = 0


def quantity(value: float | str, unit: str, key: str) -> float:
    """Return a number in SI units, of one or of a text with a unit, like "2 ms"."""
    try:
        found = require_unit(value, unit) if isinstance(value, str) else float(value)
    except NoUnitError as error:
        raise JobsError(f"{key} {error}") from None
    except UnitError as error:
        raise JobsError(f"{key} {value}: {error}") from None
    if not 0 <= found < float("inf"):
        raise JobsError(f"{key} {value}: expected 0 or more")
    return found


JobKind = TypeVar("JobKind", Job, Background)


def job_of(text: str) -> Job:
    """Read TRACE,MAPPING[,key=value ...].

    MAPPING is a file or a policy, and is left out where hosts=FILE says where.

    Examples
    --------
    >>> job = job_of("collective:allreduce=ring,64,1MiB,random-nodes,seed=3,start=2ms")
    >>> job.trace, job.policy, job.seed, job.begins
    ('collective:allreduce=ring,64,1MiB', 'random nodes', 3, 0.002)
    """
    known = ("name", "start", "repeat", "seed", "steps", "rounds", "hosts")
    words, options = _options(text, known, f"--job {text}")
    if "hosts" not in options:
        if len(words) < 2:
            raise JobsError(
                f"--job {text}: expected TRACE,MAPPING, like lu.C.64,mapping.csv, with a file or "
                f"one of {', '.join(name.replace(' ', '-') for name in POLICIES)} as MAPPING"
            )
        options["mapping"] = words.pop()
        if "=" in options["mapping"] and not Path(options["mapping"]).exists():
            raise _unknown_key(options["mapping"], known, f"--job {text}")
    return Job(trace=",".join(words), **options)


def background_of(text: str) -> Background:
    """Read PATTERN:RATE[,key=value ...], like "uniform:5GB/s,size=64KiB,duration=2ms"."""
    known = ("size", "duration", "hosts", "seed")
    words, options = _options(text, known, f"--background {text}")
    if len(words) > 1 and "=" in words[-1]:
        raise _unknown_key(words[-1], known, f"--background {text}")
    pattern, colon, rate = words[0].partition(":")
    if len(words) > 1 or not colon or not rate:
        raise JobsError(f"--background {text}: expected PATTERN:RATE, like uniform:5GB/s")
    return Background(pattern=pattern, rate=rate, **options)


def read_jobs(path: str | Path) -> tuple[list[Job], list[Background]]:
    """Read a TOML file of [[jobs]] and [[background]]; its paths are relative to its folder."""
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise JobsError(f"{path}: cannot be read as a file of jobs ({reason})") from None
    for key in data:
        if key not in ("jobs", "background"):
            raise _unknown_key(key, ("jobs", "background"), str(path))
    folder = Path(path).parent
    jobs = [_row(Job, row, where, folder) for row, where in _tables(data, "jobs", path)]
    loads = [_row(Background, row, at, folder) for row, at in _tables(data, "background", path)]
    if not jobs:
        raise JobsError(f"{path}: no [[jobs]]: expected at least one")
    return jobs, loads


def jobs_digest(path: str) -> str:
    """Return the hash of a file of jobs and of the files that it names; "" for no file."""
    if not path:
        return ""
    jobs, background = read_jobs(path)
    digest = hashlib.blake2b(Path(path).read_bytes(), digest_size=8)
    for job in jobs:
        digest.update(open_source(str(job.trace)).digest().encode())
    places = [*(job.mapping for job in jobs), *(job.hosts for job in jobs)]
    for place in (*places, *(each.hosts for each in background)):
        if isinstance(place, str) and Path(place).is_file():
            digest.update(Path(place).read_bytes())
    return digest.hexdigest()


def _options(text: str, known: Sequence[str], location: str) -> tuple[list[str], dict[str, Any]]:
    """Split the options off what they stand behind."""
    words = [word.strip() for word in text.split(",")]
    options: dict[str, Any] = {}
    while len(words) > 1:
        key, equals, value = words[-1].partition("=")
        if not equals or key not in known:
            break
        if key in options:
            raise JobsError(f"{location}: {key} twice: expected it once")
        if key in NUMBERS:
            if not value.isdigit():
                raise JobsError(f"{location}: {key} {value!r}: expected a whole number")
            options[key] = int(value)
        else:
            options[key] = value
        words.pop()
    return words, options


def _unknown_key(word: str, known: Sequence[str], location: str) -> JobsError:
    key = word.partition("=")[0]
    hint = did_you_mean(key, known)
    return JobsError(f"{location}: unknown key {key!r}{hint}: expected {', '.join(known)}")


def _tables(data: Mapping[str, Any], key: str, path: str | Path) -> list[tuple[Any, str]]:
    tables = data.get(key, [])
    if not isinstance(tables, list):
        raise JobsError(f"{path}: {key}: expected tables [[{key}]]")
    return [(each, f"{path}: {key}[{place}]") for place, each in enumerate(tables)]


def _row(kind: type[JobKind], row: Any, location: str, folder: Path) -> JobKind:
    """Make a job, or what others send, of a table."""
    if not isinstance(row, dict):
        raise JobsError(f"{location}: expected a table")
    known = [each.name for each in fields(kind) if each.name != "mapping"]
    known += ["mapping", "policy"] if kind is Job else []
    for key, value in row.items():
        if key not in known:
            raise _unknown_key(key, known, location)
        if key in NUMBERS:
            right, expected = type(value) is int and value >= 0, "a whole number of at least 0"
        elif key in QUANTITIES:
            right, expected = type(value) in (int, float, str), "a number, or a text with a unit"
        else:
            right, expected = isinstance(value, str) and value != "", "a text"
        if not right:
            raise JobsError(f"{location}.{key}: {value!r}: expected {expected}")
    needed = ("trace",) if kind is Job else ("pattern", "rate")
    for key in needed:
        if key not in row:
            raise JobsError(f"{location}: key {key!r} is missing")
    row = dict(row)
    if "policy" in row:
        if "mapping" in row:
            raise JobsError(f"{location}: mapping and policy are mutually exclusive")
        row["mapping"] = row.pop("policy")
        if row["mapping"] not in POLICIES:
            raise JobsError(
                f"{location}.policy: {row['mapping']!r}{did_you_mean(row['mapping'], POLICIES)}: "
                f"expected one of {', '.join(POLICIES)}"
            )
    for key in ("mapping", "hosts", "trace"):
        if key in row and row[key] not in POLICIES and (folder / row[key]).exists():
            row[key] = str(folder / row[key])
    return kind(**row)
