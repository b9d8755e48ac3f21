"""The engines that can run a plan, by name; each is imported when it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from .result import Outcome

Run: TypeAlias = "Callable[..., Outcome]"


class Engine(NamedTuple):
    """A way to run a plan.

    Attributes
    ----------
    load : callable
        Imports the engine and returns what `run` is.
    summary : str
        One line for ``hopmap list engines``.
    packets : bool
        Whether links serve packets one after the other, so that their use over time is known; and
        what repeats stands in memory once, so that it can be watched.
    """

    load: Callable[[], Run]
    summary: str
    packets: bool = False

    @property
    def run(self) -> Run:
        """``(plan, record, progress) -> Outcome``; of packets also with a `LoopWatch`, last."""
        return self.load()


def _simpy() -> Run:
    from .reference import simpy_engine

    return simpy_engine.run


def _compiled() -> Run:
    from .packets import compiled_engine

    return compiled_engine.run


def _flow() -> Run:
    from .flows import message_engine

    return message_engine.run_flow


def _analytic() -> Run:
    from .flows import message_engine

    return message_engine.run_analytic


ENGINES: Mapping[str, Engine] = {
    "simpy": Engine(_simpy, "packets on SimPy's event queue, the reference", True),
    "compiled": Engine(_compiled, "the same packets and times, compiled", True),
    "flow": Engine(_flow, "messages as flows that share links max-min fairly"),
    "analytic": Engine(_analytic, "messages that never meet: no contention"),
}

DEFAULT_ENGINE = "compiled"
