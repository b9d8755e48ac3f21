"""Valiant's routing: to a node at random, and from there to the target, deterministically.

Whatever the pattern, a link carries what it would with uniform traffic, twice.

- The node is any, source and target among them; of a node behind a switch, that switch.
- On a dragonfly only its group counts, which is any but those of source and target: as soon as a
  packet has reached that, it goes on to its target. What stays within a group goes minimally.

Sources: Valiant and Brebner, Universal schemes for parallel communication, STOC 1981; Kim, Dally,
Scott and Abts, Technology-driven, highly-scalable dragonfly topology, ISCA 2008 (routing).
"""

from __future__ import annotations


def choices(homes: int, here: int, there: int) -> int:
    """How many nodes there are to choose from, without those of two groups of such sizes."""
    return homes - here - there


def intermediate(drawn: int, left: int, low: int, low_size: int, high: int, high_size: int) -> int:
    """Return the number of a node, without the groups whose first numbers are low and high.

    Parameters
    ----------
    drawn, left : int
        A random number, and `choices`, at least one.
    """
    number = drawn % left
    if number >= low:
        number += low_size
    if number >= high:
        number += high_size
    return number
