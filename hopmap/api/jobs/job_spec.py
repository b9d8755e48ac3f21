"""Jobs and background traffic as they are asked for: in a line of words, or in a file of tables."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from hopmap.api.job import Background, Job, JobsError
from hopmap.topologies import did_you_mean
from hopmap.topologies.allocation import POLICIES
from hopmap.traces.sources import open_source

NUMBERS = ("repeat", "seed", "steps", "rounds")
QUANTITIES = ("start", "rate", "size", "duration")


Asked = TypeVar("Asked", Job, Background)


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
    """Read a file of tables [[jobs]] and [[background]]; files in it lie beside it."""
    try:
        given = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise JobsError(f"{path}: cannot be read as a file of jobs ({reason})") from None
    for key in given:
        if key not in ("jobs", "background"):
            raise _unknown_key(key, ("jobs", "background"), str(path))
    folder = Path(path).parent
    jobs = [_row(Job, row, where, folder) for row, where in _tables(given, "jobs", path)]
    loads = [_row(Background, row, at, folder) for row, at in _tables(given, "background", path)]
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


def _options(text: str, known: Sequence[str], where: str) -> tuple[list[str], dict[str, Any]]:
    """Split the options off what they stand behind."""
    words = [word.strip() for word in text.split(",")]
    options: dict[str, Any] = {}
    while len(words) > 1:
        key, equals, value = words[-1].partition("=")
        if not equals or key not in known:
            break
        if key in options:
            raise JobsError(f"{where}: {key} twice: expected it once")
        if key in NUMBERS:
            if not value.isdigit():
                raise JobsError(f"{where}: {key} {value!r}: expected a whole number")
            options[key] = int(value)
        else:
            options[key] = value
        words.pop()
    return words, options


def _unknown_key(word: str, known: Sequence[str], where: str) -> JobsError:
    key = word.partition("=")[0]
    hint = did_you_mean(key, known)
    return JobsError(f"{where}: unknown key {key!r}{hint}: expected {', '.join(known)}")


def _tables(given: Mapping[str, Any], key: str, path: str | Path) -> list[tuple[Any, str]]:
    tables = given.get(key, [])
    if not isinstance(tables, list):
        raise JobsError(f"{path}: {key}: expected tables [[{key}]]")
    return [(each, f"{path}: {key}[{place}]") for place, each in enumerate(tables)]


def _row(kind: type[Asked], row: Any, where: str, folder: Path) -> Asked:
    """Make a job, or what others send, of a table."""
    if not isinstance(row, dict):
        raise JobsError(f"{where}: expected a table")
    known = [each.name for each in fields(kind) if each.name != "mapping"]
    known += ["mapping", "policy"] if kind is Job else []
    for key, value in row.items():
        if key not in known:
            raise _unknown_key(key, known, where)
        if key in NUMBERS:
            right, expected = type(value) is int and value >= 0, "a whole number of at least 0"
        elif key in QUANTITIES:
            right, expected = type(value) in (int, float, str), "a number, or a text with a unit"
        else:
            right, expected = isinstance(value, str) and value != "", "a text"
        if not right:
            raise JobsError(f"{where}.{key}: {value!r}: expected {expected}")
    needed = ("trace",) if kind is Job else ("pattern", "rate")
    for key in needed:
        if key not in row:
            raise JobsError(f"{where}: key {key!r} is missing")
    row = dict(row)
    if "policy" in row:
        if "mapping" in row:
            raise JobsError(f"{where}: mapping {row['mapping']!r}: expected it or policy, not both")
        row["mapping"] = row.pop("policy")
        if row["mapping"] not in POLICIES:
            raise JobsError(
                f"{where}.policy: {row['mapping']!r}{did_you_mean(row['mapping'], POLICIES)}: "
                f"expected one of {', '.join(POLICIES)}"
            )
    for key in ("mapping", "hosts", "trace"):
        if key in row and row[key] not in POLICIES and (folder / row[key]).exists():
            row[key] = str(folder / row[key])
    return kind(**row)
