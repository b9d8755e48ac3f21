"""A run in which nothing more can happen, in one line."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hopmap.errors import HopmapError
from hopmap.simulator.programs.program import Op

from .run_plan import RunPlan

SHOWN = 4
SENDS, RECEIVES = (Op.SEND, Op.ISEND), (Op.RECV, Op.IRECV)


class DeadlockError(HopmapError, RuntimeError):
    """Ranks wait for each other, or for a message that nobody sends or receives."""


def deadlock(plan: RunPlan, now: float, stuck: Sequence[tuple[int, int, int]]) -> DeadlockError:
    """Say who waits for what.

    Parameters
    ----------
    stuck : sequence of (int, int, int)
        Strands that did not finish, in order; the row that each waits in; and how many messages, or
        receives, the channel had before the one that it waits for.
    """
    program = plan.program
    waits = []
    for strand, row, place in stuck[:SHOWN]:
        background = " in the background" if _is_side(plan, strand) else ""
        waits.append(f"rank {program.rank_of[strand]}{background}: {_operation(plan, row, place)}")
    more = f"; and {len(stuck) - SHOWN} more" if len(stuck) > SHOWN else ""
    ranks = len({int(program.rank_of[strand]) for strand, *_ in stuck})
    return DeadlockError(
        f"{program.name}: deadlock after {now:.6g} s, {ranks} of {program.ranks} ranks wait: "
        f"{'; '.join(waits)}{more}"
    )


def _is_side(plan: RunPlan, strand: int) -> bool:
    ranks = plan.program.rank_of
    return strand > 0 and ranks[strand] == ranks[strand - 1]


def _operation(plan: RunPlan, row: int, place: int) -> str:
    """Describe a row, and whether what it waits for has no other side."""
    program = plan.program
    awaited = int(program.target[row]) if program.kind[row] == Op.WAIT else row
    text = program.describe(row)
    same = plan.channel == plan.channel[awaited]
    if program.kind[awaited] in RECEIVES:
        there = int(plan.trips[same & np.isin(program.kind, SENDS)].sum())
        return text if place < there else f"{text}, which nobody sends"
    if program.kind[awaited] in SENDS:
        there = int(plan.trips[same & np.isin(program.kind, RECEIVES)].sum())
        return text if place < there else f"{text}, which nobody receives"
    return text
