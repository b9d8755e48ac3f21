"""Which steps at one rank count are which at another: loops whose iterations grow with the grid.

Where ranks take more steps at more ranks, these are folded: a body repeats if its steps are the
same, with the same sort of partner, and if bits of partners and tags are the same or move by one
each iteration, as in a butterfly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopmap.arrays import Bools, Ints

from .partners import Place, candidates

LONGEST = 80  # steps of a body


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


def matched(lines: list[Line]) -> list[Part] | None:
    """Cut the steps of all sizes into parts that belong to each other; None where they do not."""
    first = lines[0].word
    if all(np.array_equal(line.word, first) for line in lines):
        ones = (1,) * len(lines)
        return [Part((0,) * len(lines), ones, len(first))]
    folded = [_folded(line) for line in lines]
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


def _folded(line: Line) -> list[tuple[int, int, int]]:
    """First step, length and iterations of each part; the shortest body that repeats is taken."""
    count = len(line.word)
    sort, level = _sorts(line)
    alike = (line.tag == line.tag[:1]).all(axis=0)
    tag = np.where(alike, line.tag[0], -1)
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
            if (told := rule.at(place)) is not None and np.array_equal(told, peers)
        ]
        rule = next((r for r in rules if r.kind == "bit"), rules[0] if rules else None)
        if rule is not None and rule.kind == "bit":
            sort[number] = names.setdefault(("bit", rule.axis), len(names))
            level[number] = rule.values[0]
        else:
            sort[number] = names.setdefault(rule, len(names))
    return sort[inverse.ravel()], level[inverse.ravel()]
