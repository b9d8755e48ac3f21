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
    ]
)
# What is looked at for every server of a flow whose share changes.
LEVEL = np.dtype(
    [
        ("share", np.float64),  # of a flow with this bottleneck, for each unit of weight; or inf
        ("load", np.float64),  # rates of all flows over it
        ("highest", np.float64),  # no flow over it with another bottleneck has a higher share
        ("alarm", np.float64),  # load beyond which the share has to be found again
    ]
)
# The flows with one bottleneck.
GROUP = np.dtype(
    [
        ("first", np.int64),  # slot of one of them, -1 if there is none
        ("weight", np.float64),  # of all of them
        ("virtual", np.float64),  # bytes that each of them got until `since`, for a unit of weight
        ("since", np.float64),
        ("next", np.int64),  # slot of the one that ends first
        ("looks", np.int64),  # how often only they were looked at since all flows were
        ("noted", np.int64),  # whether the server is in the table `noted`
        ("crossing", np.int64),  # of any flow over the server, -1 if there is none
        ("users", np.float64),  # weight of all flows over it
        ("loose", np.int64),  # flows over it that have no bottleneck yet
    ]
)
SLOT = np.dtype(
    [
        ("begin", np.int64),  # its path, among the stops
        ("end", np.int64),
        ("weight", np.float64),  # its share is proportional to this
        ("finish", np.float64),  # virtual time of its bottleneck when it ends
        ("bottleneck", np.int32),  # server, -1 if all have room
        ("item", np.int32),  # the caller's name for it
        ("after", np.int32),  # the next one with its bottleneck, or the next free slot
        ("before", np.int32),
    ]
)
# A flow at one of its stops: slot * longest path + stop. Those of a server are a list.
CROSSING = np.dtype([("after", np.int64), ("before", np.int64)])
STOP = np.dtype([("server", np.int32)])
NOTED = np.dtype([("place", np.int64)])
ROW = np.dtype(
    [
        ("slot", np.int64),
        ("weight", np.float64),
        ("cap", np.float64),  # share that other servers let it have
        ("place", np.int64),  # of the one that lets it have least
    ]
)
COUNTS = np.dtype(
    [
        ("free", np.int64),  # first free slot
        ("spare", np.int64),  # number of free slots
        ("noted", np.int64),  # servers in the table `noted`
        ("longest", np.int64),  # stops of the longest path
    ]
)


# Load, in bandwidths, beyond which a server that is nobody's bottleneck has to be looked at: beyond
# what rounding makes of a sum of rates.
FULL = 1 + 1e-12


class Flows(NamedTuple):
    """Open flows: tables, or in compiled code the first record of each.

    Attributes
    ----------
    servers : table of SERVER
    levels, groups : table of LEVEL, table of GROUP
        Of each server.
    stops : table of STOP
        Servers of all paths, one path behind the other.
    slots : table of SLOT
    crossings : table of CROSSING
    rows : table of ROW, as long as `slots`
        Flows of the server that is being looked at.
    noted : table of NOTED, as long as `servers`
        Servers whose flows may end at other times than before.
    soiled : IndexedHeap
        Servers whose share has to be found again, by the lower of it and the new one.
    counts : table of COUNTS, one row
    """

    servers: Any
    levels: Any
    groups: Any
    stops: Any
    slots: Any
    crossings: Any
    rows: Any
    noted: Any
    soiled: IndexedHeap
    counts: Any


def server_table(bandwidth: NDArray[np.float64], latency: NDArray[np.float64]) -> Table:
    """Return idle servers."""
    servers = np.zeros(max(len(bandwidth), 1), dtype=SERVER)
    servers["bandwidth"][: len(bandwidth)] = bandwidth
    servers["latency"][: len(latency)] = latency
    return servers


def empty_flows(
    servers: Table, indptr: NDArray[np.int64], stops: NDArray[np.int64], room: int
) -> Flows:
    """Return no flows over these servers and paths, with room for some."""
    counts = np.zeros(1, dtype=COUNTS)
    counts["free"] = -1
    counts["longest"] = np.diff(indptr).max(initial=1)
    levels, groups = np.zeros(len(servers), dtype=LEVEL), np.zeros(len(servers), dtype=GROUP)
    levels["share"], levels["alarm"] = np.inf, servers["bandwidth"] * FULL
    groups["first"] = groups["crossing"] = -1
    flows = Flows(
        servers=servers,
        levels=levels,
        groups=groups,
        stops=np.append(stops, -1).astype(np.int32).view(STOP),
        slots=np.zeros(0, dtype=SLOT),
        crossings=np.zeros(0, dtype=CROSSING),
        rows=np.zeros(0, dtype=ROW),
        noted=np.zeros(len(servers), dtype=NOTED),
        soiled=empty_heap(len(servers)),
        counts=counts,
    )
    return enlarged(flows, room)


def enlarged(flows: Flows, more: int) -> Flows:
    """Return the same flows with room for `more` others."""
    old, counts = len(flows.slots), flows.counts
    longer: dict[str, Any] = {}
    for name in ("slots", "crossings", "rows"):
        table = getattr(flows, name)
        extra = more * int(counts["longest"][0]) if name == "crossings" else more
        longer[name] = np.concatenate((table, np.zeros(extra, dtype=table.dtype)))
    longer["slots"]["after"][old:] = np.arange(old + 1, old + more + 1)
    longer["slots"]["after"][-1] = counts["free"][0]
    counts["free"] = old
    counts["spare"] += more
    return flows._replace(**longer)
