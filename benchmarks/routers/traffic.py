"""BookSim's traffic as programs: packets made at random cycles, targets by number of the node.

On 8x8 networks node (x, y) is 8 y + x. On dragonflies, tornado and neighbor treat all nodes as one
ring (`tornado(72,1,1)`); bad_dragon sends to any node of the next group.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.simulator import Op, Program

Ints = NDArray[np.int64]
SIDE = 8
NODES = SIDE * SIDE
GROUP = 8  # nodes of a dragonfly's


def on_grid(pattern: str, source: Ints, rng: np.random.Generator) -> Ints:
    """Draw BookSim's target of every packet on an 8x8 network."""
    y, x = np.divmod(source, SIDE)
    if pattern == "uniform":
        return rng.integers(NODES, size=len(source))
    if pattern == "transpose":
        return x * SIDE + y
    if pattern == "shuffle":
        return 2 * source % NODES + (2 * source >= NODES)
    step = {"tornado": SIDE // 2 - 1, "neighbor": 1}[pattern]
    return (y + step) % SIDE * SIDE + (x + step) % SIDE


def on_dragonfly(pattern: str, source: Ints, nodes: int, rng: np.random.Generator) -> Ints:
    """Draw BookSim's target of every packet on a dragonfly."""
    if pattern == "uniform":
        return rng.integers(nodes, size=len(source))
    if pattern == "bad_dragon":
        return (rng.integers(GROUP, size=len(source)) + (source // GROUP + 1) * GROUP) % nodes
    return (source + {"tornado": (nodes + 1) // 2 - 1, "neighbor": 1}[pattern]) % nodes


def made(nodes: int, load: float, end: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Let every source make a packet in any cycle with the same probability: sources, cycles."""
    return np.nonzero(rng.random((nodes, end)) < load)


def injected(name: str, source: Ints, cycle: Ints, target: Ints, nodes: int, size: int) -> Program:
    """Return the program whose ranks send these packets, each at its cycle."""
    rows = len(source) + nodes
    row = np.arange(len(source)) + source
    gap = np.diff(cycle, prepend=0)
    starts = np.flatnonzero(np.diff(source, prepend=-1))
    gap[starts] = cycle[starts]
    compute, peer = np.zeros(rows), np.full(rows, -1, dtype=np.int32)
    compute[row], peer[row] = gap, target
    message = peer >= 0
    return Program(
        name=name,
        offsets=np.searchsorted(source, np.arange(nodes + 1)) + np.arange(nodes + 1),
        rank_of=np.arange(nodes, dtype=np.int32),
        kind=np.where(message, int(Op.ISEND), int(Op.FINISH)).astype(np.uint8),
        compute=compute,
        peer=peer,
        tag=np.where(message, 0, -1).astype(np.int32),
        context=np.where(message, 0, -1).astype(np.int32),
        size=np.where(message, size, 0).astype(np.int64),
        target=np.full(rows, -1, dtype=np.int64),
    )
