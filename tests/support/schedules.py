"""Programs of one collective's schedule."""

from __future__ import annotations

import numpy as np

from hopmap.simulator import Op, Program
from hopmap.simulator.programs.from_collectives import template_of


def as_program(schedule, members):
    """Operations of a schedule as ranks would get them, all messages with one tag."""
    rows = template_of(schedule)
    count = len(rows.member)
    end = np.arange(members)
    order = np.argsort(np.concatenate((rows.member, end)), kind="stable")
    place = np.argsort(order)

    def column(values, filler):
        return np.concatenate((values, np.full(members, filler)))[order]

    target = column(rows.target, -1)
    target[target >= 0] = place[target[target >= 0]]
    peer = column(rows.peer, -1)
    return Program(
        name="collective",
        offsets=np.searchsorted(
            np.concatenate((rows.member, end))[order], np.arange(members + 1)
        ).astype(np.int64),
        rank_of=end.astype(np.int32),
        kind=column(rows.kind, Op.FINISH).astype(np.uint8),
        compute=np.zeros(count + members),
        peer=peer.astype(np.int32),
        tag=np.zeros(count + members, dtype=np.int32),
        context=np.where(peer >= 0, 0, -1).astype(np.int32),
        size=column(rows.size, 0),
        target=target,
    )
