"""Decisions of routers that choose routes while packets are on their way: pure functions.

- **adaptive** (minimal): a packet looks at the ports behind which one link less is left, and takes
  the one with the shortest queue: information of that place alone. The port of the topology's own
  route wins ties, and of others the first. On a fat tree that is adaptive routing up, and the one
  way down. Source: Dally and Towles, Principles and Practices of Interconnection Networks, 2004,
  chapter 10; with finite buffers: Duato, A new theory of deadlock-free adaptive routing in wormhole
  networks, IEEE Trans. Parallel and Distributed Systems 4, 1993.
- **spraying**: of the links that a shortest way may take, any, packet by packet. On a fat tree that
  is a random way up. It is ECMP (RFC 2992) with packets in the place of flows; that by pairs of
  nodes is a topology's (``fattree:4x4,routing=ecmp``). Source: Dixit, Prakash, Hu and Kompella, On
  the impact of packet spraying in data center networks, INFOCOM 2013; for trees, Leiserson,
  Fat-trees, IEEE Trans. Computers 34, 1985.
- **valiant**: to a node at random, and from there to the target, deterministically. Whatever the
  pattern, a link carries what it would with uniform traffic, twice. The node is any, source and
  target among them; of a node behind a switch, that switch. On a dragonfly only its group counts,
  which is any but those of source and target: as soon as a packet has reached that, it goes on to
  its target. What stays within a group goes minimally. Sources: Valiant and Brebner, Universal
  schemes for parallel communication, STOC 1981; Kim, Dally, Scott and Abts, Technology-driven,
  highly-scalable dragonfly topology, ISCA 2008.
- **ugal_l, ugal_g** (universal globally-adaptive load-balanced): a packet's first router draws an
  intermediate node as Valiant's does, and takes the detour only if its queue, times the links on
  the way, is less than that of the minimal way. With UGAL-L q is the queue at the link that the
  packet would leave this router by. With UGAL-G it is, on a dragonfly, the queue at the first
  global link of either way, wherever its router is; elsewhere the sum of the queues at all links of
  the way, which is what q H estimates, takes the place of the product. There is no threshold.
  Sources: Singh, Load-balanced routing in interconnection networks, PhD thesis, Stanford 2005; Kim
  et al., ISCA 2008.
- **par** (progressive adaptive): at every router of the source group a packet that still goes
  minimally compares again, as UGAL-L does, since such a router may see the queue of the global link
  itself. Once it has taken the detour, or a global link, it is decided. Source: Jiang, Kim and
  Dally, Indirect adaptive routing on large scale interconnection networks, ISCA 2009.
"""

from __future__ import annotations


def shorter(queue: float, least: float) -> bool:
    """Whether another queue is better than the least so far."""
    return queue < least


def chosen(drawn: int, ways: int) -> int:
    """Which of so many ways a packet takes."""
    return drawn % ways


def choices(homes: int, here: int, there: int) -> int:
    """How many nodes there are to choose from, without those of two groups of such sizes."""
    return homes - here - there


def intermediate(drawn: int, left: int, low: int, low_size: int, high: int, high_size: int) -> int:
    """Return the number of a node, without the groups whose first numbers are low and high.

    It is drawn at random of those that are left, `choices`, at least one.
    """
    number = drawn % left
    if number >= low:
        number += low_size
    if number >= high:
        number += high_size
    return number


def goes_minimally(q_m: float, h_m: int, q_nm: float, h_nm: int) -> bool:
    """Whether queue times hops of the minimal way are at most those of the detour."""
    return q_m * h_m <= q_nm * h_nm


def decided(minimally: bool, progressive: bool) -> bool:
    """Whether a packet that has compared its ways does not do so again."""
    return not (minimally and progressive)
