"""What a question is asked about: words, files, arrays and objects made into what hopmap works on.

Whatever stands for a trace may be a path, the name of a benchmark or stencil, a `Source`, `Trace`,
`Folded`, `Program` or `Traffic`; for a topology its spec or a `Topology`; for a mapping a file, an
array, or whatever numpy takes for one.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from numpy.typing import ArrayLike

from hopmap.errors import HopmapWarning
from hopmap.scenarios.launchers.mapping_files import network_of, read_mapping
from hopmap.simulator import ParameterError, Parameters
from hopmap.simulator.parameters.settings import (
    SettingError,
    Value,
    algorithms_from,
    check_settings,
    configure,
)
from hopmap.topologies import (
    Mapping,
    MappingError,
    Topology,
    check_mapping,
    topology_from_spec,
)
from hopmap.traces import TraceError
from hopmap.traces.sources import Source, open_source

from .mistaken import MAPPING, NETWORK, TRACE, expect, sort_of

if TYPE_CHECKING:
    from hopmap.simulator import Program
    from hopmap.simulator.programs.from_source import SourceProgram, SourceTraffic
    from hopmap.traces import Folded, Trace, Traffic

Given: TypeAlias = "str | Path | Source | Trace | Folded | Program | Traffic"
GivenTopology: TypeAlias = str | Topology
GivenMapping: TypeAlias = str | Path | ArrayLike
GivenSettings: TypeAlias = MappingOf[str, Value] | None


open = open_source  # noqa: A001 - what the front door calls it


@dataclass(frozen=True, eq=False)
class ReplayInput:
    """A program on a network, ready to be replayed.

    Attributes
    ----------
    name : str
        What the program is called.
    calls : Trace, Folded or None
        What it was lowered from; None of traffic.
    settings : mapping
        What was set, by key.
    generated : bool
        Whether it computes at a rate that is assumed, as a benchmark called by its name does.
    """

    name: str
    program: Program
    network: Topology
    parameters: Parameters
    calls: Trace | Folded | None = None
    settings: GivenSettings = None
    generated: bool = False


def name_of(given: Given) -> str:
    """Return what reports call it."""
    from hopmap.traces import Folded, Traffic

    expect(TRACE, given)
    if isinstance(given, str | Path):
        return open_source(given).name
    if isinstance(given, Folded):
        return given.trace.name
    return "traffic" if isinstance(given, Traffic) else given.name


def topology(spec: GivenTopology, settings: GivenSettings = None) -> Topology:
    """Build a network, its links as set.

    Parameters
    ----------
    spec : str or Topology
        Like "torus:4x4x4", "dragonfly:2x4x2", "preset:NAME", "file:PATH".
    settings : mapping of str to str or float, optional
        Like ``{"link.bandwidth": "25 Gbit/s"}``: keys that begin with "link.".

    Raises
    ------
    TopologyError
        The spec makes no network.
    SettingError
        An unknown key or quantity, or one that is a replay's and not a network's.

    Examples
    --------
    >>> topology("torus:4x4x4").nodes
    64
    """
    for key in settings or {}:
        if not key.startswith("link."):
            raise SettingError(f"{key}: of a replay, not of a network: expected link. before it")
    return configured(spec, settings)[0]


def configured(given: GivenTopology, settings: GivenSettings = None) -> tuple[Topology, Parameters]:
    """Return a network and the parameters of the model, both as set."""
    expect(NETWORK, given)
    network = given if isinstance(given, Topology) else topology_from_spec(given)
    check_settings(settings or {}, [network])
    return configure(network, tuple((settings or {}).items()))


def algorithms_of(settings: GivenSettings) -> dict[str, str]:
    """Return the algorithms of collectives that are set, where nothing else may be."""
    return algorithms_from(tuple((settings or {}).items()))


def traffic_given(
    given: Given,
    collectives: str = "ignore",
    algorithms: MappingOf[str, str] | None = None,
    rma: str = "include",
) -> SourceTraffic:
    """Return who sends how much to whom.

    Warn where that is next to nothing beside collectives, and of what is made up of these.

    Parameters
    ----------
    collectives : {"ignore", "expand", "auto"}
        Whether to count what collectives send; "auto" does where that outweighs the messages, or
        where algorithms are named.
    algorithms : mapping of str to str, optional
        Of collectives, by operation; not with "ignore".
    rma : {"include", "ignore"}
        Whether to count what one-sided operations move.

    Raises
    ------
    ParameterError, TraceError
        See `traffic_of_source`.
    """
    from hopmap.simulator.programs.from_collectives import PAIRS_COUNTED, SOME_MEMBERS
    from hopmap.simulator.programs.from_source import (
        SourceTraffic,
        check_collectives,
        check_rma,
        traffic_of_source,
    )
    from hopmap.traces import Traffic

    expect(TRACE, given)
    check_collectives(collectives, algorithms)
    check_rma(rma)
    if isinstance(given, str | Path):
        given = open_source(given)
    if isinstance(given, Source):
        found = traffic_of_source(given, collectives, algorithms, rma)
    elif isinstance(given, Traffic) and collectives != "expand" and not algorithms:
        found = SourceTraffic(given, {})
    elif collectives == "expand" or algorithms:
        found = _expanded(given, algorithms, rma)
    else:
        found = _messages_of(given, rma)
        if collectives == "auto" and found.outweighed:
            found = _expanded(given, None, rma)._replace(outweighed=found.outweighed)
    tell_of_traffic(name_of(given), found, rma)
    no_doubt = (PAIRS_COUNTED, SOME_MEMBERS)  # notes that leave nobody's traffic open
    open_ = [f"{what}: {n:,}" for what, n in found.notes.items() if what not in no_doubt]
    if open_:
        warnings.warn(f"{name_of(given)}: {'; '.join(open_)}", HopmapWarning, stacklevel=2)
    return found


def _messages_of(given: Trace | Folded | Program | Traffic, rma: str) -> SourceTraffic:
    """Return point-to-point traffic, and whether collectives outweigh it."""
    from hopmap.simulator import Program, lower
    from hopmap.simulator.programs.from_source import SourceTraffic, outweighed
    from hopmap.traces import Trace, summarize

    if isinstance(given, Trace):
        summary = summarize(given)
        messages, left_out = summary.traffic, summary.collective_bytes
        one_sided = summary.one_sided
    else:
        program = given if isinstance(given, Program) else lower(given)  # type: ignore[arg-type]
        messages, one_sided = program.p2p_traffic(), program.one_sided_traffic()
        left_out = int(program.two_sided_traffic().bytes.sum() - messages.bytes.sum())
    found = SourceTraffic(messages, {}).counting(one_sided, rma)
    return found._replace(outweighed=outweighed(found.traffic, left_out))


def _expanded(
    given: Trace | Folded | Program | Traffic, algorithms: MappingOf[str, str] | None, rma: str
) -> SourceTraffic:
    from hopmap.simulator import Program
    from hopmap.simulator.programs.from_source import SourceTraffic, expanded
    from hopmap.traces import Traffic

    if isinstance(given, Traffic):
        raise TraceError(
            "traffic: it has no collectives apart: expected a trace, or to ignore them"
        )
    if not isinstance(given, Program):
        return expanded(given, algorithms, rma)
    if algorithms and dict(algorithms) != dict(given.algorithms):
        raise ParameterError(
            f"algorithms {dict(algorithms)}: the program was lowered with "
            f"{dict(given.algorithms)}: expected the same"
        )
    found = SourceTraffic(given.two_sided_traffic(), given.chosen, given.notes, expanded=True)
    return found.counting(given.one_sided_traffic(), rma)


def tell_of_traffic(name: str, found: SourceTraffic, rma: str) -> None:
    """Warn of a program that sends in collectives only, or most, or one-sided.

    What was done about it is said.
    """
    if found.one_sided:
        how = "not counted (--rma include counts them)"
        if rma == "include":
            how = "counted, too (--rma ignore leaves them out)"
        warnings.warn(f"{name}: {found.one_sided}: {how}", HopmapWarning, stacklevel=3)
    if found.outweighed:
        how = "count collectives with --collectives expand"
        if found.expanded:
            how = "what collectives send is counted, too (--collectives ignore leaves it out)"
        warnings.warn(f"{name}: {found.outweighed}: {how}", HopmapWarning, stacklevel=3)


def replay_given(
    given: Given,
    network: GivenTopology,
    *,
    settings: GivenSettings = None,
    steps: int | None = None,
    rounds: int | None = None,
    written_out: bool = False,
) -> ReplayInput:
    """Return what is replayed, on what; see `program_of_source` for the parameters."""
    from hopmap.simulator.programs.from_source import program_of_source

    expect(TRACE, given)
    built, parameters = configured(network, settings)
    if isinstance(given, str | Path):
        given = open_source(given)
    generated = isinstance(given, Source) and given.assumes_rate
    if isinstance(given, Source):
        program, calls = program_of_source(
            given,
            steps=steps,
            rounds=rounds,
            algorithms=parameters.algorithms,
            written_out=written_out,
        )
    else:
        program, calls = _program_of(given, steps, rounds, parameters)
    return ReplayInput(name_of(given), program, built, parameters, calls, settings, generated)


def _program_of(
    given: Trace | Folded | Program | Traffic,
    steps: int | None,
    rounds: int | None,
    parameters: Parameters,
) -> SourceProgram:
    from hopmap.simulator import Program, lower, program_of_traffic
    from hopmap.simulator.programs.from_source import SourceProgram
    from hopmap.traces import Traffic

    if steps is not None:
        raise ParameterError(f"steps {steps}: only of a benchmark by its name, like lu.C.64")
    if isinstance(given, Traffic):
        return SourceProgram(program_of_traffic(given, rounds=rounds), None)
    if rounds is not None:
        raise ParameterError(f"rounds {rounds}: only for traffic, {name_of(given)} is a trace")
    if isinstance(given, Program):
        return SourceProgram(given, None)
    return SourceProgram(lower(given, parameters.algorithms), given)


def on_network(
    topology: GivenTopology | GivenMapping | None, mapping: GivenMapping | None
) -> tuple[GivenTopology, GivenMapping]:
    """Return a network and a mapping, the network that of the mapping where none is given.

    A mapping alone may stand in the first place.

    Raises
    ------
    MappingError
        No mapping, or one that does not name its network.
    """
    if mapping is None and sort_of(topology) == MAPPING:
        topology, mapping = None, topology
    if mapping is None:
        raise MappingError("mapping: expected one, after the network")
    if topology is None:
        expect(MAPPING, mapping)
        own = getattr(mapping, "topology", None)
        if own is None and isinstance(mapping, str | Path):
            own = network_of(mapping, None)
        if own is None:
            raise MappingError("topology: expected one, an array does not name its own")
        topology = own
    expect(NETWORK, topology)
    return topology, mapping  # type: ignore[return-value]


def mapping_given(given: GivenMapping, network: Topology, ranks: int | None) -> Mapping:
    """Return the node of every rank, checked; see `read_mapping` and `check_mapping`."""
    expect(MAPPING, given)
    if isinstance(given, str | Path):
        return read_mapping(given, network, ranks)
    return check_mapping(given, network, ranks)
