"""A run in which nothing more can happen, in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hopmap.errors import HopmapError
from hopmap.simulator.programs.program import Op

from .run_plan import RunPlan

SHOWN = 4
SHOWN_LINKS = 6
SENDS, RECEIVES = (Op.SEND, Op.ISEND), (Op.RECV, Op.IRECV)


class DeadlockError(HopmapError, RuntimeError):
    """Ranks wait for each other, or for a message that no rank sends; or packets, in a ring."""


def deadlock(
    plan: RunPlan,
    now: float,
    stuck: Sequence[tuple[int, int, int]],
    waits: Mapping[int, int] | None = None,
) -> DeadlockError:
    """Say who waits for what.

    `stuck` are tasks that did not finish, in order, the row that each waits in, and how many
    messages, or receives, the channel had before the one that it waits for. `waits` are virtual
    channels (link times channels of each plus number) whose first packet waits for room in another.
    """
    program = plan.program
    lines = []
    for task, row, place in stuck[:SHOWN]:
        side = task > 0 and program.rank_of[task] == program.rank_of[task - 1]
        background = " in the background" if side else ""
        lines.append(f"rank {program.rank_of[task]}{background}: {_operation(plan, row, place)}")
    more = f"; and {len(stuck) - SHOWN} more" if len(stuck) > SHOWN else ""
    ranks = len({int(program.rank_of[task]) for task, *_ in stuck})
    ring = _ring(waits or {})
    why = "deadlock"
    if ring:
        links = [str(each // plan.parameters.network_virtual_channels) for each in ring]
        links[SHOWN_LINKS:] = ["..."] if len(links) > SHOWN_LINKS else links[:1]
        why = (
            f"the network stands still, {len(ring)} virtual channels wait for each other in a "
            f"ring, of links {' -> '.join(links)};"
        )
    return DeadlockError(
        f"{program.name}: {why} after {now:.6g} s, {ranks} of {program.ranks} ranks wait: "
        f"{'; '.join(lines)}{more}"
    )


def _ring(waits: Mapping[int, int]) -> list[int]:
    """Follow who waits for whom from the first that comes back to where it has been."""
    known: set[int] = set()
    for each in sorted(waits):
        way: dict[int, int] = {}
        while each in waits and each not in known and each not in way:
            way[each], each = len(way), waits[each]
        if each in way:
            return list(way)[way[each] :]
        known |= way.keys()
    return []


def _operation(plan: RunPlan, row: int, place: int) -> str:
    """Describe a row, and whether what it waits for has no other side."""
    program = plan.program
    awaited = int(program.target[row]) if program.kind[row] == Op.WAIT else row
    text = program.describe(row)
    same = plan.channel == plan.channel[awaited]
    if program.kind[awaited] in RECEIVES:
        there = int(plan.iterations[same & np.isin(program.kind, SENDS)].sum())
        return text if place < there else f"{text}, which no rank sends"
    if program.kind[awaited] in SENDS:
        there = int(plan.iterations[same & np.isin(program.kind, RECEIVES)].sum())
        return text if place < there else f"{text}, which no rank receives"
    return text
