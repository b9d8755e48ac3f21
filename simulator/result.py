"""What a replay returns."""

from __future__ import annotations

from collections.abc import Mapping as MappingOf
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from hopmap.arrays import Floats, Ints, Ints32
from hopmap.notebook import ShownMixin
from hopmap.simulator.parameters.energy import Energy
from hopmap.simulator.programs.steps import EXACT
from hopmap.topologies import Mapping, Topology
from hopmap.traces import TraceError
from hopmap.traces.summary import Omission
from hopmap.units import show_seconds

from .link_use import LinkUse
from .operations import MessageTimestamps, Operations, OperationTimestamps
from .uncertainty import Ensemble

if TYPE_CHECKING:
    import pandas as pd

    from .parameters.parameters import Parameters
    from .programs.program import Program


class Servers(NamedTuple):
    """Counters of a set of servers, all of shape (servers,)."""

    # messages, bytes: of data; requests and grants of rendezvous are not in it
    messages: Ints
    bytes: Ints
    busy: Floats  # seconds spent on packets
    # longest_wait, waited: seconds that a packet stood in the queue at most, and all together
    longest_wait: Floats
    waited: Floats


@dataclass(frozen=True)
class Extrapolated:
    """How a run was extrapolated from its first steps, the iterations of its main loop."""

    # steps, of: how many were replayed, and how many there are
    steps: int
    of: int
    period: int  # steps after which all repeats
    seconds: float  # mean time of a step of those that were not replayed
    # by how much of the makespan it may be off, as far as the steps that were replayed say
    error: float

    def __str__(self) -> str:
        how = f"estimated error at most {100 * self.error:.2g} %"
        if self.error <= EXACT:
            how = "which repeat up to rounding"
        return f"steps {self.steps + 1:,} to {self.of:,} extrapolated, {how}"


class Outcome(NamedTuple):
    """What an engine hands back; arrays by rank, by server and by message."""

    # finish, compute, communicate, wait: shape (ranks,)
    finish: Floats
    compute: Floats
    communicate: Floats
    wait: Floats
    servers: Servers
    events: int  # packets served, by all servers together
    controls: int  # requests and grants sent
    messages: MessageTimestamps
    operations: OperationTimestamps
    use: LinkUse  # not trimmed; without bins if they were not asked for


class MessageTimes(NamedTuple):
    """One entry per message, in the order of (source rank, n-th send).

    Data are handed over (`sent`), pass the end point of their rank, and are handed to the network
    (`departed`); `delivered` is when the last byte reached the target's node, NaN if it never did.
    `requested` and `granted` are when the request reached the target's node and the grant its own;
    NaN of eager messages.
    """

    # source, target: ranks
    source: Ints32
    target: Ints32
    size: Ints  # bytes
    sent: Floats
    delivered: Floats
    requested: Floats
    granted: Floats
    departed: Floats


@dataclass(frozen=True, eq=False, repr=False)
class Result(ShownMixin):
    """A simulated run; times in seconds.

    Attributes
    ----------
    engine, topology : str
        What simulated it, and on what.
    makespan : float
        When the last rank finished.
    messages, bytes : int
        Sent by all ranks, collectives included.
    events : int
        Packet-hops: packets served by links, injection, ejection and memory.
    controls : int
        Requests and grants of rendezvous; in none of the other counts but `events`.
    wall_seconds, compile_seconds : float
        What the engine took, and apart from that the compiler, or reading what it compiled before.
    finish, compute, communicate, wait : ndarray(float64, shape=(ranks,))
        When each rank finished, and how that time divides: computation, overhead of sending and
        receiving, waiting. Work of non-blocking collectives in the background is not in it.
    link_messages, link_bytes : ndarray(int64, shape=(links,))
        Data over each link; equal to the static loads of the program's traffic.
    link_busy : ndarray(float64, shape=(links,))
        Seconds that each link spent on packets.
    link_queue, link_waited : ndarray(float64, shape=(links,))
        Longest time that a packet queued for the link, and the sum over all packets.
    injection, ejection, memory : Servers
        The same of each node's own servers.
    message_times : MessageTimes or None
        If they were asked for.
    operations : Operations or None
        If they were asked for.
    link_use : LinkUse or None
        If it was asked for.
    energy : Energy or None
        If any of its parameters is set.
    network : Topology or None
        What it ran on.
    omitted : tuple of Omission
        What the trace had and the run had not, or not as it was.
    notes : mapping of str to int
        See `Program.notes`.
    extrapolated : Extrapolated or None
        None if all steps were replayed. Otherwise times, and how long links were busy, are
        extrapolated; messages, bytes, `events` and `controls` are exact; queues are as long as was
        seen.
    whole : str
        Why all steps of a long run were replayed, if they need not have been.
    ensemble : Ensemble or None
        What repeats with noise took, if they were asked for.
    assumed : sequence of str
        Keys of parameters that it used and whose values are neither measured nor published, as far
        as the caller knows.
    program : Program or None
        What was replayed.
    node_of : ndarray(int64, shape=(ranks,)) or None
        Where its ranks sat.
    parameters : Parameters or None
        Of the model, noise included.
    """

    engine: str
    topology: str
    makespan: float
    messages: int
    bytes: int
    events: int
    controls: int
    wall_seconds: float
    finish: Floats
    compute: Floats
    communicate: Floats
    wait: Floats
    link_messages: Ints
    link_bytes: Ints
    link_busy: Floats
    link_queue: Floats
    link_waited: Floats
    injection: Servers
    ejection: Servers
    memory: Servers
    message_times: MessageTimes | None = None
    compile_seconds: float = 0.0
    energy: Energy | None = None
    operations: Operations | None = None
    link_use: LinkUse | None = None
    network: Topology | None = None
    omitted: tuple[Omission, ...] = ()
    notes: MappingOf[str, int] = field(default_factory=dict)
    extrapolated: Extrapolated | None = None
    whole: str = ""
    ensemble: Ensemble | None = None
    assumed: Sequence[str] = ()
    program: Program | None = None
    node_of: Mapping | None = None
    parameters: Parameters | None = None

    def __repr__(self) -> str:
        how = "" if self.extrapolated is None else f", {self.extrapolated}"
        return (
            f"<Result of {self.ranks} ranks on {self.topology}, engine {self.engine}: "
            f"makespan {show_seconds(self.makespan)}{how}"
            f"{'' if self.ensemble is None else f', {self.ensemble}'}>"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each rank: finish, compute, communicate, wait, in seconds."""
        import pandas as pd

        names = ("finish", "compute", "communicate", "wait")
        frame = pd.DataFrame({name: getattr(self, name) for name in names})
        frame.index.name = "rank"
        return frame

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.finish)

    def to_dict(self) -> dict[str, Any]:
        """Return what ``simulate --json`` prints."""
        kinds = () if self.network is None else self.network.kinds
        counts = ("ranks", "messages", "bytes", "events", "wall_seconds", "compile_seconds")
        return {
            **{name: getattr(self, name) for name in ("engine", "makespan", *counts)},
            "links": {
                "max_busy": float(self.link_busy.max(initial=0.0)),
                "max_messages": int(self.link_messages.max(initial=0)),
                "max_bytes": int(self.link_bytes.max(initial=0)),
            },
            "energy": None if self.energy is None else self.energy.to_dict(),
            "omitted": [entry.to_dict() for entry in self.omitted],
            "notes": dict(self.notes),
            "extrapolated": None if self.extrapolated is None else asdict(self.extrapolated),
            "ensemble": None if self.ensemble is None else self.ensemble.to_dict(),
            "assumed": list(self.assumed),
            "algorithms": {} if self.program is None else self.program.chosen,
            "link_kinds": [kind.to_dict() for kind in kinds],
        }


def require_recorded(program: Program, result: Result) -> Operations:
    """Return the operations of a run of a program, which were asked for."""
    if result.operations is None or result.message_times is None:
        raise TraceError(
            f"{program.name}: no timeline: expected simulate(record=Record(operations=True))"
        )
    if len(result.operations.row) != int(program.iterations().sum()):
        raise TraceError(f"{program.name}: a timeline of another program")
    return result.operations
