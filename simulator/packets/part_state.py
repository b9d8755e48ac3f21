"""The tables of parts that only some runs have, of one row in the others.

* Network interfaces whose queues take turns: control messages of a node stand in one queue, data in
  one for each pair of ranks.
* Finite buffers: links that are asked for, and the virtual channels behind them. Buffers are
  numbered by link and virtual channel; behind them come the queues of nodes, which have no end.
* Routes that are chosen on the way, see `topologies/next_hops.py`.

Lists are linked: an owner has the first and the last, an item the next; -1 is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hopmap.arrays import Table
from hopmap.simulator.programs.program import number_keys
from hopmap.simulator.routes import ADAPTIVE, ANY, SPRAYING
from hopmap.simulator.run_plan import RunPlan

if TYPE_CHECKING:
    from .state import State

INTERFACE = np.dtype(
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
    """Tables of each kind, or in compiled code the first record of each."""

    nodes: Any
    ranks: Any
    queues: Any  # QUEUE, of pairs of ranks, then of the control messages of each node
    of_channel: Any  # OF_CHANNEL, queue of the messages of each channel


def nics_of(plan: RunPlan) -> Nics:
    """Return network interfaces that are idle; tables of one row where none take turns."""
    turns = plan.parameters.nic == "round_robin"
    nodes, ranks = (len(plan.injection), plan.program.ranks) if turns else (1, 1)
    send = plan.program.sends() if turns else np.zeros(0, dtype=np.int64)
    source = plan.program.rank_of_row()[send].astype(np.int64)
    pairs, pair = number_keys(source * ranks + plan.program.peer[send])
    queues = np.zeros(len(pairs) + nodes, dtype=QUEUE)
    queues["rank"] = np.concatenate((pairs // ranks, np.full(nodes, -1)))
    queues["node"][len(pairs) :] = np.arange(nodes)
    away = np.diff(plan.indptr)[plan.path[send]] > 1
    first = plan.servers[plan.indptr[plan.path[send]]]
    queues["node"][pair[away]] = first[away] - plan.links
    of_channel = np.zeros(int(plan.channel.max(initial=0)) + 1, dtype=OF_CHANNEL)
    of_channel["queue"][plan.channel[send]] = pair
    tables = np.zeros(nodes, dtype=INTERFACE), np.zeros(max(ranks, 1), dtype=RANK), queues
    for table in tables:
        table["first"] = -1
    tables[0]["idle"] = min(plan.parameters.nic_rails, len(queues))
    return Nics(*tables, of_channel)


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
    """Tables of each kind, or in compiled code the first record of each."""

    links: Any
    buffers: Any
    classes: Any  # CLASS, of every stop of `State.paths`


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
            link = packet["own"] if own else packet["output"]
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


# A place, and one row more for the end of the last one's ports.
PLACE = np.dtype([("ports", np.int32), ("region", np.int32)])
PORT = np.dtype([("link", np.int32), ("end", np.int32), ("crosses", np.bool_)], align=True)
NODE = np.dtype(
    [
        ("home", np.int32),
        ("up", np.int32),  # link there, and back, of a node that is no place; else -1
        ("down", np.int32),
        ("row", np.int64),  # where in `ports` and `hops` its rows begin
        ("hops", np.int64),
    ]
)
NEXT = np.dtype([("port", np.int16)])
LEFT = np.dtype([("hops", np.uint16)])
DRAWN = np.dtype([("node", np.int32)])
CHANNELS = np.dtype([("kind", np.int16)])
# Where a link ends, ARRIVED of one that nothing is chosen behind; the link in whose list buffers
# ask for it, the first of its place where they ask for several.
OUTSIDE, ARRIVED = -1, -2
LINK_END = np.dtype([("end", np.int32), ("list", np.int32)])
REGION = np.dtype([("first", np.int64), ("size", np.int64)])


class Ways(NamedTuple):
    """Tables of each kind, or in compiled code the first record of each."""

    places: Any
    ports: Any
    nodes: Any
    next: Any  # NEXT, port of the topology's route by destination and place
    left: Any  # LEFT, links that are left by home of a destination and place
    # drawn, regions: DRAWN, see `Routes`
    drawn: Any
    regions: Any
    links: Any
    # CHANNELS, class of virtual channels of the topology's route by destination and place
    classes: Any


def ways_of(plan: RunPlan) -> Ways:
    """Return the tables of a plan; of one row where routes are the topology's own."""
    routes = plan.routes
    if routes is None or plan.channels is None:
        kinds = (PLACE, PORT, NODE, NEXT, LEFT, DRAWN, REGION, LINK_END, CHANNELS)
        return Ways(*(np.zeros(1, dtype=kind) for kind in kinds))
    hops = routes.hops
    count = len(hops.region)
    places = _fill(count + 1, PLACE, ports=hops.starts)
    places["region"][:count] = hops.region
    nodes = _fill(len(hops.home), NODE, home=hops.home, up=hops.up, down=hops.down)
    nodes["row"] = hops.row.astype(np.int64) * count
    nodes["hops"] = hops.home_row[hops.home].astype(np.int64) * count
    ports = _fill(len(hops.links), PORT, link=hops.links, end=hops.ends)
    ports["crosses"] = routes.crosses[hops.links]
    links = _fill(plan.links, LINK_END, end=ARRIVED, list=np.arange(plan.links))
    links["end"][hops.links] = hops.ends
    away = hops.up >= 0
    links["end"][hops.up[away]] = hops.home[away]
    if routes.algorithm in (ADAPTIVE, SPRAYING):
        begin = np.repeat(np.arange(count), np.diff(hops.starts))
        links["list"][hops.links] = hops.links[hops.starts[begin]]
    tables = Ways(
        places=places,
        ports=ports,
        nodes=nodes,
        next=np.ascontiguousarray(hops.port).reshape(-1).view(NEXT),
        left=np.ascontiguousarray(hops.hops).reshape(-1).view(LEFT),
        drawn=_fill(len(routes.drawn), DRAWN, node=routes.drawn),
        regions=_fill(len(routes.first), REGION, first=routes.first, size=routes.size),
        links=links,
        classes=np.ascontiguousarray(plan.channels.classes).reshape(-1).view(CHANNELS),
    )
    return Ways(*(table if len(table) else np.zeros(1, table.dtype) for table in tables))


def _fill(rows: int, kind: np.dtype[np.void], **columns: Any) -> Table:
    table = np.zeros(rows, dtype=kind)
    for name, column in columns.items():
        table[name] = column
    return table
