"""Traffic of a source as ``--collectives`` asks for it: with what collectives send, or without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..traces import Traffic
from ..traces.monitoring import read_monitoring
from .cli_arguments import Collectives
from .console import warn
from .settings import SettingError, algorithms_from, parse_settings
from .sources import Source


class Expanded(NamedTuple):
    """Traffic, and the algorithms of its collectives with the number of calls, by operation."""

    traffic: Traffic
    chosen: Mapping[str, Mapping[str, int]]


def algorithms_given(collectives: Collectives, words: Sequence[str] | None) -> dict[str, str]:
    """Read the algorithms that ``--set`` names.

    Raises
    ------
    SettingError, ParameterError
        Something else is set, or collectives are ignored.
    """
    algorithms = algorithms_from(parse_settings(words or []))
    if algorithms and collectives is Collectives.IGNORE:
        raise SettingError(
            f"--set collective.{next(iter(algorithms))}: expected --collectives expand with it"
        )
    return algorithms


def read_traffic(
    source: Source, collectives: Collectives, algorithms: Mapping[str, str]
) -> Expanded:
    """Read a source's point-to-point traffic, or all that it sends.

    Raises
    ------
    TraceError
        As `Source.traffic` and `Source.calls`: of files of traffic, only those of Open MPI's
        monitoring have collectives.
    """
    if collectives is Collectives.IGNORE:
        return Expanded(source.traffic(), {})
    if source.is_monitored:
        assert source.path is not None
        return Expanded(read_monitoring(source.path, collectives=True), {})
    from ..simulator import lower

    program = lower(source.calls(), algorithms)
    return Expanded(program.traffic(), program.chosen)


def warn_if_silent(source: Source, traffic: Traffic, collectives: Collectives) -> None:
    """Say what to do about a program that sends in collectives only, like NAS FT."""
    ignored = collectives is Collectives.IGNORE and source.has_collectives
    if ignored and traffic.pairs == 0 and traffic.ranks > 1:
        how = "count collectives with --collectives expand"
        warn(f"{source.name}: no point-to-point messages: {how}")


def chosen_rows(chosen: Mapping[str, Mapping[str, int]]) -> list[tuple[str, object]]:
    """Lines of a table: operation and algorithm, calls."""
    return [
        (f"{operation} calls by {algorithm}", calls)
        for operation, taken in sorted(chosen.items())
        for algorithm, calls in sorted(taken.items())
    ]
