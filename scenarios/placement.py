"""A mapping with what it was made for: what `map_ranks` of the front door hands back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hopmap.notebook import Shown
from hopmap.topologies import Mapping, Topology
from hopmap.units import show_seconds

if TYPE_CHECKING:
    from hopmap.simulator import Metrics
    from hopmap.traces import Traffic

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Placement(Shown):
    """Ranks on nodes; stands wherever an array ``node_of[rank]`` does.

    Attributes
    ----------
    name : str
        Of the trace.
    node_of : ndarray(int64, shape=(ranks,))
        Node of each rank.
    traffic : Traffic
        What the ranks were placed by.
    topology : Topology
        The network; its slots are those that were free.
    mapper : str
        The pipeline, with its parameters.
    seconds : float
        What mapping took, the compiler apart.
    objective : tuple of (str, float, float), optional
        The objective that was asked for, its value before and after.
    replays : int
        For an objective that takes them.
    launched : ndarray(int64, shape=(ranks,)), optional
        The order as launched: rank after rank on node after node.
    interrupted : bool
        Whether Ctrl-C ended the search.
    stopped : {"optimal", "stagnated", "budget"}, optional
        Why the search ended, where its mapper says so: no mapping is better, a round of it gained
        next to nothing, or its time or moves were spent.
    """

    name: str
    node_of: Mapping
    traffic: Traffic
    topology: Topology
    mapper: str
    seconds: float
    objective: tuple[str, float, float] | None = None
    replays: int = 0
    launched: Mapping | None = None
    interrupted: bool = False
    stopped: str | None = None

    def __array__(
        self, dtype: DTypeLike | None = None, copy: bool | None = None
    ) -> NDArray[np.generic]:
        """Return `node_of`."""
        return np.array(self.node_of, dtype=dtype) if copy else np.asarray(self.node_of, dtype)

    def __len__(self) -> int:
        return len(self.node_of)

    def __repr__(self) -> str:
        return (
            f"<Placement of {self.name}: {len(self)} ranks on {self.topology.spec} by "
            f"{self.mapper}, in {show_seconds(self.seconds)}>"
        )

    def metrics(self) -> Metrics:
        """Measure it; see `evaluate`."""
        from hopmap.simulator import evaluate

        return evaluate(self.traffic, self.topology, self.node_of)

    def metrics_as_launched(self) -> Metrics | None:
        """Measure the order as launched."""
        from hopmap.simulator import evaluate

        if self.launched is None:
            return None
        return evaluate(self.traffic, self.topology, self.launched)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each rank: ``node``, and ``name`` where the network names its nodes."""
        import pandas as pd

        frame = pd.DataFrame({"node": self.node_of})
        frame.index.name = "rank"
        names = self.topology.names
        return frame.assign(name=[names[node] for node in self.node_of]) if names else frame

    def to_dict(self) -> dict[str, Any]:
        """Return what ``map --json`` prints."""
        metrics = self.metrics()
        found = {
            "mapper": self.mapper,
            "topology": self.topology.spec,
            "ranks": len(self),
            "seconds": self.seconds,
            "hop_bytes": metrics.bytes.dilation.sum,
            "hop_messages": metrics.messages.dilation.sum,
            "node_of": self.node_of.tolist(),
            "nodes": int((self.topology.slots > 0).sum()),
            **_figures(metrics),
        }
        if (launched := self.metrics_as_launched()) is not None:
            found["launched"] = _figures(launched)
        if self.interrupted:
            found["interrupted"] = True
        if self.stopped is not None:
            found["stopped"] = self.stopped
        if self.objective is not None:
            found["objective"] = dict(zip(("name", "before", "after"), self.objective, strict=True))
        return found


def _figures(metrics: Metrics) -> dict[str, Any]:
    """Return how far messages and bytes go, and what the busiest link has; as `evaluate` does."""
    whole = metrics.to_dict()
    return {
        side: {name: whole[side][name] for name in ("dilation", "congestion")}
        for side in ("messages", "bytes")
    }
