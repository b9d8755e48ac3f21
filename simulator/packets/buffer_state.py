"""The tables of finite buffers: links that are asked for, and the virtual channels behind them.

Buffers are numbered by link and virtual channel; behind them come the queues of nodes, which have
no end. Lists are linked as in `nic_state`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hopmap.simulator.run_plan import RunPlan
from hopmap.simulator.virtual_channels import ANY

if TYPE_CHECKING:
    from .state import State

LINK = np.dtype(
    [
        ("end", np.float64),  # when the tail of the packet that it serves has left
        ("asking", np.int32),  # buffers whose first packet asks for it, in any order
        ("serves", np.int32),  # the buffer that it serves a packet of, or -1
        ("latest", np.int32),  # the buffer granted last
        ("credit", np.int32),  # slots of the credits on their way to it, the first to come first
        ("last", np.int32),
        ("due", np.bool_),  # `end` is an event
        ("owes", np.bool_),  # which sends the credit back
    ],
    align=True,
)
BUFFER = np.dtype(
    [
        ("credits", np.int64),  # places that are known to be free in it
        ("first", np.int32),  # packets by slot, those that have left for a link apart; of a node's
        ("last", np.int32),  # queue messages
        ("next", np.int32),  # in the list of those that ask for a link
        ("link", np.int32),  # that fills it, or -1
        ("by", np.int32),  # link that serves one of its packets, or -1
    ],
    align=True,
)
CLASS = np.dtype([("first", np.int32), ("count", np.int32)])  # its virtual channels


class Buffers(NamedTuple):
    """Tables of each kind, or in compiled code the first record of each.

    Attributes
    ----------
    classes : ndarray(CLASS)
        Of every stop of `State.paths`.
    """

    links: Any
    buffers: Any
    classes: Any


def buffers_of(plan: RunPlan) -> Buffers:
    """Return buffers that are empty; tables of one row where they are unbounded."""
    channels = plan.parameters.network_virtual_channels
    limited = bool(len(plan.classes))
    number = plan.injection.stop * channels if limited else 0
    nodes = len(plan.injection) if limited else 1
    links = np.zeros(len(plan.bandwidth) if limited else 1, dtype=LINK)
    for column in ("asking", "serves", "latest", "credit"):
        links[column] = -1
    buffers = np.zeros(number + nodes, dtype=BUFFER)
    buffers["credits"] = plan.parameters.network_buffer
    buffers["first"] = buffers["by"] = buffers["link"] = -1
    buffers["link"][:number] = np.arange(number) // channels
    classes = np.zeros(max(len(plan.classes), 1), dtype=CLASS)
    if limited:
        one = plan.classes != ANY
        classes["first"] = np.where(one, plan.classes * plan.lanes, 0)
        classes["count"] = np.where(one, plan.lanes, channels)
    return Buffers(links, buffers, classes)


def waits_of(plan: RunPlan, state: State) -> dict[int, int]:
    """Return buffers whose first packet waits, and the first of those whose room it needs."""
    buffers, packets = state.limits.buffers, state.packets
    channels, found = plan.parameters.network_virtual_channels, {}
    for number in asking(state.limits) if len(plan.classes) else ():
        if buffers["link"][number] < 0:
            continue
        packet = packets[buffers["first"][number]]
        if plan.routes is None:
            link = state.paths["server"][packet["at"]]
            first = state.limits.classes["first"][packet["at"]]
        else:
            own, first = packet["own"] >= 0, packet["first"]
            link = packet["own"] if own else packet["wish"]
            if own and state.loop["escapes"][0]:
                row = state.ways.nodes["row"][packet["target"]]
                first = state.ways.classes["kind"][row + packet["at"]]
        if 0 <= link < plan.injection.stop:
            found[number] = int(link * channels + first)
    return found


def asking(limits: Buffers) -> Iterator[int]:
    """Yield the buffers that ask for a link."""
    for number in limits.links["asking"].tolist():
        while number >= 0:
            yield number
            number = int(limits.buffers["next"][number])
