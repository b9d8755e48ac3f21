"""Packet spraying: of the links that a shortest way may take, any, packet by packet.

On a fat tree that is a random way up. It is ECMP (RFC 2992) with packets in the place of flows;
that by pairs of nodes is a topology's (``fattree:4x4,routing=ecmp``).

Source: Dixit, Prakash, Hu and Kompella, On the impact of packet spraying in data center networks,
INFOCOM 2013; for trees, Leiserson, Fat-trees, IEEE Trans. Computers 34, 1985.
"""

from __future__ import annotations


def chosen(drawn: int, ways: int) -> int:
    """Which of so many ways a packet takes."""
    return drawn % ways
