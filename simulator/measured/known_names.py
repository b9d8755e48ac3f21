"""All names in measured data that are known, and the nearest of them to a name that is not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import NamedTuple

from hopmap.simulator.collectives.algorithms import ALGORITHMS, options_of

from .names import BINE, FUJITSU, OPEN_MPI, OTHERS

# What names of libraries begin and end with.
_PARTS = re.compile(r"(default-)?(.+?)(_ompi|_over|_mpich|-(?:MPI|UTOFU)-\d+-\d+)?")
NO_NAME = "no public definition"


class MeasuredName(NamedTuple):
    """A name in measured data, and what it is."""

    collective: str
    name: str  # SEGMENT and BYTES are numbers of bytes
    algorithm: str  # hopmap's own
    source: str  # the library that has it


def measured_names() -> Iterator[MeasuredName]:
    """Yield the names of libraries that `lookup` knows."""
    for collective in OPEN_MPI:
        for name, found in OPEN_MPI[collective].items():
            yield MeasuredName(collective, f"{name}_ompi", found, "Open MPI")
        for name, found in FUJITSU.get(collective, {}).items():
            forced = f"default-{name.replace('_', '-')}"
            yield MeasuredName(collective, forced, found, "Fujitsu MPI 4.0.1")
        for name, found in OTHERS.get(collective, {}).items():
            yield MeasuredName(collective, f"{name}_over", found, "HLC-Lab/pico")
            if not name.startswith("bine"):
                yield MeasuredName(collective, f"{name}_mpich", found, "Cray MPICH")
        for name, found in BINE.get(collective, {}).items():
            segments = "segment" in options_of(ALGORITHMS[collective][found])
            for way in ("MPI", "UTOFU"):
                end = f"{way}-{'SEGMENT' if segments else 0}-1"
                source = "HLC-Lab/bine_trees_fugaku"
                yield MeasuredName(collective, f"{name}-{end}", found, source)
        if "bine_any_even" in ALGORITHMS[collective]:
            even = "bine_block_by_block_any_even"
            yield MeasuredName(collective, even, "bine_any_even", "HLC-Lab/pico")
    turns = "bine_bdw_remap_segmented_over_BYTES"
    found = "bine_halving_in_turns(segment=BYTES)"
    yield MeasuredName("allreduce", turns, found, "HLC-Lab/pico")


def nearest(collective: str, algorithm: str) -> str:
    """Return the nearest name of the same library, or the nearest collective; "" if none is near.

    Other versions of an algorithm have longer names, so that one of another length is not near.
    """
    if collective not in OPEN_MPI:
        return _near(collective, OPEN_MPI)
    match = _PARTS.fullmatch(algorithm.removeprefix(f"{collective}="))
    if match is None:
        return ""
    forced, stem, library = match[1] or "", match[2], match[3] or ""
    table: Mapping[str, object] = {"_ompi": OPEN_MPI, "": ALGORITHMS}.get(library, OTHERS)[
        collective
    ]
    if forced:
        table = {name.replace("_", "-"): 0 for name in FUJITSU[collective]}
    elif library.startswith("-"):
        table = BINE[collective]
    near = _near(stem, table)
    return near and f"{forced}{near}{library}"


def _near(word: str, known: Mapping[str, object]) -> str:
    near = get_close_matches(word, [name for name in known if abs(len(name) - len(word)) <= 2], 1)
    return near[0] if near else ""


def explain_unknown(collective: str, algorithm: str) -> str:
    """Say why `lookup` finds nothing, and which name is near."""
    near = nearest(collective, algorithm)
    hint = f" (did you mean {near}?)" if near else ""
    if collective not in OPEN_MPI:
        return f"unknown collective{hint}"
    match = _PARTS.fullmatch(algorithm)
    return f"{NO_NAME if match and (match[1] or match[3]) else 'unknown name'}{hint}"
