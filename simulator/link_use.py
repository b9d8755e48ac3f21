"""How busy links are over time: the seconds that each served packets, in bins of equal length.

How long a run takes is not known before its end. Bins therefore begin very short, and whenever a
packet goes beyond the last one, neighbours are merged and all become twice as long. Lengths are
powers of two of a second, so that the bounds of bins are exact.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Floats
from hopmap.topologies import Topology
from hopmap.traces.safety.atomic_files import replacing

FINEST = 2.0**-40  # seconds, about a picosecond


class LinkUse(NamedTuple):
    """Use of links over time."""

    width: float  # seconds of a bin; the k-th lasts from ``k * width`` to ``(k + 1) * width``
    # shape (links, bins): seconds that each link spent on packets in each bin, `Result.link_busy`
    # in all; the last bin is that of the makespan, or of the last packet, if that comes later
    busy: Floats

    @property
    def fraction(self) -> Floats:
        """Share of each bin that each link was busy."""
        return self.busy / self.width


class Bins:
    """Use of links while a run goes on, for the reference engine; shape (links, bins)."""

    def __init__(self, links: int, bins: int) -> None:
        self.width = FINEST
        self.bins = bins
        self.busy = [[0.0] * bins for _ in range(links)]

    def add(self, link: int, start: float, end: float) -> None:
        """Spread a service over the bins that it touches."""
        while end > self.bins * self.width:
            self._merge()
        width, busy = self.width, self.busy[link]
        first, last = int(start / width), int(end / width)
        if start == end:  # perhaps where the last bin ends
            return
        if first == last:
            busy[first] += end - start
            return
        busy[first] += (first + 1) * width - start
        for k in range(first + 1, last):
            busy[k] += width
        if end > last * width:
            busy[last] += end - last * width

    def _merge(self) -> None:
        """Make bins twice as long."""
        self.width *= 2
        for busy in self.busy:
            odd = [*busy[1::2], 0.0] if self.bins % 2 else busy[1::2]
            merged = [one + other for one, other in zip(busy[::2], odd, strict=True)]
            busy[:] = merged + [0.0] * (self.bins - len(merged))


def fit_bins(width: float, busy: Floats, makespan: float) -> LinkUse:
    """Let bins reach to the end of the run, and leave out those behind it."""
    links, bins = busy.shape
    while bins * width < makespan:
        width *= 2
        pairs = np.zeros((links, 2 * bins))
        pairs[:, :bins] = busy
        busy = pairs[:, ::2] + pairs[:, 1::2]
    used = np.flatnonzero(busy.any(axis=0))
    last = max(int(np.ceil(makespan / width)), int(used.max(initial=-1)) + 1)
    return LinkUse(width, busy[:, :last])


def write_link_use(path: str | Path, use: LinkUse, topology: Topology) -> None:
    """Write a table: link, from, to, kind, time_begin, time_end, busy, utilisation.

    Times and `busy` are seconds; `utilisation` is their ratio, the share of the bin.
    """
    import pyarrow as pa  # slow to import
    import pyarrow.parquet as pq

    links, bins = use.busy.shape
    link = np.repeat(np.arange(links), bins)
    time = np.tile(np.arange(bins) * use.width, links)
    kinds = pa.array([kind.name for kind in topology.kinds], pa.string())
    table = pa.table(
        {
            "link": link,
            "from": topology.link_from[link].astype(np.int64),
            "to": topology.link_to[link].astype(np.int64),
            "kind": kinds.take(pa.array(topology.link_kind[link])),
            "time_begin": time,
            "time_end": time + use.width,
            "busy": use.busy.ravel(),
            "utilisation": use.fraction.ravel(),
        }
    )
    with replacing(path) as partial:
        pq.write_table(table, partial)
