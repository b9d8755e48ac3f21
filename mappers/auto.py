"""Auto: a portfolio that spends a budget on what is known to work, and keeps the best.

1. Orders that cost nothing: the given mapping, nodes in order, and on boxes the curves.
2. Starts: a fold if the traffic is a grid on a box, and recursive bisections with several seeds.
   On hierarchies more of them, and `topdown`.
3. Rounds of annealing: from a start, hot; then from the best so far, warm; and so on. How many
   rounds and how hot follows from how many proposals a rank the budget allows: with few a single
   cool one, for a hot round that is cut short is worse than its start. On hierarchies the ranks
   of a few subsystems are split anew, level by level (see `sections`), and then annealed cold.
4. After each round whole blocks of nodes exchange their ranks (see `multilevel`).

Nothing is ever lost: the best mapping met is what is returned, also at the end of the time or on
Ctrl-C. `portfolio` says what every step reached; `auto` logs the same lines (logger
``hopmap.mappers.auto``, level INFO). A budget of `moves` is a number of proposals and gives the
same mapping for the same seed everywhere; what a time budget gives depends on the machine.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..topologies import Mapping, Topology, torus, tree
from ..traces import Traffic
from . import annealing_kernels
from .bisection import bisected
from .cooling import Search
from .fold import best_fold
from .gray import gray
from .hilbert import hilbert
from .mapper import CountOrZero, MapperFunction, Seconds, mapper
from .multilevel import exchange_blocks
from .objectives import ObjectiveName, with_free_slots
from .partition import Preset
from .peano import peano
from .scan import scan
from .search import Clock, Interrupted, Progress, Watch
from .sections import spans_of, split_anew
from .sweep import sweep
from .topdown import topdown

log = logging.getLogger(__name__)

CURVES: tuple[MapperFunction, ...] = (scan, gray, peano, hilbert)
PER_RANK = 20_000  # proposals without any budget
FOLDS = 400
ROUND, SECTIONS = 60_000, 30_000  # proposals a rank that make a round; on hierarchies
ROUNDS = 12
BLOCKS = 20  # proposals of blocks a rank after each round
COLD = 0.02
ECO, STRONG = 0.5e-3, 3e-3  # processor seconds a rank that `topdown` takes, upper figures
FOURS = 4  # trials with four subsystems, for each of them, without a time budget


class Step(NamedTuple):
    """What a member of the portfolio reached.

    Attributes
    ----------
    member : str
    value : int
        Of the objective, after this step.
    best : int
        Best value so far.
    moves : int
        Proposals made so far.
    seconds : float
        Since the beginning.
    """

    member: str
    value: int
    best: int
    moves: int
    seconds: float


class Portfolio(NamedTuple):
    """The best mapping, and the steps that led to it."""

    mapping: Mapping
    steps: list[Step]


@mapper("auto", source="this project", initial="optional")
def auto(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    initial: Mapping | None = None,
    objective: ObjectiveName = "hop_bytes",
    moves: CountOrZero | None = None,
    seconds: Seconds = None,
    clock: Clock = "wall",
    progress: Progress | None = None,
) -> Mapping:
    """Best of a portfolio: given order, curves, folds, recursive bisections, rounds of annealing.

    Parameters
    ----------
    traffic, topology, rng
        See `map_ranks`.
    initial : ndarray, optional
        A mapping that is not to be worsened.
    objective : str
        What is minimised or maximised.
    moves : int, optional
        Proposals of all rounds; 20,000 a rank if there is no time budget either.
    seconds, clock, progress
        Time budget, elapsed or of the processor, and whom to tell. Compiling counts apart.
    """
    run = portfolio(
        traffic, topology, rng=rng, initial=initial, objective=objective, moves=moves,
        seconds=seconds, clock=clock, progress=progress,
    )  # fmt: skip
    return run.mapping


def portfolio(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    initial: Mapping | None = None,
    objective: ObjectiveName = "hop_bytes",
    moves: int | None = None,
    seconds: float | None = None,
    clock: Clock = "wall",
    progress: Progress | None = None,
) -> Portfolio:
    """See `auto`; with the steps."""
    _compile()
    annealing_kernels.all_hops(topology.router, 1)
    watch = Watch(seconds, progress, clock)
    if moves is None and seconds is None:
        moves = PER_RANK * traffic.ranks
    order = sweep(traffic, topology, rng=rng)
    search = Search(traffic, topology, order if initial is None else initial, objective, rng, watch)
    steps: list[Step] = []
    try:
        for member in _members(search, traffic, order, objective, moves, rng):
            value, best = (search.named.value(c) for c in (search.cost, search.best_cost))
            steps.append(Step(member, value, best, search.moves, watch.now() - watch.begin))
            log.info("%s: %d, best %d, %d moves, %.2f s", *steps[-1])
            search.report()
            if search.done():
                break
    except KeyboardInterrupt:
        raise Interrupted(search.mapping) from None
    return Portfolio(search.mapping, steps)


def _members(
    search: Search,
    traffic: Traffic,
    order: Mapping,
    objective: ObjectiveName,
    moves: int | None,
    rng: np.random.Generator,
) -> Iterator[str]:
    """Run one member after another on the search, and name it when it is done."""
    topology, watch = search.topology, search.watch
    yield "given order"
    search.sit(with_free_slots(order, topology))
    yield "sweep"
    for curve in CURVES if topology.dims else ():
        search.sit(with_free_slots(curve(traffic, topology, rng=rng), topology))
        yield curve.__name__
    starts = []
    for name, start in _starts(search, traffic, objective, rng):
        starts.append(start)
        search.sit(start)
        yield name
    starts = sorted(starts, key=search.sit)[:ROUNDS]
    search.sit(search.best)
    scale, talkers = search.scale(), max(len(search.seating.talkers), 1)
    begin, before = watch.now(), search.moves
    search.cool(0.0, 0.0, moves=10 * talkers)
    yield "descent"
    total = moves
    if total is None:
        rate = (search.moves - before) / max(watch.now() - begin, 1e-6)
        total = int(rate * (watch.left() or 0.0))
    levels = bool(spans_of(topology))
    rounds = min(max(total // ((SECTIONS if levels else ROUND) * talkers), 1), ROUNDS)
    for k in range(rounds):
        left = watch.left()
        share = None if left is None else left / (rounds - k)
        budget = None if moves is None else max(moves // rounds, 1)
        fresh = k % 2 == 0
        search.sit(starts[k // 2 % len(starts)] if fresh else search.best)
        if levels:
            fours = FOURS if share is None else 10**6
            most = None if share is None else 0.75 * share
            split_anew(search, rng, sweeps=3, tries=1, fours=fours, seconds=most)
            rest = None if share is None else 0.25 * share
            search.cool(0.02 * scale, 0.0005 * scale, moves=budget, seconds=rest)
        else:
            hot = _hot(total / rounds / talkers, fresh)
            search.cool(hot * scale, COLD * scale, moves=budget, seconds=share)
            exchange_blocks(search, BLOCKS * talkers)
        yield f"annealing from {'a start' if fresh else 'the best'}"


def _starts(
    search: Search, traffic: Traffic, objective: ObjectiveName, rng: np.random.Generator
) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Make mappings to start annealing from: more on hierarchies, where they decide."""
    topology = search.topology
    folded = best_fold(traffic, topology, search.model, objective, FOLDS)
    if folded is not None:
        yield "fold", with_free_slots(folded, topology)
    levels, watch = bool(spans_of(topology)), search.watch
    share = 0.25 if levels else 0.1
    most = 3 if not levels else 8 if watch.end is None else 200
    for done in range(most):
        search.sit(bisected(search.model, topology, rng))
        if levels:
            split_anew(search, rng, sweeps=3, tries=1, fours=0)
        yield "recursive_bisection", search.seating.places.copy()
        preset = _preset(traffic.ranks, watch.left()) if levels and done == 0 else None
        if preset is not None:
            split = topdown(traffic, topology, rng=rng, objective=objective, preset=preset)
            yield f"topdown({preset})", with_free_slots(split, topology)
        if _part(watch) > share:
            break


def _preset(ranks: int, seconds: float | None) -> Preset | None:
    """KaHIP's preset whose usual time is less than a third of the budget; None: not even eco's."""
    if seconds is None or seconds > 3 * ECO * ranks:
        return "strong" if seconds is not None and seconds > 3 * STRONG * ranks else "eco"
    return None


def _part(watch: Watch) -> float:
    """Part of the time budget that is spent; 0 without one."""
    return 0.0 if watch.end is None else (watch.now() - watch.begin) / (watch.end - watch.begin)


def _hot(per_rank: float, fresh: bool) -> float:
    """First temperature of a round with so many proposals a rank, in units of the scale."""
    if per_rank < ROUND / 2:
        return 0.1
    if per_rank < ROUND or not fresh:
        return 0.2
    return 0.35


@cache
def _compile() -> None:
    """Compile whatever the portfolio runs, so that no budget pays for it."""
    ranks = np.arange(16)
    ring = Traffic.from_pairs(16, ranks, (ranks + 1) % 16, ranks + 1, ranks + 1)
    rng = np.random.default_rng(0)
    for topology in (torus([2, 2, 4]), tree([4, 4])):
        search = Search(ring, topology, ranks, "hop_bytes", rng, Watch())
        search.bound = None
        for _ in _members(search, ring, ranks, "hop_bytes", 1000, rng):
            pass
