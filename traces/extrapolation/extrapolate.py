"""A program at more ranks, from the same program at fewer.

Ranks are put into grids; ranks in the same place of theirs (corner, edge, inside) are to take the
same steps at all sizes, except for loops that grow. Partners and numbers of every step then have to
follow a rule exactly, for all ranks at all sizes, or there is no answer. After Wu and Mueller,
"ScalaExtrap: Trace-Based Communication Extrapolation for SPMD Programs", PPoPP 2011.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hopmap.traces.folded import Folded, traffic_of_folded
from hopmap.traces.safety.memory import require_memory
from hopmap.traces.sources import Source, open_source
from hopmap.traces.trace import Kind, Trace, TraceError
from hopmap.traces.traffic import Traffic

from .fold import FoldedSource, fold
from .groups import Group, PredictedPart, Refused
from .partners import Dims, coordinates, families, place_name, places
from .steps import NUMBERS, Steps, Word, folded_of, steps_of
from .value_models import Known

BYTES_PER_STEP = 128  # at the target, while they become a program
WEAK = "weak"  # stands behind the ranks of a source
NEEDS = {
    False: "one recording does not tell how bytes change with the ranks: expected a second one, "
    "or --weak (scaled:RANKS,weak,TRACE) where each rank sends the same bytes",
    True: "weak: expected one recording, as several tell how bytes change",
}
PASSES = 3  # what one message tells may be what another one needs


class Scaled(NamedTuple):
    """A program at more ranks, and what it was concluded from."""

    program: Folded
    grids: tuple[Dims, ...]  # of the sources, in the order of their ranks, and of the program
    checked: bool  # whether a third size was predicted from the others and is the same


def extrapolate(sources: Sequence[Trace | Folded], ranks: int, *, weak: bool = False) -> Scaled:
    """Extrapolate one program, recorded at one or more different rank counts, to a larger count.

    The loops of recordings are found first: so there is less to compare, and what grows with the
    ranks within each iteration is seen. If that leads nowhere, all their steps are compared. The
    steps of the program, its partners or its numbers may follow no rule, several, or at three sizes
    one that does not predict the largest: a `TraceError` says which step it is.

    One recording does not tell how bytes change with the ranks: it is taken if they do not change,
    as in `weak` scaling.
    """
    if weak == (len(sources) > 1):
        raise TraceError(
            f"{', '.join(_name(each) for each in sources)}: {ranks} ranks: {NEEDS[weak]}"
        )
    with suppress(TraceError):  # what cannot be folded, too
        found = [fold(each, keep=False) if isinstance(each, Trace) else each for each in sources]
        if any(
            isinstance(was, Trace) and len(now.times)
            for was, now in zip(sources, found, strict=True)
        ):
            return _extrapolate(found, ranks)
    return _extrapolate(sources, ranks)


def _name(source: Trace | Folded) -> str:
    return source.trace.name if isinstance(source, Folded) else source.name


def _extrapolate(sources: Sequence[Trace | Folded], ranks: int) -> Scaled:
    vocabulary: dict[Word, int] = {}
    known = sorted((steps_of(each, vocabulary) for each in sources), key=lambda s: s.ranks)
    counts = [each.ranks for each in known]
    name = f"{', '.join(each.name for each in known)}: {ranks} ranks"
    if len(set(counts)) < len(counts):
        raise TraceError(f"{name}: recorded on {counts} ranks: expected different numbers")
    if not counts or ranks <= counts[-1]:
        raise TraceError(f"{name}: expected more than the {max(counts, default=0)} recorded")
    words = list(vocabulary)
    if len(known) > 2:
        predicted, _ = _best(known[:-1], counts[-1], words, name)
        different = _difference(predicted, known[-1], words)
        if different:
            raise TraceError(
                f"{name}: the prediction for {counts[-1]} ranks from {counts[:-1]} differs from "
                f"{known[-1].name}: {different}"
            )
    steps, grids = _best(known, ranks, words, name)
    folded = folded_of(steps, vocabulary)
    recorded = (each.trace if isinstance(each, Folded) else each for each in sources)
    shared = next((each.shared_cores for each in recorded if each.shared_cores), None)
    trace = replace(folded.trace, shared_cores=shared)
    return Scaled(folded._replace(trace=trace), grids, len(known) > 2)


def _best(
    known: list[Steps], ranks: int, words: list[Word], name: str
) -> tuple[Steps, tuple[Dims, ...]]:
    """Program of the family of grids that fits; all that fit have to say the same."""
    found: list[tuple[Steps, tuple[Dims, ...]]] = []
    reasons: list[str] = []
    for grids in families([*(each.ranks for each in known), ranks]):
        axes = range(len(grids[0]))
        refusal: Refused | None = None
        for split in (s for count in range(len(axes) + 1) for s in combinations(axes, count)):
            try:
                found.append((_predict(known, grids, split, words, name), grids))
                break
            except Refused as error:
                if refusal is None or error.progress > refusal.progress:
                    refusal = error
        else:
            reasons.append(str(refusal))
    if not found:
        raise TraceError(f"{name}: not known: {'; '.join(reasons)}")
    for other, grids in found[1:]:
        if _difference(found[0][0], other, words):
            raise TraceError(
                f"{name}: follows {_grid(found[0][1])} as well as {_grid(grids)}, which differ at "
                f"{ranks} ranks: expected recordings at more rank counts"
            )
    return found[0]


def _grid(grids: tuple[Dims, ...]) -> str:
    return "grids " + ", ".join("x".join(map(str, dims)) for dims in grids)


def _difference(one: Steps, other: Steps, words: list[Word]) -> str:
    """Where two programs differ in what ranks do; nothing if they do not."""
    for rank, (a, b) in enumerate(zip(np.diff(one.offsets), np.diff(other.offsets), strict=True)):
        if a != b:
            return f"rank {rank} takes {a} steps, not {b}"
    differs = (one.word != other.word) | (one.peer != other.peer)
    differs |= (one.numbers != other.numbers).any(axis=1)
    if not differs.any():
        return ""
    at = int(differs.argmax())
    rank = int(np.searchsorted(one.offsets, at, side="right")) - 1
    return (
        f"step {at - one.offsets[rank]} of rank {rank} is {_describe(one, at, words)}, not "
        f"{_describe(other, at, words)}"
    )


def _describe(steps: Steps, at: int, words: list[Word]) -> str:
    kind, region, *_ = words[steps.word[at]]
    what = region or (Kind(kind).name if kind < len(Kind) else "a loop")
    numbers = zip(NUMBERS, steps.numbers[at].tolist(), strict=True)
    parts = [f"{key} {value}" for key, value in numbers if value >= 0]
    peer = [f"rank {steps.peer[at]}"] if steps.peer[at] >= 0 else []
    return " ".join([what, *peer, *parts])


def _predict(
    known: list[Steps],
    grids: tuple[Dims, ...],
    split: tuple[int, ...],
    words: list[Word],
    name: str,
) -> Steps:
    """Program on the last of these grids, ranks at the ends of `split` dimensions apart."""
    coords = [coordinates(dims) for dims in grids]
    place = [places(c, dims, split) for c, dims in zip(coords, grids, strict=True)]
    groups = []
    for number in np.unique(place[-1]).tolist():
        where = place_name(number, split)
        members = [np.flatnonzero(p == number) for p in place]
        groups.append(Group(known, grids, coords, members, f"{_grid(grids)}, {where}", words))
    facts = Known()
    for last in range(PASSES):
        before = facts.size()
        refusal: Refused | None = None
        parts = []
        for done, group in enumerate(groups):
            try:
                parts.append(group.at(facts, words))
            except Refused as error:
                error.progress += done / len(groups)
                refusal = refusal or error
                if error.progress < 2:
                    raise
        if refusal is None and last:
            break
        if refusal and before == facts.size():
            raise refusal
    if refusal:
        raise refusal
    return _join(parts, groups, grids[-1], f"{name}")


def _join(parts: list[list[PredictedPart]], groups: list[Group], dims: Dims, name: str) -> Steps:
    """Put the ranks of all places in order."""
    ranks = int(np.prod(dims))
    lengths = np.zeros(ranks, dtype=np.int64)
    for lines, group in zip(parts, groups, strict=True):
        lengths[group.members[-1]] = sum(t.steps for t in lines)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    require_memory(
        BYTES_PER_STEP * int(offsets[-1]),
        f"{name}: {offsets[-1]:,} steps",
        "name benchmarks, whose loops are kept, record fewer iterations, or ask for fewer ranks",
    )
    word, peer = np.zeros(offsets[-1], dtype=np.int64), np.zeros(offsets[-1], dtype=np.int64)
    numbers, gap = np.zeros((offsets[-1], len(NUMBERS)), dtype=np.int64), np.zeros(offsets[-1])
    for lines, group in zip(parts, groups, strict=True):
        begin = offsets[group.members[-1]]
        for part in lines:
            iterations, length = part.word.shape[1], len(part.step_kind)
            rows = begin[:, None, None] + np.arange(part.steps).reshape(iterations, length)
            word[rows] = part.word[:, :, part.step_kind]
            peer[rows] = part.peer[:, :, part.step_kind]
            numbers[rows] = part.numbers[:, :, part.step_kind]
            gap[rows] = part.gap
            begin = begin + part.steps
    return Steps(name, ranks, offsets, word, peer, numbers, gap)


@dataclass(frozen=True)
class ScaledSource(Source):
    """A program at more ranks than it was recorded on."""

    kind = "scaled"
    programs: tuple[Source, ...]
    ranks: int
    weak: bool = False

    def parts(self) -> tuple[Source, ...]:
        """Return the program at fewer ranks."""
        return self.programs

    @cached_property
    def extrapolated(self) -> Scaled:
        """The program at more ranks, and what it was concluded from."""
        return extrapolate([each.calls() for each in self.programs], self.ranks, weak=self.weak)

    def traffic(self) -> Traffic:
        """Compute who sends how much to whom."""
        return traffic_of_folded(self.calls())

    def calls(self) -> Folded:
        """Compute what every rank does, in loops."""
        return self.extrapolated.program


def open_scaled(words: str, folder: Path | None) -> ScaledSource:
    """Return the source that "scaled:RANKS,TRACE,..." or "scaled:RANKS,weak,TRACE" is."""
    text = f"scaled:{words}"
    ranks, *traces = words.split(",")
    weak = traces[:1] == [WEAK]
    traces = traces[weak:]
    if not (ranks.isascii() and ranks.isdigit() and len(ranks) < 9) or not all([traces, *traces]):
        raise TraceError(f"{text}: expected scaled:RANKS,TRACE,..., like scaled:256,run16,run64")
    programs = tuple(open_source(each, folder) for each in traces)
    for each in programs:
        if not each.has_calls:
            raise TraceError(f"{text}: {each.name} has no calls: expected a trace or a benchmark")
        if isinstance(each, FoldedSource):
            raise TraceError(f"{text}: {each.name}: expected {each.program.name} itself")
    return ScaledSource(text, programs, int(ranks), weak)
