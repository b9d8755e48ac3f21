"""The engines that can run a plan, by name; each is imported when it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from .result import Outcome

Run: TypeAlias = "Callable[..., Outcome]"


class Engine(NamedTuple):
    """A way to run a plan."""

    load: Callable[[], Run]  # imports the engine and returns what `run` is
    summary: str  # one line for ``hopmap list engines``
    # whether links serve packets one after the other, so that their use over time is known; and
    # what repeats stands in memory once, so that it can be watched
    packets: bool = False

    @property
    def run(self) -> Run:
        """``(plan, record, progress) -> Outcome``; of packets also with a `LoopWatch`, last."""
        return self.load()


def _engine(place: str) -> Callable[[], Run]:
    """Import a function of this package, "module:function", when it is asked for."""
    module, _, function = place.partition(":")
    return lambda: getattr(import_module(f"{__package__}.{module}"), function)


ENGINES: Mapping[str, Engine] = {
    "simpy": Engine(
        _engine("reference.simpy_engine:run"), "packets on SimPy's event queue, the reference", True
    ),
    "compiled": Engine(
        _engine("packets.compiled_engine:run"), "the same packets and times, compiled", True
    ),
    "flow": Engine(
        _engine("flows.message_engine:run_flow"),
        "messages as flows that share links max-min fairly",
    ),
    "analytic": Engine(
        _engine("flows.message_engine:run_analytic"), "messages that never meet: no contention"
    ),
}

DEFAULT_ENGINE = "compiled"
