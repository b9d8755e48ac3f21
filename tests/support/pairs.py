"""Few cases that bring any two values together, instead of all products.

An error that one value causes, or two that meet, shows in them as in the product; greedy, after
Cohen et al., "The AETG system" (1997). What has met most seldom goes first, so that no value is
seen with one other only, which may hide an error.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations, product


def all_pairs(
    *factors: Sequence, fits: Callable[[object, object], bool] = lambda one, other: True
) -> list[tuple]:
    """Return cases, a value of every factor each, such that any two values meet in one.

    Parameters
    ----------
    *factors : Sequence
        Values that differ, at least two factors; the longest first gives the fewest cases.
    fits : Callable
        Whether a value may meet one of a later factor.

    Raises
    ------
    ValueError
        Two values fit, but nothing of a third factor fits both.
    """
    places = range(len(factors))

    def pair(case: dict[int, int], i: int, j: int) -> tuple[int, int, int, int]:
        i, j = min(i, j), max(i, j)
        return i, case[i], j, case[j]

    missing = {  # a dict, which keeps the order
        (i, a, j, b): None
        for i, j in combinations(places, 2)
        for (a, one), (b, other) in product(enumerate(factors[i]), enumerate(factors[j]))
        if fits(one, other)
    }
    allowed, met_before, cases = set(missing), Counter(), []
    while missing:
        i, a, j, b = next(iter(missing))
        case = {i: a, j: b}
        for place in places:
            if place in case:
                continue
            choices = []
            for value in range(len(factors[place])):
                met = [pair(case | {place: value}, place, other) for other in case]
                if allowed.issuperset(met):
                    new = sum(key in missing for key in met)
                    choices.append((-new, sum(met_before[key] for key in met), value))
            if not choices:
                raise ValueError(f"no value of factor {place} fits {case}")
            *_, case[place] = min(choices)
        for i, j in combinations(places, 2):
            missing.pop(pair(case, i, j), None)
            met_before[pair(case, i, j)] += 1
        cases.append(tuple(values[case[place]] for place, values in enumerate(factors)))
    return cases
