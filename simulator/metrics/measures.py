"""The shapes of a metric: what `evaluate` returns and ``evaluate --json`` prints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopmap.traces import exact_sum


@dataclass(frozen=True)
class Spread:
    """Total, average, minimum and maximum over the entries that are not 0.

    The average is a float in the convention "hopmap" and a truncated integer in "maplib".
    """

    total: int
    avg: float
    min: int
    max: int


@dataclass(frozen=True)
class Dilation:
    """Hops weighted by traffic: sum, average per message (or byte), longest distance, largest pair.

    The average is over what another rank gets; "maplib" has what ranks send themselves in it, as
    one hop. ``max_pair`` is the most that hops times weight come to for one pair: the maximum that
    the HAEC thesis, section 2.6, names beside the sum.
    """

    sum: int
    avg: float
    max: int
    max_pair: int


@dataclass(frozen=True)
class Congestion:
    """Highest link load, the nodes that this link joins, links with any load, links in all.

    ``pairs`` is the most rank pairs that use one link, which is what the HAEC thesis, section 2.6,
    calls congestion.
    """

    max: int
    max_link: list[int] | None
    pairs: int
    used_links: int
    links: int


@dataclass(frozen=True)
class OffNode:
    """What leaves nodes: in all, and from the worst node."""

    total: int
    max: int


@dataclass(frozen=True)
class Measure:
    """All metrics for one quantity, messages or bytes."""

    ieplc: Spread
    ianlc: Spread
    ienlc: Spread
    ienpc: Spread
    dilation: Dilation
    congestion: Congestion
    off_node: OffNode


def spread_of(entries: NDArray[np.int64], *, truncate: bool = False) -> Spread:
    """Summarise the entries that are not 0."""
    used = entries[entries > 0]
    if not used.size:
        return Spread(0, 0 if truncate else 0.0, 0, 0)
    total = exact_sum(used)
    average = total // used.size if truncate else total / used.size
    return Spread(total, average, int(used.min()), int(used.max()))
