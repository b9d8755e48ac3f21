"""Mappings while they are compared, so that Ctrl-C keeps the best that was found until then."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from hopmap.mappers import LOAD, default_objective, parse_pipeline
from hopmap.mappers.pipeline import time_mapping
from hopmap.mappers.stop import Interrupted
from hopmap.simulator.uncertainty import least_regret, standings
from hopmap.topologies import Mapping, Topology, check_mapping

from .default_order import DEFAULT_ORDER, warn_above_default_order
from .machine import Machine
from .mapping import Placement
from .workload import Workload

if TYPE_CHECKING:
    from hopmap.traces import Traffic


def auto_by_both(topology: Topology) -> tuple[str, str]:
    """Return `auto` as it is, and for the other of hop-bytes and the busiest link.

    Examples
    --------
    >>> from hopmap.topologies import topology_from_spec
    >>> auto_by_both(topology_from_spec("torus:4x4"))
    ('auto', 'auto(objective=max_link_load)')
    """
    other = "hop_bytes" if default_objective(topology) == LOAD else LOAD
    return "auto", f"auto(objective={other})"


class InterruptedComparison(KeyboardInterrupt):
    """Ctrl-C during a comparison of mappings.

    Attributes
    ----------
    best : Placement
        The best until then: by replays where two mappings were replayed, else by hop-bytes.
    replays : int
        Made until then.
    not_replayed : tuple of str
        Candidates.
    """

    def __init__(self, best: Placement, replays: int, not_replayed: Sequence[str]) -> None:
        super().__init__("interrupted")
        self.best, self.replays, self.not_replayed = best, replays, tuple(not_replayed)

    @property
    def verdict(self) -> str:
        """One sentence."""
        basis = f"{self.replays} replays" if self.replays > 1 else "hop-bytes"
        missing = ", ".join(self.not_replayed)
        return f"interrupted: {self.best.mapper} is the best mapping so far, by {basis}; " + (
            f"not replayed: {missing}" if missing else "not all replays were made"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what ``advise --json`` and ``robust --json`` print after Ctrl-C."""
        return {
            "name": self.best.name,
            "topology": self.best.topology.spec,
            "ranks": len(self.best),
            "verdict": self.verdict,
            "interrupted": True,
            "replays": self.replays,
            "not_replayed": list(self.not_replayed),
            "best": {
                "mapper": self.best.mapper,
                "seconds": self.best.seconds,
                "node_of": self.best.node_of.tolist(),
            },
        }


@dataclass
class Comparison:
    """What a comparison has found; Ctrl-C in its ``with`` block is an `InterruptedComparison`.

    Attributes
    ----------
    workload, machine, traffic, room
        Of all mappings; `room` has the usable nodes.
    names : sequence of str
        Of all candidates.
    placements : list of Placement
        The mappings so far. One may be of several candidates, "rcm = auto".
    times : dict
        Seconds of replays by mapping and model, both by number.
    warnings : dict
        What a search ended above the default order with, by its name; empty for nothing.
    """

    workload: Workload
    machine: Machine
    traffic: Traffic
    room: Topology
    names: Sequence[str]
    placements: list[Placement] = field(default_factory=list)
    times: dict[tuple[int, int], float] = field(default_factory=dict)
    warnings: dict[str, str] = field(default_factory=dict)

    def search(
        self,
        pipeline: str,
        name: str,
        *,
        seed: int,
        seconds: float,
        initial: ArrayLike | None = None,
    ) -> tuple[Mapping, float]:
        """Return a mapping and its seconds; Ctrl-C adds the best of the search to `placements`."""
        begin = time.perf_counter()
        try:
            node_of, took = time_mapping(
                *(self.traffic, self.room, pipeline), seed=seed, seconds=seconds, initial=initial
            )
        except Interrupted as end:
            node_of = check_mapping(end.mapping, self.room, self.traffic.ranks)
            self.add(node_of, time.perf_counter() - begin, name)
            raise
        searched = parse_pipeline(pipeline), self.traffic, self.room
        self.warnings[name] = warn_above_default_order(*searched, node_of)
        return node_of, took

    def add(self, node_of: Mapping, seconds: float, name: str) -> Placement:
        """Add a mapping and return it."""
        made = Placement(
            *(self.workload, self.machine, node_of, self.traffic, self.room, name, seconds),
            warning=self.warnings.get(name, ""),
        )
        self.placements.append(made)
        return made

    def reject(self, model: int) -> None:
        """Forget the replays of a model."""
        for key in [key for key in list(self.times) if key[1] == model]:  # others may be added
            del self.times[key]

    def __enter__(self) -> Comparison:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if isinstance(error, KeyboardInterrupt) and any(
            each.mapper != DEFAULT_ORDER for each in self.placements
        ):
            raise self._interrupted() from None

    def _interrupted(self) -> InterruptedComparison:
        """Choose by replays; by hop-bytes as long as there is nothing to compare a replay with."""
        replayed = sorted({place for place, _ in self.times})
        if len(replayed) > 1:
            models = 1 + max(model for _, model in self.times)
            times = np.full((len(self.placements), models), np.nan)
            for key, seconds in self.times.items():
                times[key] = seconds
            best = self.placements[least_regret(standings(times))]
        else:
            best = min(self.placements, key=lambda each: each.metrics().bytes.dilation.sum)
        known = {name for place in replayed for name in self.placements[place].mapper.split(" = ")}
        missing = [name for name in self.names if name not in known]
        return InterruptedComparison(best, len(self.times), missing)
