"""The tables of network interfaces whose queues take turns.

Control messages of a node stand in one queue, data in one for each pair of ranks. Lists are linked:
an owner has the first and the last, an item the next; -1 is none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopmap.simulator.numbering import numbered
from hopmap.simulator.run_plan import RunPlan

NODE = np.dtype(
    [
        ("idle", np.int64),  # rails
        ("first", np.int32),  # ranks of which queues wait, in turn
        ("last", np.int32),
        ("serves", np.int32),  # queue served last, among finite buffers
    ],
    align=True,
)
RANK = np.dtype(
    [
        ("first", np.int32),  # queues that wait, in turn
        ("last", np.int32),
        ("next", np.int32),
    ]
)
QUEUE = np.dtype(
    [
        ("rank", np.int32),  # that sends; of control messages -1
        ("node", np.int32),
        ("first", np.int32),  # messages, by slot
        ("last", np.int32),
        ("next", np.int32),
        ("served", np.bool_),  # a rail serves one of its packets
    ],
    align=True,
)
OF_CHANNEL = np.dtype([("queue", np.int32)])


class Nics(NamedTuple):
    """Tables of each kind, or in compiled code the first record of each.

    Attributes
    ----------
    queues : ndarray(QUEUE)
        Of pairs of ranks, then of the control messages of each node.
    of_channel : ndarray(OF_CHANNEL)
        Queue of the messages of each channel.
    """

    nodes: Any
    ranks: Any
    queues: Any
    of_channel: Any


def nics_of(plan: RunPlan) -> Nics:
    """Return network interfaces that are idle; tables of one row where none take turns."""
    turns = plan.parameters.nic == "round_robin"
    nodes, ranks = (len(plan.injection), plan.program.ranks) if turns else (1, 1)
    send = plan.program.sends() if turns else np.zeros(0, dtype=np.int64)
    source = plan.program.rank_of_row()[send].astype(np.int64)
    pairs, pair = numbered(source * ranks + plan.program.peer[send])
    queues = np.zeros(len(pairs) + nodes, dtype=QUEUE)
    queues["rank"] = np.concatenate((pairs // ranks, np.full(nodes, -1)))
    queues["node"][len(pairs) :] = np.arange(nodes)
    away = np.diff(plan.indptr)[plan.path[send]] > 1
    first = plan.servers[plan.indptr[plan.path[send]]]
    queues["node"][pair[away]] = first[away] - plan.links
    of_channel = np.zeros(int(plan.channel.max(initial=0)) + 1, dtype=OF_CHANNEL)
    of_channel["queue"][plan.channel[send]] = pair
    tables = np.zeros(nodes, dtype=NODE), np.zeros(max(ranks, 1), dtype=RANK), queues
    for table in tables:
        table["first"] = -1
    tables[0]["idle"] = min(plan.parameters.nic_rails, len(queues))
    return Nics(*tables, of_channel)
