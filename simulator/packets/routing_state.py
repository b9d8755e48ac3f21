"""The tables of routes that are chosen on the way, see `topologies/next_hops.py`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.simulator.routing.routes import ADAPTIVE, SPRAYING
from hopmap.simulator.run_plan import RunPlan

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
    """Tables of each kind, or in compiled code the first record of each.

    Attributes
    ----------
    next : ndarray(NEXT)
        Port of the topology's route by destination and place.
    left : ndarray(LEFT)
        Links that are left by home of a destination and place.
    drawn, regions : ndarray(DRAWN), ndarray(REGION)
        See `Routes`.
    classes : ndarray(CHANNELS)
        Class of virtual channels of the topology's route by destination and place.
    """

    places: Any
    ports: Any
    nodes: Any
    next: Any
    left: Any
    drawn: Any
    regions: Any
    links: Any
    classes: Any


def ways_of(plan: RunPlan) -> Ways:
    """Return the tables of a plan; of one row where routes are the topology's own."""
    routes = plan.routes
    if routes is None or plan.channels is None:
        kinds = (PLACE, PORT, NODE, NEXT, LEFT, DRAWN, REGION, LINK_END, CHANNELS)
        return Ways(*(np.zeros(1, dtype=kind) for kind in kinds))
    hops = routes.hops
    count = len(hops.region)
    places = _filled(count + 1, PLACE, ports=hops.starts)
    places["region"][:count] = hops.region
    nodes = _filled(len(hops.home), NODE, home=hops.home, up=hops.up, down=hops.down)
    nodes["row"] = hops.row.astype(np.int64) * count
    nodes["hops"] = hops.home_row[hops.home].astype(np.int64) * count
    ports = _filled(len(hops.links), PORT, link=hops.links, end=hops.ends)
    ports["crosses"] = routes.crosses[hops.links]
    links = _filled(plan.links, LINK_END, end=ARRIVED, list=np.arange(plan.links))
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
        drawn=_filled(len(routes.drawn), DRAWN, node=routes.drawn),
        regions=_filled(len(routes.first), REGION, first=routes.first, size=routes.size),
        links=links,
        classes=np.ascontiguousarray(plan.channels.classes).reshape(-1).view(CHANNELS),
    )
    return Ways(*(table if len(table) else np.zeros(1, table.dtype) for table in tables))


def _filled(rows: int, kind: np.dtype[np.void], **columns: Any) -> NDArray[np.void]:
    table = np.zeros(rows, dtype=kind)
    for name, column in columns.items():
        table[name] = column
    return table
