"""Sequential halving for the least worst regret: good candidates get the replays.

In each of ceil(log2 n) rounds all candidates that are left are replayed under the same further
models, as many as an equal share of the budget pays for; then the half with the larger worst
regret so far is dropped. What is left over goes to those that were dropped last, so that a budget
for everything is the exhaustive search.

Sources: Karnin, Koren, Somekh, Almost optimal exploration in multi-armed bandits, ICML 2013
(Algorithm 1; there rewards are means, and a round forgets the rounds before it); Jamieson,
Talwalkar, Non-stochastic best arm identification and hyperparameter optimization, AISTATS 2016, who
keep them. Regret needs all candidates under the same models (common random numbers). For a maximum
it counts which models come first: see `ranges.spread_out`. Cost: the replays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

from hopmap.simulator.uncertainty import standings

Floats = NDArray[np.float64]


def halving(
    candidates: int,
    models: int,
    replay: Callable[[int, int], float],
    replays: int,
) -> Floats:
    """Replay candidates under models, good ones under more of them.

    Parameters
    ----------
    replay : callable
        ``(candidate, model) -> seconds``.
    replays : int
        The budget; every candidate is replayed once at least.

    Returns
    -------
    ndarray(float64, shape=(candidates, models))
        Seconds, NaN where nothing was replayed. Those of a round have their models in common.
    """
    times = np.full((candidates, models), np.nan)
    left, dropped, refused = list(range(candidates)), list[list[int]](), set[int]()
    tried, rest, rounds = 0, replays, rounds_of(candidates)

    def fill(model: int, who: Sequence[int]) -> int:
        """Replay a model with some candidates; return how many replays that took."""
        for done, each in enumerate(who):
            times[each, model] = replay(each, model)
            if np.isnan(times[each, model]):
                times[:, model] = np.nan
                refused.add(model)
                return done + 1
        return len(who)

    for to_come in range(rounds, 0, -1):
        until = min(models, tried + max(rest // (to_come * len(left)), not tried))
        rest -= sum(fill(model, left) for model in range(tried, until))
        tried = until
        found = standings(times)
        left.sort(key=lambda each: (found[each].worst, found[each].mean, each))
        keep = ceil(len(left) / 2) if to_come > 1 else len(left)
        left, gone = left[:keep], left[keep:]
        dropped.append(gone)
    for group in (left, *reversed(dropped)):
        for model in sorted(set(range(models)) - refused):
            missing = [each for each in group if np.isnan(times[each, model])]
            if len(missing) > rest:
                return times
            rest -= fill(model, missing)
    return times


def rounds_of(candidates: int) -> int:
    """Return how many rounds halve so many candidates to one; one at least.

    Examples
    --------
    >>> [rounds_of(n) for n in (1, 2, 3, 12)]
    [1, 1, 2, 4]
    """
    return max(1, ceil(log2(candidates)))


def budget(candidates: int, models: int) -> int:
    """Return how many replays let the last ones that are left have every model.

    Examples
    --------
    >>> budget(12, 100)
    382
    """
    sizes = [ceil(candidates / (1 << done)) for done in range(rounds_of(candidates))]
    enough = ceil(len(sizes) * models / sum(1 / size for size in sizes))
    return min(candidates * models, enough + candidates)  # the first round takes one model at least
