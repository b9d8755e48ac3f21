"""Schedules carried out by hand: what each message carries, and how many follow on another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator
from copy import copy
from typing import Any

import numpy as np

from hopmap.simulator.collectives.algorithms import Chosen
from hopmap.simulator.programs.from_collectives import program_of_call


def played(schedule: Any, held: list[Any]) -> Generator[tuple[Any, int, int], None, int]:
    """Let every member go through its steps, and yield what arrives where.

    Yields
    ------
    tuple
        What the sender held when its step began, the receiver, which takes it now, and the bytes.
        The caller adds it to what the receiver holds.

    Returns
    -------
    int
        Messages that follow on each other at most, at one member or from member to member.
    """
    assert (schedule.posted <= schedule.taken).all()
    sends, takes = defaultdict(list), defaultdict(list)
    way: list[set[int]] = [set() for _ in held]
    columns = (c.tolist() for c in (schedule.round, schedule.src, schedule.dst, schedule.taken))
    for k, (sent, src, dst, taken) in enumerate(zip(*columns, strict=True)):
        way[src].add(sent)
        way[dst].add(taken)
        sends[src, sent].append(k)
        takes[dst, taken].append(k)
    ahead = [sorted(steps, reverse=True) for steps in way]
    begun, level = [False] * len(held), [0] * len(held)
    flying: dict[int, tuple[Any, int]] = {}
    while any(ahead):
        moving = [i for i in range(len(held)) if ahead[i] and not begun[i]]
        for i in moving:  # all that can begin a step do, before any of them ends it
            begun[i] = True
            for k in sends[i, ahead[i][-1]]:
                flying[k] = copy(held[i]), level[i] + 1
        ready = [
            i
            for i in range(len(held))
            if ahead[i] and all(k in flying for k in takes[i, ahead[i][-1]])
        ]
        assert ready, "members wait for each other for ever"
        for i in ready:
            step = ahead[i].pop()
            begun[i] = False
            level[i] += bool(sends[i, step])
            for k in takes[i, step]:
                carried, after = flying.pop(k)
                level[i] = max(level[i], after)
                yield carried, i, int(schedule.size[k])
    assert not flying, "a message that nobody takes"
    return max(level, default=0)


def depth(schedule: Any) -> int:
    """Messages that follow on each other at most: the rounds of what has rounds."""
    members = int(np.concatenate((schedule.src, schedule.dst)).max(initial=-1)) + 1
    playing = played(schedule, [None] * members)
    while True:
        try:
            next(playing)
        except StopIteration as end:
            return int(end.value)


def as_program(schedule, members):
    """Operations of a schedule as ranks would get them."""
    return program_of_call(Chosen("barrier", "made", schedule), members)
