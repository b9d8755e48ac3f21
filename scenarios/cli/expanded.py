"""Traffic of a source as ``--collectives`` asks for it: with what collectives send, or without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from hopmap.simulator.parameters.settings import SettingError, algorithms_from, parse_settings
from hopmap.simulator.parameters.units import show_bytes
from hopmap.traces import Traffic
from hopmap.traces.formats.openmpi_monitoring import read_monitoring
from hopmap.traces.sources import Source

from .arguments import Collectives
from .console import warn

if TYPE_CHECKING:
    import pandas as pd


class Expanded(NamedTuple):
    """Traffic, and the algorithms of its collectives with the number of calls, by operation.

    `left_out` is what a trace says that its collectives send, in bytes, where they are ignored.
    """

    traffic: Traffic
    chosen: Mapping[str, Mapping[str, int]]
    left_out: int = 0


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
    if collectives is Collectives.IGNORE and source.kind == "archive":
        from hopmap.traces.otf2.read import read_summary

        assert source.path is not None
        summary = read_summary(source.path)
        return Expanded(summary.traffic, {}, summary.collective_bytes)
    if collectives is Collectives.IGNORE:
        return Expanded(source.traffic(), {})
    if source.is_monitored:
        assert source.path is not None
        return Expanded(read_monitoring(source.path, collectives=True), {})
    from hopmap.simulator import lower

    program = lower(source.calls(), algorithms)
    return Expanded(program.traffic(), program.chosen)


def warn_if_silent(
    source: Source, traffic: Traffic, collectives: Collectives, left_out: int = 0
) -> None:
    """Say what to do about a program that sends in collectives only, or most, like NAS FT and IS.

    Where nobody says how much they send, fewer messages than ranks are a sign of it.
    """
    if collectives is Collectives.EXPAND or not source.has_collectives or traffic.ranks == 1:
        return
    sent, messages = int(traffic.bytes.sum()), int(traffic.messages.sum())
    if not messages:
        what = "no point-to-point messages"
    elif left_out > sent:
        what = f"{show_bytes(sent)} in messages and {show_bytes(left_out)} in collectives"
    elif messages < traffic.ranks:
        what = f"{messages} point-to-point messages of {show_bytes(sent)} in all"
    else:
        return
    warn(f"{source.name}: {what}: count collectives with --collectives expand")


def outweighed(runs: pd.DataFrame, rounds: int | None = None) -> list[str]:
    """Return the traces whose collectives cross more links than the messages that were mapped.

    Parameters
    ----------
    runs : DataFrame
        Of a study; what was replayed counts, messages and collectives.
    rounds : int, optional
        How often files of traffic were replayed.
    """
    hops = runs.groupby("trace", sort=False)[["hop_bytes", "replayed_hop_bytes"]].sum()
    more = hops["replayed_hop_bytes"] > (1 + (rounds or 1)) * hops["hop_bytes"]
    return [str(name) for name in hops.index[more.fillna(False).astype(bool)]]


def chosen_rows(chosen: Mapping[str, Mapping[str, int]]) -> list[tuple[str, object]]:
    """Lines of a table: operation and algorithm, calls."""
    return [
        (f"{operation} calls by {algorithm}", calls)
        for operation, taken in sorted(chosen.items())
        for algorithm, calls in sorted(taken.items())
    ]
