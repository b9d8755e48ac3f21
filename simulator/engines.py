"""The engines that can run a plan, by name; each is imported when it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from hopmap.plugins import load_named

if TYPE_CHECKING:
    from .result import Outcome


class Engine(NamedTuple):
    """A way to run a plan."""

    place: str  # "module:function" of this package
    summary: str  # one line for ``hopmap list engines``
    # whether links serve packets one after the other, so that their use over time is known; and
    # what repeats stands in memory once, so that it can be watched
    packets: bool = False

    @property
    def run(self) -> Callable[..., Outcome]:
        """``(plan, record, progress) -> Outcome``; of packets also with a `LoopWatch`, last."""
        run: Callable[..., Outcome] = load_named(__package__, self.place)
        return run


ENGINES: Mapping[str, Engine] = {
    "simpy": Engine(
        "reference.simpy_engine:run", "packets on SimPy's event queue, the reference", True
    ),
    "compiled": Engine("packets.compiled_engine:run", "the same packets and times, compiled", True),
    "flow": Engine(
        "flows.message_engine:run_flow", "messages as flows that share links max-min fairly"
    ),
    "analytic": Engine(
        "flows.message_engine:run_analytic", "messages that never meet: no contention"
    ),
}

DEFAULT_ENGINE = "compiled"
