"""What a mapping loses where links fail: its metrics with and without failures."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopmap.arrays import Floats, Ints
from hopmap.topologies import Mapping, Topology, with_failures
from hopmap.traces import Traffic

from .metrics import evaluate

NAMES = ("hop_bytes", "busiest_link_bytes")


class FailureImpact(NamedTuple):
    """Hop-bytes and bytes of the busiest link, without failures and with each sample of them."""

    without: Ints  # shape (2,)
    failed: Ints  # shape (draws, 2)

    @property
    def loss(self) -> Floats:
        """How much more each draw has, 0.1 is 10 %, shape (draws, 2); 0 where there is nothing."""
        return np.asarray(self.failed / np.maximum(self.without, 1) - (self.without > 0))

    def to_dict(self) -> dict[str, Any]:
        """Return what ``evaluate --json`` prints."""
        return {
            name: {
                "without": int(self.without[k]),
                "with": self.failed[:, k].tolist(),
                "mean_loss": float(self.loss[:, k].mean()),
                "worst_loss": float(self.loss[:, k].max()),
            }
            for k, name in enumerate(NAMES)
        }

    def rows(self) -> list[tuple[object, ...]]:
        """Return a row of a table for each quantity."""
        return [
            (
                name.replace("_", " "),
                int(self.without[k]),
                float(self.failed[:, k].mean()),
                int(self.failed[:, k].max()),
                f"{100 * self.loss[:, k].mean():+.1f} %",
                f"{100 * self.loss[:, k].max():+.1f} %",
            )
            for k, name in enumerate(NAMES)
        ]


def failure_impact(
    traffic: Traffic, topology: Topology, node_of: Mapping, failures: str, draws: int | None = None
) -> FailureImpact:
    """Measure a mapping on a network and on the same with failures, see `with_failures`.

    They are drawn `draws` times, with the seeds 0, 1, ...; once, as `failures` says, when left out.
    """
    drawn = [failures] if draws is None else [f"{failures},seed={seed}" for seed in range(draws)]
    networks = [topology, *(with_failures(topology, each) for each in drawn)]
    sides = (evaluate(traffic, network, node_of).bytes for network in networks)
    found = [(int(side.dilation.sum), int(side.congestion.max)) for side in sides]
    return FailureImpact(np.array(found[0]), np.array(found[1:]))
