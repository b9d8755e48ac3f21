"""The cases that hopmap and BookSim2 are compared in, and how either is run at an offered load.

A case is a network, a routing, a pattern, virtual channels, and the flits of a packet and of a
buffer. hopmap's buffers are in packets, so that a buffer is one packet at least (virtual
cut-through): smaller ones, BookSim's wormholes, are outside its model.

Both simulators agree in the following:

- A hop takes 2 cycles in BookSim's router, and the cycles of the channel; hopmap's link latency is
  the sum. The 2 cycles are allocation, of channel and switch in one (`piggyback`), and crossing.
- A place in a buffer is taken again a flit and two latencies later (`network.flit`). For this,
  `credit_delay` is 2 in BookSim and 0 in hopmap.
- Channels of an input share no port of the crossbar (`input_speedup` = channels).
- A full channel is not allocated (`vc_busy_when_full`).
- A packet of several flits keeps the switch (`hold_switch_for_packet`).
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import NamedTuple

import buffered
import dragonfly
from booksim import HOP, Measured, booksim

from hopmap.simulator import ENGINES
from hopmap.simulator.operations import Record

GRID = ("uniform", "transpose", "tornado", "neighbor", "shuffle")
GROUPS = ("uniform", "bad_dragon", "tornado", "neighbor")
GRID_CHANNELS = {"mesh": (1, 2, 8), "torus": (2, 8)}
GROUP_CHANNELS = {"min": 2, "valiant_group": 3, "ugal_group": 3}  # one of each class
# Packets over the busiest link of a network for every packet of each source.
GAMMA = {
    "mesh": dict(zip(GRID, (2, 7, 3, 1, 4), strict=True)),
    "torus": dict(zip(GRID, (1, 3.5, 3, 1, 3.5), strict=True)),
}
GRID_SIZES = ((1, 8), (8, 64), (1, 1), (8, 8), (1, 64))  # flits of a packet, and of a buffer
GROUP_SIZES = ((1, 256), (8, 256), (1, 64))


class Case(NamedTuple):
    network: str
    routing: str
    pattern: str
    channels: int
    size: int
    buffer: int

    @property
    def window(self) -> int:
        """Cycles to warm up, and half of those measured: more where few packets get through."""
        if self.size == 1:
            return 8000 if self.buffer == 1 else 2000
        return 4000

    @property
    def guess(self) -> float:
        """Load in flits at which it may saturate, to begin with: links, or credits of one class."""
        if self.network == "dragonfly":
            return 0.3
        lanes = self.channels // (1 + (self.network == "torus"))
        returned = lanes * (self.buffer // self.size) * self.size / (self.size + 2 * HOP)
        return 0.85 * min(1 / GAMMA[self.network][self.pattern], returned, 1.0)


def cases() -> list[Case]:
    """All of them, those that say most first."""
    groups = [
        Case("dragonfly", routing, pattern, channels, *sizes)
        for sizes, (routing, channels), pattern in product(
            GROUP_SIZES, GROUP_CHANNELS.items(), GROUPS
        )
    ]
    groups += [Case("dragonfly", "ugal", pattern, 3, *GROUP_SIZES[0]) for pattern in GROUPS]
    grids = [
        Case(network, "dim_order", pattern, channels, *sizes)
        for channels, sizes, (network, many), pattern in product(
            (2, 8, 1), GRID_SIZES, GRID_CHANNELS.items(), GRID
        )
        if channels in many
    ]
    first, two = len(GROUP_CHANNELS) * len(GROUPS), len(GRID_SIZES) * 2 * len(GRID)
    return groups[:first] + grids[:two] + groups[first:] + grids[two:]


def ours(case: Case, load: float, window: int, seed: int = 1) -> float:
    """Run hopmap; return its mean latency.

    A window warms up, two are measured, and in one more traffic goes on.

    Parameters
    ----------
    load : float
        Packets per source and cycle.
    window : int
        Cycles.
    """
    network, routing, pattern, channels, size, buffer = case
    plan, on = (
        (dragonfly.planned, routing) if network == "dragonfly" else (buffered.planned, network)
    )
    places = buffer // size
    ready = plan(
        *(on, pattern, load, 4 * window), size=size, channels=channels, buffer=places, seed=seed
    )
    messages = ENGINES["compiled"].run(ready, Record(messages=True), None).messages
    inside = (messages.sent >= window) & (messages.sent < 3 * window)
    return float((messages.delivered - messages.sent)[inside].mean())


def theirs(
    program: Path, case: Case, load: float, window: int, most: float, **options: object
) -> Measured:
    """Run BookSim2, likewise; `options` are its own, in place of ours."""
    settings: dict[str, object] = {
        "topology": case.network,
        "traffic": case.pattern,
        "num_vcs": case.channels,
        "vc_buf_size": case.buffer,
        "packet_size": case.size,
        "input_speedup": case.channels,
        "hold_switch_for_packet": int(case.size > 1),
    }
    if case.network == "dragonfly":
        settings |= dragonfly.options(case.routing, case.pattern)
    return booksim(program, settings | options, load, window, most)
