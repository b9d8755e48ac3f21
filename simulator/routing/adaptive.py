"""Minimal adaptive routing: of the links of all shortest ways the one with the shortest queue.

At every place a packet looks at the ports behind which one link less is left, and takes the one
with the shortest queue: information of that place alone. The port of the topology's own route wins
ties, and of others the first. On a fat tree that is adaptive routing up, and the one way down.

Source: Dally and Towles, Principles and Practices of Interconnection Networks, 2004,
chapter 10 (adaptive routing).
With finite buffers: Duato, A new theory of deadlock-free adaptive routing in wormhole networks,
IEEE Trans. Parallel and Distributed Systems 4, 1993.
"""

from __future__ import annotations


def shorter(queue: float, least: float) -> bool:
    """Whether another queue is better than the least so far."""
    return queue < least
