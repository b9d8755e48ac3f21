"""What more time would gain a mapping of `auto`: the median of benchmarks, by how far it came.

``benchmarks/anytime/anytime.py`` prints it: J after a time and after 5 times as much, by the
proposals a rank that the shorter run had made. On hierarchies trials of splitting again are not
counted, and less is left to gain.
"""

from __future__ import annotations

from bisect import bisect_right

TIMES = 5  # as much time
# Proposals a rank from which on, and the median gain as a part of J on hierarchies and elsewhere.
GAINS = ((1, 0.025, 0.20), (100, 0.004, 0.022), (10_000, 0.0, 0.009))


def gain_by_more_time(per_rank: float, levels: bool) -> float | None:
    """Return the part of J that `TIMES` the time would gain; None before the first proposals.

    Parameters
    ----------
    per_rank : float
        Proposals that were made, a rank with peers.
    levels : bool
        Whether the network is a hierarchy.
    """
    row = bisect_right(GAINS, per_rank, key=lambda each: each[0])
    return GAINS[row - 1][1 if levels else 2] if row else None
