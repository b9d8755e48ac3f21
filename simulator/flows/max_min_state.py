"""The tables of `max_min_kernels`: servers, open flows, and who crosses what."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.simulator.heap_kernels import IndexedHeap, empty_heap

Table = NDArray[np.void]

SERVER = np.dtype(
    [
        ("bandwidth", np.float64),
        ("latency", np.float64),
        ("messages", np.int64),  # of data
        ("bytes", np.int64),
        ("busy", np.float64),
        ("first", np.int64),  # crossing of a flow over it, -1 if there is none
        ("left", np.float64),  # bandwidth that is not given away yet
        ("users", np.int64),  # flows over it that have no rate yet, and the sum of their weights
        ("weight", np.float64),
        ("mark", np.int64),  # stamp of the last visit, ~stamp if it is dirty
    ]
)
SLOT = np.dtype(
    [
        ("begin", np.int64),  # its path, among the stops
        ("end", np.int64),
        ("item", np.int64),  # the caller's name for it
        ("weight", np.float64),  # its share is proportional to this
        ("remaining", np.float64),  # bytes that were left at `since`
        ("since", np.float64),
        ("rate", np.float64),  # bytes/s from then on
        ("fair", np.float64),  # rate under construction, -1 before
        ("seen", np.int64),  # stamp of the last visit
        ("free", np.int64),  # next free slot
    ]
)
# A flow at one of its stops: slot * longest path + stop. Those of a server are a list.
CROSSING = np.dtype([("after", np.int64), ("before", np.int64)])
STOP = np.dtype([("server", np.int64)])
FOUND = np.dtype([("slot", np.int64)])
REACHED = np.dtype([("visited", np.int64), ("dirty", np.int64)])
COUNTS = np.dtype(
    [
        ("free", np.int64),  # first free slot
        ("spare", np.int64),  # number of free slots
        ("stamp", np.int64),  # of the present visit
        ("dirty", np.int64),  # servers where a flow opened or closed since the last `share`
        ("longest", np.int64),  # stops of the longest path
    ]
)


class Flows(NamedTuple):
    """Open flows: tables, or in compiled code the first record of each.

    Attributes
    ----------
    servers : table of SERVER
    stops : table of STOP
        Servers of all paths, one path behind the other.
    slots : table of SLOT
    crossings : table of CROSSING
    found : table of FOUND, as long as `slots`
        Slots that were reached by the last `share`; first those whose rate it changed.
    reached : table of REACHED, as long as `servers`
        Servers that it visited, and those that are dirty.
    shares : IndexedHeap
        Servers by the rate, for each unit of weight, that their flows without one would get.
    counts : table of COUNTS, one row
    """

    servers: Any
    stops: Any
    slots: Any
    crossings: Any
    found: Any
    reached: Any
    shares: IndexedHeap
    counts: Any


def server_table(bandwidth: NDArray[np.float64], latency: NDArray[np.float64]) -> Table:
    """Return idle servers."""
    servers = np.zeros(max(len(bandwidth), 1), dtype=SERVER)
    servers["bandwidth"][: len(bandwidth)] = bandwidth
    servers["latency"][: len(latency)] = latency
    servers["first"] = -1
    return servers


def empty_flows(
    servers: Table, indptr: NDArray[np.int64], stops: NDArray[np.int64], room: int
) -> Flows:
    """Return no flows over these servers and paths, with room for some."""
    counts = np.zeros(1, dtype=COUNTS)
    counts["free"] = -1
    counts["longest"] = np.diff(indptr).max(initial=1)
    flows = Flows(
        servers=servers,
        stops=np.append(stops, -1).astype(np.int64).view(STOP),
        slots=np.zeros(0, dtype=SLOT),
        crossings=np.zeros(0, dtype=CROSSING),
        found=np.zeros(0, dtype=FOUND),
        reached=np.zeros(len(servers), dtype=REACHED),
        shares=empty_heap(len(servers)),
        counts=counts,
    )
    return enlarged(flows, room)


def enlarged(flows: Flows, more: int) -> Flows:
    """Return the same flows with room for `more` others."""
    old, counts = len(flows.slots), flows.counts
    longer: dict[str, Any] = {}
    for name in ("slots", "crossings", "found"):
        table = getattr(flows, name)
        extra = more * int(counts["longest"][0]) if name == "crossings" else more
        longer[name] = np.concatenate((table, np.zeros(extra, dtype=table.dtype)))
    longer["slots"]["free"][old:] = np.arange(old + 1, old + more + 1)
    longer["slots"]["free"][-1] = counts["free"][0]
    counts["free"] = old
    counts["spare"] += more
    return flows._replace(**longer)
