"""The tables that the compiled engine works on.

Everything that can have an event is a *slot*, with at most one event at a time: the first slots are
the tasks; a message takes one when it is sent, which its last packet uses too; each further
packet takes one while it travels. What is kept is therefore linear in what is in flight. A message
that found no receive, and a receive that found no message, stand in the queue of their channel: the
k-th of one meets the k-th of the other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopmap.simulator.heap_kernels import Heap
from hopmap.simulator.task_state import Columns, row_type

from .part_state import Buffers, Nics, Ways

# Columns in addition to `task_state`'s.
LOOP: Columns = [
    ("watch", np.bool_),  # whether `hops` of the messages in `watched` are kept
    ("bins", np.int64),  # of each link that is tracked
    ("width", np.float64),  # of a bin, in seconds
    ("tracked", np.int64),  # the first servers, whose use over time is kept
    ("free", np.int64),  # first free slot
    ("spare", np.int64),  # number of free slots
    ("task", np.int64),  # that had to stop, or -1
    ("asks", np.int64),  # buffer that asks for a link when the event has been handled, or -1
    ("served", np.int64),  # packets, by all servers
    ("links", np.int64),  # servers before the injection links
    ("turns", np.bool_),  # whether queues of a node take turns
    ("pairs", np.int64),  # queues before the queues of control messages, where they do
    ("channels", np.int64),  # virtual ones of a link
    ("queues", np.int64),  # buffers before the nodes' buffers
    ("ends", np.int64),  # servers before the servers that take everything
    ("oldest_first", np.bool_),  # who goes first where several ask for a link
    ("credit_delay", np.float64),
    ("flit", np.int64),
    ("handled", np.int64),  # highest key of the events of buffers of one instant so far
    ("handled_at", np.float64),  # which that is
    ("last", np.float64),  # when the last of such has happened that need not be events
    ("nodes", np.int64),
    ("routing", np.int64),  # algorithm, of those in `routes.py`
    ("ahead", np.bool_),  # whether UGAL decides before a packet leaves for its first router
    ("routing_seed", np.int64),
    ("drawn", np.int64),  # nodes of which Valiant's is drawn
    ("groups", np.bool_),  # whether places form groups
    ("capacity", np.int64),  # packets that all virtual channels of a link hold
    ("escapes", np.int64),  # see `Channels`
    ("detour", np.int64),
    ("direct", np.int64),
    ("route_lanes", np.int64),
    ("hops", np.int64),  # kept
    ("budget", np.int64),  # events before Python looks again
    ("watched_iterations", np.int64),  # of each watched loop, the first ones
    ("iterations_ended", np.int64),  # of those, by all ranks together
    ("look_at", np.int64),  # after how many of them Python looks
]
ROW = row_type(
    [
        ("path", np.int64),  # where the path of its message begins, and that of the grant
        ("back", np.int64),
        ("place", np.int64),  # in the channel, of what it began last
        # Of a watched REPEAT, where its rank begins in `iteration_ends`.
        ("channel", np.int32),
    ]
)
SERVER = np.dtype(
    [
        ("free", np.float64),
        ("bandwidth", np.float64),
        ("latency", np.float64),
        ("busy", np.float64),
        ("bytes", np.int64),
        ("messages", np.int64),
        ("waited", np.float64),
        ("longest_wait", np.float64),
    ]
)
LAST = np.dtype([("slot", np.int32)])
CHANNEL = np.dtype(
    [
        ("first", np.int32),  # slots of its queue; -1: empty
        ("last", np.int32),
        ("sends", np.int64),  # so far
        ("receives", np.int64),
    ]
)
# A slot is a row in both: what a packet needs at every hop, and what only a message needs.
_PACKET: Columns = [
    ("due", np.float64),  # when its latest event is, or was, that a server brought about
    ("key", np.int64),  # of that event
    ("tail", np.float64),  # when the packet's end arrives at its next server
    ("size", np.int64),
    ("at", np.int64),  # where in `paths` that server is
    ("message", np.int32),  # slot of the message that the packet is of
    ("next", np.int32),  # in the queue of its channel, or of free slots
    ("server", np.int32),  # that brought the event about, plus 1; 0 once it is handled
    ("then", np.int32),  # slot of the event that it lets in when it is handled, or 0
    ("in_heap", np.bool_),  # it has been let in itself
    ("tied", np.bool_),  # the event that it lets in is of the same instant
    ("cargo", np.int8),
    ("leads", np.bool_),  # the message's next packet follows this one; of a credit, it is an event
]
# Where routes are chosen on the way, `at` is the place; in addition the target, the node to go to
# first or -1, and whether that is decided.
_ROUTED: Columns = [("target", np.int32), ("via", np.int32), ("decided", np.bool_)]
# Among finite buffers, also: the one that it is in or comes to, or that a credit is for; the packet
# behind it; when it entered the network. Where routes are chosen, the link that it asks for, or
# whether any of a minimal way will do; virtual channels there; the link of the topology's route.
_HELD: Columns = [
    ("buffer", np.int32),
    ("behind", np.int32),
    ("born", np.float64),
    ("output", np.int32),
    ("first", np.int32),
    ("count", np.int32),
    ("own", np.int32),
    ("any", np.bool_),
]
_MESSAGE: Columns = [
    ("number", np.int64),
    ("row", np.int64),  # of the send
    ("receive", np.int64),  # row of the receive, -1 of a message that found none yet
    ("send_iteration", np.int32),  # `iterations` of those rows when they posted it
    ("receive_iteration", np.int32),
    ("path", np.int64),  # where in `paths` it began
    ("size", np.int64),
    ("packet", np.int64),  # number of the packet that goes on next from the first server
    ("packets", np.int64),
    ("end", np.float64),  # when the packet before that one left the first server
    ("rank", np.int32),  # that sends it
    ("there", np.bool_),  # it or its request has arrived
    ("completion", np.uint8),  # of its send, see `model.completion`
]
# Where packets may pass one another, also how many of its packets are under way.
_COUNTED: Columns = [("under_way", np.int64)]
# Where queues take turns, and in a node's queue among finite buffers: when it was handed to the
# network, and who stands behind it.
_QUEUED: Columns = [("handed", np.float64), ("next", np.int32)]
STOP = np.dtype([("server", np.int32)])
WATCHED = np.dtype([("yes", np.bool_)])
LATEST = np.dtype([("message", np.int64), ("end", np.float64)])
HOP = np.dtype(
    [
        ("message", np.int64),
        ("packet", np.int64),
        ("server", np.int64),
        ("size", np.int64),
        ("arrival", np.float64),
        ("start", np.float64),  # of being served
        ("end", np.float64),
        ("behind", np.int64),  # message of the packet that the server served before, or -1
        ("idle", np.float64),  # end of that packet's service, or 0
        ("cargo", np.int8),
    ],
    align=True,
)
USE = np.dtype([("busy", np.float64)])


def packet_type(held: bool, routed: bool) -> np.dtype[np.void]:
    """Return the type of packets: whether buffers are finite, and routes chosen on the way."""
    more = [*_ROUTED, *_HELD] if held else _ROUTED if routed else []
    return np.dtype([*_PACKET, *more], align=True)


def message_type(queued: bool, counted: bool) -> np.dtype[np.void]:
    """Return the type of messages: whether they stand in queues, and packets may overtake."""
    more = _QUEUED * queued + _COUNTED * counted
    return np.dtype([*_MESSAGE, *more], align=True)


class State(NamedTuple):
    """All that a run is: a table of each kind, none of them empty.

    In compiled code the same with the first record of every table, see `row_pointers`.
    """

    loop: Any
    rows: Any
    tasks: Any
    ranks: Any
    servers: Any
    last: Any  # LAST, of the last event that each server brought about, see `schedule`
    channels: Any
    # packets, messages: one row per slot, see `packet_type` and `message_type`
    packets: Any
    messages: Any
    # as long as these are, and for every rail one event more, or for every link that has buffers. A
    # task's, a packet's or a message's event has its slot as item, that of a rail the queue, that
    # of a packet's tail that has left its buffer the link.
    heap: Heap
    factors: Any  # FACTOR, of pauses, see `noise.py`
    # STOP, servers of all paths, one path behind the other; the last server s of each as ``~s``
    paths: Any
    message_times: Any  # MESSAGE_TIMES, of each message, if they are kept
    operation_times: Any  # OPERATION_TIMES, of each operation, if they are kept
    # watched, latest, hops: WATCHED, LATEST, HOP: by message, whether its hops are kept; by server,
    # the message served last and when; those hops
    watched: Any
    latest: Any
    hops: Any
    use: Any  # USE, bins of one tracked link behind bins of the other
    # ITERATION_END, of the watched loops, rank after rank
    iteration_ends: Any
    nics: Nics  # network interfaces whose queues take turns
    limits: Buffers  # finite buffers
    ways: Ways  # routes that are chosen on the way
