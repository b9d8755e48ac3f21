"""Rounds of a search at the same time, in threads: compiled code releases Python's lock.

With a budget of elapsed seconds every core runs a round of its own, from other random numbers, and
the best is where the next stage begins. Moves and processor seconds have one lane, so that a seed
gives the same mapping on any number of cores; so has a process that is one of several.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints
from hopmap.cores import cores
from hopmap.mappers.exchanges.annealing import AnnealingSearch

from .stop import Moves, Watch

LANES = 4  # most rounds at the same time

Lanes = Sequence[tuple[AnnealingSearch, np.random.Generator]]
Round = Callable[[AnnealingSearch, Moves, np.random.Generator], None]


class Turn(NamedTuple):
    """A round to come, and where it begins; after it, where it ended."""

    name: str
    places: Ints  # shape (slots,)
    run: Round
    handicap: float = 1.0  # times its cost, where it is compared with other turns


def lanes_of(search: AnnealingSearch, stop: Moves, rng: np.random.Generator) -> Lanes:
    """Return searches to run at the same time, the first with the caller's random numbers."""
    shares = multiprocessing.parent_process() is not None  # the cores, with other processes
    alone = shares or stop.moves is not None or stop.seconds is None or stop.clock == "cpu"
    count = 1 if alone else min(cores(), LANES)
    return [(search.copy(each), each) for each in (rng, *rng.spawn(count - 1))]


def race(
    search: AnnealingSearch, lanes: Lanes, turns: Sequence[Turn], share: Moves
) -> Iterator[Turn]:
    """Run the turns, one after another in each lane, and yield them with where they ended.

    The search notes the best of all, also on Ctrl-C. A lane that reaches the bound ends the others.
    """
    ended = list(turns)
    count = min(len(lanes), len(turns))
    left, before = search.watch.remaining(), search.moves
    over = Event()

    def end() -> None:
        over.set()
        if count > 1:
            search.watch.end = search.watch.begin + 0.001  # over by the clock of any thread
        for lane, _ in lanes[1:count]:
            lane.watch.end = 0.0

    def run(k: int) -> None:
        lane, rng = lanes[k]
        lane.watch = search.watch if k == 0 else Watch(left)  # threads have clocks of their own
        lane.moves = before
        for i in range(k, len(turns), count):
            if over.is_set():
                break
            lane.restart(turns[i].places)
            turns[i].run(lane, share, rng)
            ended[i] = turns[i]._replace(places=lane.best.copy())
            if lane.optimal():
                end()

    try:
        with ThreadPoolExecutor(count) as pool:
            others = [pool.submit(run, k) for k in range(1, count)]
            try:
                run(0)
                for other in others:
                    other.result()
            except BaseException:  # Ctrl-C, for one
                end()
                raise
    finally:
        search.moves += sum(lane.moves - before for lane, _ in lanes[:count])
        for places in (*(turn.places for turn in ended), *(lane.best for lane, _ in lanes[:count])):
            search.assign(places)
    for turn in ended:
        search.assign(turn.places)
        yield turn
