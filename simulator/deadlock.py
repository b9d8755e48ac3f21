"""A run in which nothing more can happen, in one line."""

from __future__ import annotations

from collections.abc import Sequence

from .plan import Plan
from .program import Op

SHOWN = 4


class DeadlockError(RuntimeError):
    """Ranks wait for each other, or for a message that nobody sends or receives."""


def deadlock(plan: Plan, now: float, stuck: Sequence[tuple[int, int]]) -> DeadlockError:
    """Say who waits for what.

    Parameters
    ----------
    stuck : sequence of (int, int)
        Strands that did not finish, in order, and the row that each waits in.
    """
    program = plan.program
    waits = []
    for strand, row in stuck[:SHOWN]:
        background = " in the background" if _is_side(plan, strand) else ""
        waits.append(f"rank {program.rank_of[strand]}{background}: {_operation(plan, row)}")
    more = f"; and {len(stuck) - SHOWN} more" if len(stuck) > SHOWN else ""
    ranks = len({int(program.rank_of[strand]) for strand, _ in stuck})
    return DeadlockError(
        f"{program.name}: deadlock after {now:.6g} s, {ranks} of {program.ranks} ranks wait: "
        f"{'; '.join(waits)}{more}"
    )


def _is_side(plan: Plan, strand: int) -> bool:
    ranks = plan.program.rank_of
    return strand > 0 and ranks[strand] == ranks[strand - 1]


def _operation(plan: Plan, row: int) -> str:
    """Describe a row, and whether what it waits for has no other side."""
    program = plan.program
    kind = program.kind[row]
    awaited = int(program.target[row]) if kind == Op.WAIT else row
    message = int(plan.message[awaited])
    text = program.describe(row)
    if message < 0 and program.kind[awaited] in (Op.RECV, Op.IRECV):
        return f"{text}, which nobody sends"
    if message >= 0 and plan.receive[message] < 0:
        return f"{text}, which nobody receives"
    return text
