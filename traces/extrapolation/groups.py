"""Ranks in one place of their grids: the steps that all of them take, at all sizes.

Where ranks take more steps at more ranks, these are folded into loops whose iterations grow with
the grid: a body repeats if its steps are the same, with the same sort of partner, and if bits of
partners and tags are the same or move by one each iteration, as in a butterfly.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Bools, Floats, Ints
from hopmap.traces.trace import Collective, Kind

from .event_tokens import mix
from .partners import Dims, Place, candidates, find_rules, root_rules
from .steps import LOOP, NUMBERS, Steps, Word
from .value_models import Known, Unknown, count_at, iterations_at, size_at, tag_at

TAG, SIZE, RECEIVED, REQUEST, TIMES = range(len(NUMBERS))
LONGEST = 80  # steps of a body that grows
OF_ONE = {
    *((RECEIVED, Collective[name]) for name in ("BCAST", "SCATTER", "SCATTERV")),
    *((SIZE, Collective[name]) for name in ("REDUCE", "GATHER", "GATHERV")),
}
"""Bytes of collectives that are a member's own: all others are counted for each member."""


class Refused(Exception):  # noqa: N818
    """Why a family of grids is not the program's, and how far it came."""

    def __init__(self, reason: str, progress: float) -> None:
        super().__init__(reason)
        self.progress = progress


class Group:
    """Ranks in one place, at all sizes: matched once, then asked as often as more is known."""

    def __init__(
        self,
        known: list[Steps],
        grids: tuple[Dims, ...],
        coords: list[Ints],
        members: list[Ints],
        location: str,
        words: list[Word],
    ) -> None:
        self.known, self.where, self.members = known, location, members
        self.places = [
            Place(dims, c[m], 1) for dims, c, m in zip(grids, coords, members, strict=True)
        ]
        self.rows: list[Ints] = []
        lines = []
        brackets = np.array([word[0] >= LOOP for word in words])
        for steps, ranks, place in zip(known, members, self.places, strict=False):
            if not len(ranks):
                raise Refused(f"{location}: no rank is there at {steps.ranks} ranks", 0.0)
            counts = np.diff(steps.offsets)[ranks]
            rows = steps.offsets[ranks][:, None] + np.arange(counts[0])
            if (counts != counts[0]).any() or (steps.word[rows] != steps.word[rows[:1]]).any():
                raise Refused(
                    f"{location}: not all ranks take the same steps at {steps.ranks} ranks", 0.5
                )
            self.rows.append(rows)
            word, peer, tag = steps.word[rows[0]], steps.peer[rows], steps.numbers[rows, TAG]
            lines.append(Line(word, peer, tag, brackets[word], place))
        found = match_parts(lines)
        if found is None:
            taken = ", ".join(str(len(line.word)) for line in lines)
            raise Refused(
                f"{location}: {taken} steps at {', '.join(str(s.ranks) for s in known)} ranks, and "
                "loops that grow do not explain it",
                1.0,
            )
        self.parts: list[Part] = found

    def at(self, facts: Known, words: list[Word]) -> list[PredictedPart]:
        """Say what these ranks do at the target, part by part."""
        predictions, refusal = [], None
        seen: dict[bytes, Ints] = {}
        called = ""
        for part in self.parts:
            try:
                iterations = iterations_at(list(part.iterations), self.places)
            except Unknown as error:
                raise Refused(f"{self.where}: {error}", 1.5) from None
            each = [
                p._replace(iterations=n)
                for p, n in zip(self.places, (*part.iterations, iterations), strict=True)
            ]
            columns = [
                rows[:, begin : begin + n * part.length].reshape(len(rows), n, part.length)
                for rows, begin, n in zip(self.rows, part.begin, part.iterations, strict=True)
            ]
            first, step_kind = self._kinds_of_steps(columns)
            gap = _seconds(
                [
                    s.gap[rows].mean(axis=(0, 1))
                    for s, rows in zip(self.known, columns, strict=True)
                ],
                [s.ranks for s in self.known],
                each[-1].ranks,
            )
            shape = (len(each[-1].coords), iterations, len(first))
            result = PredictedPart(
                np.zeros(shape, dtype=np.int64),
                np.full(shape, -1, dtype=np.int64),
                np.full((*shape, len(NUMBERS)), -1, dtype=np.int64),
                step_kind,
                gap,
            )
            for place, step in enumerate(first.tolist()):
                at = [rows[:, :, step] for rows in columns]
                word = int(self.known[0].word[at[0][0, 0]])
                result.word[:, :, place] = word
                called = words[word][1] or called
                try:
                    self._step(result, place, at, each, words[word], facts, seen)
                except Unknown as error:
                    step_of = f"step {part.begin[0] + step} of rank {self.members[0][0]}"
                    refusal = refusal or Refused(f"{self.where}: {step_of}, {called}: {error}", 2.0)
            predictions.append(result)
        if refusal:
            raise refusal
        return predictions

    def _kinds_of_steps(self, columns: list[Ints]) -> tuple[Ints, Ints]:
        """Which steps of a body differ, in order, and which of these each step is.

        A recording takes the same steps over and over: a rule is looked for once.
        """
        code = np.zeros(columns[0].shape[2], dtype=np.uint64)
        for steps, rows in zip(self.known, columns, strict=True):
            place = np.arange(rows[:, :, 0].size).reshape(*rows.shape[:2], 1)
            each = mix(steps.word[rows]) + mix(place)
            for values in (steps.peer, *steps.numbers.T):
                each = mix(each.view(np.int64) + values[rows])
            code = mix((code + each.sum(axis=(0, 1))).view(np.int64))
        _, first, kinds = np.unique(code, return_index=True, return_inverse=True)
        for steps, rows in zip(self.known, columns, strict=True):
            one = rows[:, :, first[kinds]]
            same = (steps.word[one] == steps.word[rows]) & (steps.peer[one] == steps.peer[rows])
            if not (same & (steps.numbers[one] == steps.numbers[rows]).all(axis=-1)).all():
                first = kinds = np.arange(len(code))  # two steps of one hash
        order = np.argsort(first)
        return first[order], np.argsort(order)[kinds]

    def _step(
        self,
        result: PredictedPart,
        step: int,
        at: list[Ints],
        each: list[Place],
        word: Word,
        facts: Known,
        seen: dict[bytes, Ints],
    ) -> None:
        """Fill in one step of a body."""
        peers = [s.peer[rows] for s, rows in zip(self.known, at, strict=True)]
        collective = word[0] in (Kind.COLLECTIVE_END, Kind.COLLECTIVE_COMPLETE)

        def once(name: str, values: list[Ints], rule: Callable[[], Ints]) -> Ints:
            sizes = "".join(f"{p.iterations},{len(p.coords)}," for p in each)
            key = (name + sizes).encode() + b"".join(v.tobytes() for v in values)
            if key not in seen:
                seen[key] = rule()
            return seen[key]

        def partner() -> Ints:
            rules = (root_rules if collective else find_rules)(peers, each[:-1])
            known = [(rule, at) for rule in rules if (at := rule.at(each[-1])) is not None]
            different = {at.tobytes(): (str(rule), at) for rule, at in reversed(known)}
            if len(different) == 1:
                return next(iter(different.values()))[1]
            what = "roots" if collective else "partners"
            if not different:
                raise Unknown(f"{what} follow no rule that is known")
            shown = " or ".join(sorted(said for said, _ in different.values()))
            raise Unknown(
                f"{what} follow {len(different)} rules that differ there, {shown}: expected "
                f"a recording on other numbers of ranks, like {4 * self.known[-1].ranks}"
            )

        result.peer[:, :, step] = once(f"peer{collective}", peers, partner)
        for number in range(len(NUMBERS)):
            values = [s.numbers[rows, number] for s, rows in zip(self.known, at, strict=True)]
            if all((v == values[0].flat[0]).all() for v in values) and not (
                collective and len(values) == 1
            ):
                result.numbers[:, :, step, number] = values[0].flat[0]
                continue
            if number in (SIZE, RECEIVED):
                roots = [
                    (p == m[:, None]) & collective
                    for p, m in zip([*peers, result.peer[:, :, step]], self.members, strict=True)
                ]
                for is_root in (False, True):
                    chosen = [(r == is_root).all(axis=1) for r in roots]
                    if not chosen[-1].any():
                        continue
                    if not all(c.any() for c in chosen):
                        raise Unknown("a root's bytes, and no root is there at fewer ranks")
                    some = [
                        p._replace(coords=p.coords[c]) for p, c in zip(each, chosen, strict=True)
                    ]
                    kept = [v[c] for v, c in zip(values, chosen, strict=False)]
                    everyone = collective and (number, word[2]) not in OF_ONE
                    rule = partial(size_at, kept, some, facts, everyone=everyone)
                    what = f"size{is_root}{everyone}"
                    result.numbers[chosen[-1], :, step, number] = once(what, kept, rule)
                continue
            if number == TAG:
                value = once("tag", values, partial(tag_at, values, each))
            else:
                counted = count_at(values, each)
                if counted is None:
                    raise Unknown(
                        "requests are named in another order"
                        if number == REQUEST
                        else "a loop's iterations change with the number of ranks"
                    )
                value = counted
            result.numbers[:, :, step, number] = value


class PredictedPart(NamedTuple):
    """Steps of ranks in one place at the target; what they say is as in `Steps`."""

    # (ranks, iterations, different steps, ...)
    word: Ints
    peer: Ints
    numbers: Ints
    step_kind: Ints  # (length of the body,): which of the different ones each step is
    gap: Floats  # (length of the body,): seconds, the same for all ranks and iterations

    @property
    def steps(self) -> int:
        """Steps that a rank takes here."""
        return int(self.word.shape[1]) * len(self.step_kind)


def _seconds(gaps: list[Floats], ranks: list[int], target: int) -> Floats:
    """Return the computation between steps: a power of the ranks, through the largest two."""
    if len(gaps) < 2:
        return gaps[-1]
    power = np.zeros_like(gaps[-1])
    some = (gaps[-1] > 0) & (gaps[-2] > 0)
    power[some] = np.log(gaps[-1][some] / gaps[-2][some]) / np.log(ranks[-1] / ranks[-2])
    return gaps[-1] * (target / ranks[-1]) ** np.clip(power, -2.0, 1.0)


class Part(NamedTuple):
    """Steps that follow each other in the programs of ranks in one place."""

    # First step and iterations at each size
    begin: tuple[int, ...]
    iterations: tuple[int, ...]
    length: int  # steps of an iteration


class Line(NamedTuple):
    """The steps of the ranks in one place, at one size."""

    word: Ints  # (steps,)
    # (ranks, steps)
    peer: Ints
    tag: Ints
    # (steps,): begins and ends of the program's own loops: no body of a loop that grows has them
    bracket: Bools
    place: Place


def match_parts(lines: list[Line]) -> list[Part] | None:
    """Cut the steps of all sizes into parts that belong to each other; None where they do not."""
    first = lines[0].word
    if all(np.array_equal(line.word, first) for line in lines):
        ones = (1,) * len(lines)
        return [Part((0,) * len(lines), ones, len(first))]
    folded = [_fold_line(line) for line in lines]
    if len({len(parts) for parts in folded}) > 1:
        return None
    found = []
    for same in zip(*folded, strict=True):
        begin, length, iterations = zip(*same, strict=True)
        words = [line.word[b : b + length[0]] for line, b in zip(lines, begin, strict=True)]
        if len(set(length)) > 1 or any(not np.array_equal(words[0], each) for each in words):
            return None
        if len(set(iterations)) == 1:  # it does not grow: its iterations may differ from each other
            found.append(Part(begin, (1,) * len(lines), length[0] * iterations[0]))
        else:
            found.append(Part(begin, iterations, length[0]))
    return found


def _fold_line(line: Line) -> list[tuple[int, int, int]]:
    """First step, length and iterations of each part; the shortest body that repeats is taken."""
    count = len(line.word)
    sort, level = _sorts(line)
    constant = (line.tag == line.tag[:1]).all(axis=0)
    tag = np.where(constant, line.tag[0], -1)
    runs = []
    for length in range(1, min(LONGEST, count // 2) + 1):
        ahead, behind = slice(length, None), slice(None, count - length)
        climb, count_up = level[ahead] - level[behind], tag[ahead] - tag[behind]
        same = (line.word[ahead] == line.word[behind]) & (sort[ahead] == sort[behind])
        same &= (np.abs(climb) <= 1) & (np.abs(count_up) <= 1) & ~line.bracket[ahead]
        change = 3 * climb + count_up
        changed = np.ones(len(change), dtype=np.bool_)
        changed[length:] = change[length:] != change[:-length]
        runs.append((_next(~same), _next(changed)))
    parts, at, plain = [], 0, 0
    while at < count:
        for length, (bad, other) in enumerate(runs, start=1):
            if at + length >= len(bad) + length - 1 or bad[at] < at + length:
                continue
            end = min(bad[at], other[min(at + length, len(other) - 1)])
            iterations = (int(end) - at) // length + 1
            if plain:
                parts.append((at - plain, plain, 1))
                plain = 0
            parts.append((at, length, iterations))
            at += length * iterations
            break
        else:
            plain, at = plain + 1, at + 1
    return parts + ([(at - plain, plain, 1)] if plain else [])


def _next(marked: Bools) -> Ints:
    """Next marked place from each on, that included; the length where there is none."""
    count = len(marked)
    place = np.where(marked, np.arange(count), count)
    return np.append(np.minimum.accumulate(place[::-1])[::-1], count)


def _sorts(line: Line) -> tuple[Ints, Ints]:
    """Sort of partner of each step, and the bit by which it differs."""
    columns, inverse = np.unique(line.peer, axis=1, return_inverse=True)
    place = line.place._replace(iterations=1)
    names: dict[object, int] = {}
    sort = np.zeros(columns.shape[1], dtype=np.int64)
    level = np.zeros_like(sort)
    for number, peers in enumerate(columns.T[:, :, None]):
        rules = [
            rule
            for rule in candidates(peers, place)
            if (predicted := rule.at(place)) is not None and np.array_equal(predicted, peers)
        ]
        rule = next((r for r in rules if r.kind == "bit"), rules[0] if rules else None)
        if rule is not None and rule.kind == "bit":
            sort[number] = names.setdefault(("bit", rule.axis), len(names))
            level[number] = rule.values[0]
        else:
            sort[number] = names.setdefault(rule, len(names))
    return sort[inverse.ravel()], level[inverse.ravel()]
