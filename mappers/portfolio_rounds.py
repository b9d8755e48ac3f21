"""Rounds of the portfolio: annealing, multilevel, splitting subsystems again, tabu search.

One long round is better than several short ones: on nine graphs of 128 to 4,096 ranks, two rounds
of half the time had 0.97 to 1.02 of its cost, four 1.00 to 1.05, eight 1.00 to 1.11. The first
temperature is between what a pair costs one hop apart and at random places; on dragonflies it is
that of `annealing` from a mapping. The last one follows the mean weight, after a cool start the
light pairs that still count. With few proposals a rank the first is lower, as what melts then
cannot freeze again in time; with more than `PER_RANK` the last is lower, as there is time for it,
unless tabu search has the rest.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints
from hopmap.mappers.bisections.multilevel import anneal_by_levels
from hopmap.mappers.bisections.recursive_bisection import (
    MOST,
    exchange_blocks,
    ruin_and_recreate,
    spans_of,
)
from hopmap.mappers.cost_model import NEAR
from hopmap.mappers.exchanges.annealing import FROM_MAPPING, AnnealingSearch
from hopmap.mappers.exchanges.tabu import iterated_tabu
from hopmap.topologies import Topology

from .lanes import Round
from .portfolio_starts import is_skewed
from .stop import Moves

PER_RANK = 20_000  # proposals of a round without any budget
SLOW = 1_000  # proposals a rank for which HOT is not too hot, and there is time for pilots
ROUND = 0.97  # part of a round that is hot; the rest is for a descent
DESCENT = 10  # proposals a rank of that, and of blocks after it
# First temperature, in geometric means of what a pair costs one hop apart and at random places; the
# last, in weights of a pair; part of both for cardinality, where most exchanges cost nothing.
HOT, COLD, FLAT = 2.5, 0.3, 0.2
LIGHT = 0.1  # of the traffic is of lighter pairs than a light one; none is heavier than the mean
LEAST = 0.15  # part of the hot temperature at which a warm round begins at least
COOL = 0.05  # part of it below which a start is in order, and at which its mild round begins
PER_TRIAL = 1000  # proposals that stand for a trial with a few subsystems, without a time budget
# Slots up to which a step that looks at every exchange pays, and for which it has half the rounds.
FEW, TABU = 256, 100


class Rounds(NamedTuple):
    """Rounds of one search: temperatures, and how many subsystems are split at once."""

    first: float
    last: float
    split: int  # 0 where ranks are annealed instead
    cool: bool  # whether a start is far colder than a hot round, as bisections of a tree may be
    tabu: float  # part of the rounds that is for looking at all exchanges

    @property
    def name(self) -> str:
        """Name of a hot round."""
        return "splitting again" if self.split else "annealing"

    def hot(self) -> Round:
        """Return a round that forgets where it begins, or splits subsystems again."""
        if self.split:
            return partial(_split_again, most=self.split, last=self.last)
        return partial(_anneal, first=self.first, last=self.last)

    def warm(self, search: AnnealingSearch, places: Ints) -> Round:
        """Return a round that begins at the temperature of the places."""
        if self.split:
            return self.hot()
        search.assign(places)
        heat = max(search.temperature(self.first), LEAST * self.first)
        return partial(_anneal, first=heat, last=self.last)

    def mild(self) -> Round:
        """Return a round from a cool start."""
        return partial(_anneal, first=COOL * self.first, last=self.last)


def rounds_of(
    search: AnnealingSearch, start: Ints, per_rank: float, rng: np.random.Generator
) -> Rounds:
    """Take temperatures from the weights, and from the cost at random places or near the start.

    - `start`: where annealing begins, shape (slots,).
    - `per_rank`: proposals that there will be, at least 1.
    """
    weight, slots = search.model.weight, len(search.best)
    mean = float(weight.mean()) if len(weight) else 0.0
    light = min(_light(weight), mean)
    far = 2 * search.assign(rng.permutation(search.best)) / max(len(weight), 1)
    if search.model.kind == NEAR:
        mean, light, far = FLAT * mean, FLAT * light, FLAT * mean
    for_tabu = 1 / (1 + (slots / TABU) ** 2) if slots <= FEW else 0.0
    split = 0 if not _is_nested(search.topology) else 2 if is_skewed(search) else MOST
    search.assign(start)
    on_dragonfly = spans_of(search.topology) and not split
    first = FROM_MAPPING * search.scale() if on_dragonfly else HOT * (mean * far) ** 0.5
    first *= min(per_rank / SLOW, 1.0)
    cool = not split and search.temperature(first) < COOL * first
    last = COLD * (light if cool else mean)
    last *= 1.0 if for_tabu else min(PER_RANK / per_rank, 1.0)
    return Rounds(first, last, split, cool, for_tabu)


def _light(weight: Ints) -> float:
    """Return the weight of a pair such that lighter ones have `LIGHT` of the traffic."""
    ordered = np.sort(weight)
    part = np.cumsum(ordered, dtype=np.float64)
    return float(ordered[np.searchsorted(part, LIGHT * part[-1])]) if len(weight) else 0.0


def by_levels(search: AnnealingSearch, share: Moves, rng: np.random.Generator) -> None:
    """Place groups of ranks, then ranks, wherever they are now (see `multilevel`)."""
    anneal_by_levels(search, rng, share.part(ROUND))
    _descend(search)


def tabu(search: AnnealingSearch, share: Moves, rng: np.random.Generator) -> None:
    """Look at every exchange in every step, from the present places (see `tabu`)."""
    iterated_tabu(search, rng, moves=share.moves, seconds=share.seconds)


def _anneal(
    search: AnnealingSearch, share: Moves, _: np.random.Generator, *, first: float, last: float
) -> None:
    """Anneal from the present places."""
    most = share.part(ROUND)
    search.cool(first, last, moves=most.moves, seconds=most.seconds)
    _descend(search)


def _descend(search: AnnealingSearch) -> None:
    """Let ranks, then blocks, exchange places where that gains."""
    proposals = DESCENT * max(len(search.assignment.active), 1)
    search.cool(0.0, 0.0, moves=proposals)
    exchange_blocks(search, proposals)


def _split_again(
    search: AnnealingSearch, share: Moves, rng: np.random.Generator, *, most: int, last: float
) -> None:
    """Split the ranks of subsystems again level by level, then anneal cold."""
    active = max(len(search.assignment.active), 1)
    levels, rest = share.part(ROUND), share.part(1 - ROUND)
    trials = None if share.moves is None else max(share.moves // (PER_TRIAL * active), 1)
    ruin_and_recreate(search, rng, most=most, trials=trials, seconds=levels.seconds)
    search.cool(last, last, moves=share.moves, seconds=rest.seconds)


def _is_nested(topology: Topology) -> bool:
    """Whether all that is outside a subsystem is equally far from it."""
    from hopmap.topologies.switch_kernels import FatTreeRouter
    from hopmap.topologies.tree_kernels import TreeRouter

    return isinstance(topology.router, TreeRouter | FatTreeRouter)
