"""The tables that the compiled engine works on.

Everything that can have an event is a *slot*, with at most one event at a time: the first slots are
the strands; a message takes one when it is sent, which its last packet uses too; each further
packet takes one while it travels. What is kept is therefore linear in what is in flight. A message
that found no receive, and a receive that found no message, stand in the queue of their channel: the
k-th of one meets the k-th of the other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.simulator.record import MessageTimestamps, OperationTimestamps

Table = NDArray[np.void]

# Parameters and counters; one row.
LOOP = np.dtype(
    [
        ("overhead_send", np.float64),
        ("overhead_recv", np.float64),
        ("gap", np.float64),
        ("gap_per_byte", np.float64),
        ("eager_limit", np.int64),
        ("packet_size", np.int64),
        ("control_bytes", np.int64),
        ("cut_through", np.bool_),
        ("record_messages", np.bool_),  # whether `message_times` are kept
        ("record_operations", np.bool_),  # whether `operation_times` are kept
        ("watch", np.bool_),  # whether `hops` of the messages in `watched` are kept
        ("bins", np.int64),  # of each link that is tracked
        ("width", np.float64),  # of a bin, in seconds
        ("tracked", np.int64),  # the first servers, whose use over time is kept
        ("number_bits", np.int64),
        ("packet_bits", np.int64),
        ("now", np.float64),
        ("queued", np.int64),  # entries of the heap
        ("hole", np.int64),  # whether the first of them is void
        ("free", np.int64),  # first free slot
        ("spare", np.int64),  # number of free slots
        ("strand", np.int64),  # that had to stop for want of slots, or -1
        ("controls", np.int64),
        ("arrived", np.int64),
        ("served", np.int64),  # packets, by all servers
        ("hops", np.int64),  # kept
    ]
)
ROW = np.dtype(
    [
        ("compute", np.float64),
        ("size", np.int64),
        ("target", np.int64),
        ("path", np.int64),  # where the path of its message begins, and that of the grant
        ("back", np.int64),
        ("place", np.int64),  # in the channel, of what it began last
        ("channel", np.int32),
        ("trips", np.int32),  # how often it ran; of a REPEAT, since its loop was entered
        ("waiter", np.int32),  # strand that waits for it, or -1
        ("kind", np.uint8),
        ("done", np.bool_),  # what it began last is complete
    ],
    align=True,
)
STRAND = np.dtype(
    [
        ("row", np.int64),
        ("phase", np.int64),
        ("message", np.int64),  # number of the next one that it sends
        ("entry", np.int64),  # where the operation that it is at is recorded
        ("rank", np.int64),
        ("begun_by", np.int64),  # row of its START, or -1
        ("stuck", np.int64),  # row that it last waited in, or -1
        ("since", np.float64),
        ("finish", np.float64),
        ("compute", np.float64),
        ("communicate", np.float64),
        ("wait", np.float64),
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
CHANNEL = np.dtype(
    [
        ("first", np.int32),  # slots of its queue; -1: empty
        ("last", np.int32),
        ("sends", np.int64),  # so far
        ("receives", np.int64),
    ]
)
# A slot is a row in both: what a packet needs at every hop, and what a message needs besides.
PACKET = np.dtype(
    [
        ("tail", np.float64),  # when the packet's end arrives at its next server
        ("size", np.int64),
        ("at", np.int64),  # where in `paths` that server is
        ("message", np.int32),  # slot of the message that the packet is of
        ("next", np.int32),  # in the queue of its channel, or of free slots
        ("cargo", np.int8),
        ("leads", np.bool_),  # the message's next packet goes on when this one has arrived
    ],
    align=True,
)
MESSAGE = np.dtype(
    [
        ("number", np.int64),
        ("row", np.int64),  # of the send
        ("receive", np.int64),  # row of the receive, -1 of a message that found none yet
        ("send_trip", np.int32),  # `trips` of those rows when they posted it
        ("receive_trip", np.int32),
        ("path", np.int64),  # where in `paths` it began
        ("size", np.int64),
        ("packet", np.int64),  # number of the packet that goes on next from the first server
        ("packets", np.int64),
        ("end", np.float64),  # when the packet before that one left the first server
        ("rank", np.int32),  # that sends it
        ("there", np.bool_),  # an eager message, or a request, has arrived
    ],
    align=True,
)
RANK = np.dtype([("free", np.float64)])  # when its end point is
ENTRY = np.dtype([("time", np.float64), ("key", np.int64), ("slot", np.int64)])
STOP = np.dtype([("server", np.int32)])
MESSAGE_TIMES = np.dtype([(name, np.float64) for name in MessageTimestamps._fields])
WATCHED = np.dtype([("yes", np.bool_)])
LATEST = np.dtype([("message", np.int64)])
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
        ("cargo", np.int8),
    ],
    align=True,
)
USE = np.dtype([("busy", np.float64)])
OPERATION_TIMES = np.dtype([(name, np.float64) for name in OperationTimestamps._fields])
# Of a run that records nothing at all: `recording` tells it by the type, when it is compiled.
UNRECORDED = np.dtype(
    [*((name, np.float64) for name in OperationTimestamps._fields), ("unrecorded", np.float64)]
)


class State(NamedTuple):
    """All that a run is: a table of each kind, none of them empty.

    In compiled code the same with the first record of every table, see `record_kernels`.

    Attributes
    ----------
    packets, messages : ndarray(PACKET), ndarray(MESSAGE)
        One row per slot.
    heap : ndarray(ENTRY)
        As long as they are.
    paths : ndarray(STOP)
        Servers of all paths, one path behind the other; the last server s of each as ``~s``.
    message_times : ndarray(MESSAGE_TIMES)
        Of each message, if they are kept.
    operation_times : ndarray(OPERATION_TIMES), or of UNRECORDED
        Of each operation, if they are kept.
    watched, latest, hops : ndarray(WATCHED), ndarray(LATEST), ndarray(HOP)
        By message, whether its hops are kept; by server, the message served last; those hops.
    use : ndarray(USE)
        Bins of one tracked link behind those of the other.
    """

    loop: Any
    rows: Any
    strands: Any
    ranks: Any
    servers: Any
    channels: Any
    packets: Any
    messages: Any
    heap: Any
    paths: Any
    message_times: Any
    operation_times: Any
    watched: Any
    latest: Any
    hops: Any
    use: Any


def unhappened(dtype: np.dtype[np.void], rows: int) -> Table:
    """Return a table of times, of which none has been."""
    return np.full((rows, len(dtype.names or ())), np.nan).view(dtype)[:, 0]


def columns(times: Table, names: tuple[str, ...], rows: int) -> list[NDArray[np.float64]]:
    """Return columns of the first rows of such a table, each for itself."""
    return [times[name][:rows].copy() for name in names]
