"""Timelines of the best mapping and of the default order: mapping files, commands, links.

A report replays nothing: a timeline of a long run takes minutes and gigabytes. It writes the
mappings next to the page, and the exact commands that replay them; what these have made is linked
when the report is written again.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from hopmap.errors import HopmapError
from hopmap.launchers.mapping_files import write_mapping
from hopmap.scenarios.results.plan_file import read_traces
from hopmap.scenarios.results.study import Case, Entry, Study
from hopmap.simulator import key_of
from hopmap.simulator.parameters.settings import LINK_UNITS
from hopmap.traces.sources import open_source

from .tables import topology_of

TRAFFIC = (".npz", ".mtx", ".csv", ".graph", ".grf", ".prof")  # files that are sent in rounds
FOLDER = "timelines"
"""Next to the page: mappings that the report writes, and what its commands make of them."""


class Timeline(NamedTuple):
    """A run that can be looked at: what it is, the command, and files that it has made."""

    about: str
    mapping: str
    command: str
    files: list[tuple[str, str]]  # what each is, and its place from the page


def timelines(study: Study, cases: Sequence[Case]) -> Iterator[Timeline]:
    """Write the mappings of some cases, and yield what replays each.

    Nothing where runs were not replayed, or with other jobs.
    """
    if study.scenario.get("co_running_jobs"):
        return
    for number, case in enumerate(cases, 1):
        if not case.replayed:
            continue
        chosen = [("best", case.best)]
        if case.default is not None and case.default is not case.best:
            chosen.append(("default", case.default))
        for word, entry in chosen:
            words = f"{number} {case.trace} {case.topology} {word}"
            name = re.sub(r"[^A-Za-z0-9]+", "-", words).strip("-")[:80]
            topology = topology_of(study, case)
            place = f"{FOLDER}/{name}"
            (study.folder / FOLDER).mkdir(exist_ok=True)
            write_mapping(study.folder / f"{place}.csv", entry.best["node_of"], topology)
            made = [("Perfetto", f"{place}.json"), ("OTF2", f"{place}/traces.otf2")]
            yield Timeline(
                f"{case.where}: {entry.mapper.strip()} ({word})",
                f"{place}.csv",
                shlex.join(_command(study, case, entry, str(study.folder / place))),
                [(kind, file) for kind, file in made if (study.folder / file).exists()],
            )


def made_timelines(folder: Path) -> list[str]:
    """Return what commands of a report have made so far."""
    files = (folder / FOLDER).glob("*")
    return sorted(path.name for path in files if path.suffix != ".csv")


def _command(study: Study, case: Case, entry: Entry, place: str) -> list[str]:
    """Return the words that replay a run and write its timelines."""
    source = read_traces(study.folder).get(case.trace, {}).get("path", case.trace)
    words = ["hopmap", "simulate", source, f"{place}.csv"]
    words += ["-t", study.spec_of(case.topology), "--engine", str(entry.best["engine"])]
    if study.steps is not None and _is_generated(source, study.folder):
        words += ["--steps", str(study.steps)]
    if study.rounds is not None and Path(source).suffix in TRAFFIC:
        words += ["--rounds", str(study.rounds)]
    for key, value in study.settings_of(case):
        words += ["--set", f"{key}={_with_unit(key, value)}"]
    return [*words, "--perfetto", f"{place}.json", "--otf2", place]


def _is_generated(source: str, folder: Path) -> bool:
    """Whether a trace is a benchmark of so many steps; its files do not lie among the results."""
    with suppress(HopmapError):
        return open_source(source, folder).has_steps
    return False


def _with_unit(key: str, value: Any) -> str:
    """Write a value of a scenario, whose numbers are in base units, for the command line."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    link = key.startswith("link.")
    unit = LINK_UNITS[key.rpartition(".")[2]] if link else key_of(key).unit
    return f"{value!r}" if unit in ("", "1") else f"{value!r} {unit}"
