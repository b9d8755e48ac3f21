"""Compiled parts of the genetic algorithm: ordered crossover, and breeding one generation.

A string holds a rank or dummy rank for every slot of the machine, slots in the order of nodes; or
`of_ranks` a slot for every rank and dummy rank.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopmap.arrays import Bools, Floats, Ints
from hopmap.compilation import njit, subroutine
from hopmap.mappers.cost_kernels import total_cost
from hopmap.mappers.cost_model import CostModel


class Generation(NamedTuple):
    """Strings, shape (population, slots), and the cost of each."""

    strings: Ints
    costs: Ints


@subroutine
def ordered_crossover(
    donor: Ints, receptor: Ints, start: int, stop: int, taken: Bools, child: Ints
) -> None:
    """Write the donor's section start..stop-1 and around it the receptor's rest, in its order.

    The rest is slid: it is read and written from the end of the section on, round the string.
    """
    length = len(donor)
    taken[:] = False
    for i in range(start, stop):
        child[i] = donor[i]
        taken[donor[i]] = True
    write = stop
    for i in range(stop, stop + length):
        letter = receptor[i if i < length else i - length]
        if not taken[letter]:
            child[write if write < length else write - length] = letter
            write += 1


@subroutine
def string_cost(
    model: CostModel, node_of_slot: Ints, string: Ints, of_ranks: bool, places: Ints
) -> int:
    """Cost of the mapping that a string means; fills places."""
    for i in range(len(string)):
        if of_ranks:
            places[i] = node_of_slot[string[i]]
        else:
            places[string[i]] = node_of_slot[i]
    return total_cost(model, places)


@njit
def string_costs(model: CostModel, node_of_slot: Ints, strings: Ints, of_ranks: bool) -> Ints:
    """Cost of each string."""
    places = np.empty(len(node_of_slot), dtype=np.int64)
    costs = np.empty(len(strings), dtype=np.int64)
    for i in range(len(strings)):
        costs[i] = string_cost(model, node_of_slot, strings[i], of_ranks, places)
    return costs


@njit
def breed(
    model: CostModel,
    node_of_slot: Ints,
    parents: Generation,
    roulette: Floats,
    of_ranks: bool,
    segment: int,
    random: Floats,
    children: Generation,
    filled: int,
) -> int:
    """Fill up the children with accepted offspring; one row of `random` a try; returns how many.

    `random` is uniform in [0, 1): donor, receptor, length and start of the section, then pairs of
    slots to exchange. Roulette is the cumulated share of each parent. A section has up to `segment`
    letters; with 0 it lies between two cuts, neither of them next to an end. A child is accepted if
    it costs less than both of its parents.
    """
    strings, costs = parents.strings, parents.costs
    length = len(node_of_slot)
    child = np.empty(length, dtype=np.int64)
    places = np.empty(length, dtype=np.int64)
    taken = np.empty(length, dtype=np.bool_)
    for row in range(len(random)):
        if filled == len(children.costs):
            break
        draw = random[row]
        donor = min(np.searchsorted(roulette, draw[0], side="right"), len(strings) - 1)
        receptor = min(np.searchsorted(roulette, draw[1], side="right"), len(strings) - 1)
        if segment == 0 and length > 3:
            start = 1 + int(draw[2] * (length - 2))
            stop = 1 + int(draw[3] * (length - 3))
            if stop >= start:
                stop += 1
            start, stop = min(start, stop), max(start, stop)
        else:
            section = 1 + int(draw[2] * min(max(segment, 1), length))
            start = int(draw[3] * (length - section + 1))
            stop = start + section
        ordered_crossover(strings[donor], strings[receptor], start, stop, taken, child)
        for i in range(4, len(draw) - 1, 2):
            s = int(draw[i] * length)
            t = int(draw[i + 1] * length)
            child[s], child[t] = child[t], child[s]
        cost = string_cost(model, node_of_slot, child, of_ranks, places)
        if cost < min(costs[receptor], costs[donor]):
            children.strings[filled] = child
            children.costs[filled] = cost
            filled += 1
    return filled
