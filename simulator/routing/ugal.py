"""Universal globally-adaptive load-balanced routing: minimally, or by Valiant's detour.

A packet's first router draws an intermediate node as `valiant.py` does, and compares what the
minimal way and the detour would take: a queue, times the links on the way. The detour is taken only
if it is shorter, with no threshold besides. What q is:

- **UGAL-L**: the queue at the link that the packet would leave this router by.
- **UGAL-G**: on a dragonfly the queue at the first global link of either way, wherever its router
  is. Elsewhere the sum of the queues at all links of the way, which is what q H estimates, takes
  the place of the product.

Sources: Singh, Load-balanced routing in interconnection networks, PhD thesis, Stanford 2005; Kim,
Dally, Scott and Abts, ISCA 2008 (routing on the dragonfly).
"""

from __future__ import annotations


def goes_minimally(q_m: float, h_m: int, q_nm: float, h_nm: int) -> bool:
    """Whether queue times hops of the minimal way are at most those of the detour."""
    return q_m * h_m <= q_nm * h_nm
