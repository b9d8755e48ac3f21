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

Table = NDArray[np.void]

# Parameters and counters; one row.
LOOP = np.dtype(
    [
        ("overhead_send", np.float64),
        ("overhead_recv", np.float64),
        ("eager_limit", np.int64),
        ("packet_size", np.int64),
        ("control_bytes", np.int64),
        ("cut_through", np.bool_),
        ("record", np.bool_),  # whether `sent` and `delivered` are kept
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
    ]
)
ROW = np.dtype(
    [
        ("compute", np.float64),
        ("size", np.int64),
        ("target", np.int64),
        ("number", np.int64),  # of the message that it sends
        ("path", np.int64),  # where the path of its message begins, and that of the grant
        ("back", np.int64),
        ("channel", np.int64),
        ("waiter", np.int32),  # strand that waits for it, or -1
        ("kind", np.uint8),
        ("done", np.bool_),  # what it began is complete
    ]
)
STRAND = np.dtype(
    [
        ("row", np.int64),
        ("phase", np.int64),
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
        ("packets", np.int64),
        ("busy", np.float64),
        ("bytes", np.int64),
        ("messages", np.int64),
        ("waited", np.float64),
        ("longest_wait", np.float64),
    ]
)
CHANNEL = np.dtype([("first", np.int64), ("last", np.int64)])  # its queue of slots; -1: empty
SLOT = np.dtype(
    [
        ("key", np.int64),  # of its event
        ("at", np.int64),  # where in `paths` a packet goes next
        ("size", np.int64),  # bytes of the packet
        ("tail", np.float64),  # when the packet's end arrives there
        ("message", np.int64),  # slot of the message that a packet is of
        ("next", np.int64),  # in the queue of its channel, or of free slots
        ("row", np.int64),  # of the send
        ("receive", np.int64),  # row of the receive, -1 of a message that found none yet
        ("end", np.float64),  # when the packet that goes on next leaves the first server
        ("packet", np.int64),  # number of the packet that goes on next from the first server
        ("packets", np.int64),
        ("cargo", np.int8),
        ("leads", np.bool_),  # the message's next packet goes on when this one has arrived
        ("there", np.bool_),  # an eager message, or a request, has arrived
    ]
)
ENTRY = np.dtype([("time", np.float64), ("key", np.int64), ("slot", np.int64)])
STOP = np.dtype([("server", np.int64)])
TIME = np.dtype([("time", np.float64)])


class State(NamedTuple):
    """All that a run is: a table of each kind, none of them empty.

    In compiled code the same with the first record of every table, see `record_kernels`.

    Attributes
    ----------
    heap : ndarray(ENTRY)
        As long as `slots`.
    paths : ndarray(STOP)
        Servers of all paths, one path behind the other; the last server s of each as ``~s``.
    sent, delivered : ndarray(TIME)
        Of each message, if they are kept.
    """

    loop: Any
    rows: Any
    strands: Any
    servers: Any
    channels: Any
    slots: Any
    heap: Any
    paths: Any
    sent: Any
    delivered: Any
