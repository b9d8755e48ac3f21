"""Traces to and from Pipit, the trace analysis library of the University of Maryland.

Pipit keeps a trace as one frame of events and one of definitions, named as in OTF2. Its own reader
leaves the partner of a message as the rank in the communicator, and its analyses take that for a
process. `to_pipit` writes world ranks, and all messages in the world, so that Pipit's matrix is
right for programs with communicators of their own. `from_pipit` translates by the definitions; a
frame without them has world ranks.

Source: hpcgroup/pipit, pipit/trace.py and pipit/readers/otf2_reader.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hopmap.arrays import Ints, Ints32
from hopmap.errors import MissingExtraError
from hopmap.traces.otf2.read import read_trace
from hopmap.traces.trace import (
    NO_OPERATION,
    RECORD_TYPES,
    Collective,
    Kind,
    Records,
    Trace,
    TraceError,
)

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

TIME, TYPE, NAME, THREAD, PROCESS, ATTRIBUTES = (
    *("Timestamp (ns)", "Event Type", "Name"),
    *("Thread", "Process", "Attributes"),
)
ENTER, LEAVE, INSTANT = "Enter", "Leave", "Instant"
NAMES = {
    Kind.SEND: "MpiSend",
    Kind.ISEND: "MpiIsend",
    Kind.ISEND_COMPLETE: "MpiIsendComplete",
    Kind.RECV: "MpiRecv",
    Kind.IRECV_REQUEST: "MpiIrecvRequest",
    Kind.IRECV: "MpiIrecv",
    Kind.REQUEST_TEST: "MpiRequestTest",
    Kind.REQUEST_CANCELLED: "MpiRequestCancelled",
    Kind.COLLECTIVE_BEGIN: "MpiCollectiveBegin",
    Kind.COLLECTIVE_END: "MpiCollectiveEnd",
    Kind.COLLECTIVE_REQUEST: "NonBlockingCollectiveRequest",
    Kind.COLLECTIVE_COMPLETE: "NonBlockingCollectiveComplete",
}
KINDS = {name: kind for kind, name in NAMES.items()}
PARTNER = {
    Kind.SEND: "receiver",
    Kind.ISEND: "receiver",
    Kind.RECV: "sender",
    Kind.IRECV: "sender",
}
ENDED = (Kind.COLLECTIVE_END, Kind.COLLECTIVE_COMPLETE)
NO_ROOT = 2**32 - 1  # OTF2's undefined reference


def to_pipit(trace: Trace | str | Path) -> Any:
    """Return a trace as Pipit's.

    Parameters
    ----------
    trace : Trace, str or Path
        A trace, or an OTF2 archive.

    Returns
    -------
    pipit.trace.Trace
        Times are nanoseconds since the beginning. Partners are world ranks, and messages are in
        ``Comm 0``, the world. One-sided operations keep their names without attributes.

    Raises
    ------
    MissingExtraError
        Pipit is not installed.
    """
    try:
        import pipit
    except ModuleNotFoundError:
        raise MissingExtraError(
            "to_pipit requires pipit, which is in no extra: "
            "pip install git+https://github.com/hpcgroup/pipit"
        ) from None
    trace = trace if isinstance(trace, Trace) else read_trace(trace)
    return pipit.Trace(_definitions(trace), _events(trace))


def _events(trace: Trace) -> pd.DataFrame:
    import pandas as pd

    rank = trace.rank_of_event()
    bracket = trace.kind <= Kind.LEAVE
    names = np.empty(trace.events, dtype=object)
    names[bracket] = np.array(trace.regions, dtype=object)[trace.ref[bracket]]
    names[~bracket] = [NAMES.get(Kind(kind), Kind(kind).name) for kind in trace.kind[~bracket]]
    types = np.where(bracket, np.where(trace.kind == Kind.ENTER, ENTER, LEAVE), INSTANT)
    attributes = np.full(trace.events, None, dtype=object)
    columns = {name: column.tolist() for name, column in trace.records._asdict().items()}
    for event in np.flatnonzero(~bracket).tolist():
        row = int(trace.ref[event])
        attributes[event] = _attributes(
            Kind(trace.kind[event]), {name: column[row] for name, column in columns.items()}
        )
    frame = pd.DataFrame(
        {
            TIME: (trace.time - (trace.time.min() if trace.events else 0.0)) * 1e9,
            TYPE: types,
            NAME: names,
            THREAD: np.zeros(trace.events, np.int64) if trace.thread is None else trace.thread,
            PROCESS: rank,
            ATTRIBUTES: attributes,
        }
    )
    frame = frame.sort_values(TIME, kind="stable", ignore_index=True)
    return frame.astype(dict.fromkeys((TYPE, NAME, THREAD, PROCESS), "category"))


def _attributes(kind: Kind, record: Mapping[str, int]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if kind in PARTNER:
        found |= {PARTNER[kind]: record["peer"], "communicator": "Comm 0"}
        found |= {"msg_tag": record["tag"], "msg_length": record["size"]}
    if kind in ENDED:
        root = record["peer"]
        found |= {"collective_op": f"CollectiveOp.{Collective(record['operation']).name}"}
        found |= {"communicator": f"Comm {record['comm'] + 1}"}
        found |= {"root": NO_ROOT if root < 0 else root}
        found |= {"size_sent": record["size"], "size_received": record["received"]}
    if record["request"] >= 0:
        found["request_id"] = record["request"]
    return found


def _definitions(trace: Trace) -> pd.DataFrame:
    """Return the communicators and their groups: number 0 is the world, before the trace's own."""
    import pandas as pd

    members: list[Ints32] = [np.arange(trace.ranks, dtype=np.int32), *trace.communicators]
    rows: list[tuple[str, int, dict[str, Any]]] = []
    for rank in range(trace.ranks):
        rows.append(("Location", rank, {"group": f"LocationGroup {rank}"}))
    for number, ranks in enumerate(members):
        rows.append(("Comm", number, {"name": "", "group": f"Group {number}"}))
        kind = "COMM_GROUP" if len(ranks) else "COMM_SELF"
        group = {"name": "", "group_type": f"GroupType.{kind}", "paradigm": "Paradigm.MPI"}
        locations = tuple(f"Location {rank}" for rank in ranks.tolist())
        rows.append(("Group", number, group | {"members": locations}))
    return pd.DataFrame(rows, columns=["Definition Type", "ID", ATTRIBUTES])


class _Communicators(NamedTuple):
    """Members of communicators as world ranks, by the names that attributes have for them."""

    number: dict[str, int]
    members: list[Ints32]

    def world_rank(self, name: str, partner: int, rank: int, place: str) -> int:
        """Return the world rank of a partner in a communicator."""
        members = self.members[self.number[name]] if name in self.number else None
        if members is None:
            return partner
        if not len(members):  # MPI_COMM_SELF
            return rank
        if not 0 <= partner < len(members):
            raise TraceError(
                f"{place}: partner {partner} of {name}: expected 0..{len(members) - 1}"
            )
        return int(members[partner])


def from_pipit(trace: Any, name: str = "pipit") -> Trace:
    """Return a trace of Pipit's, or its frame of events, as a `Trace`.

    Parameters
    ----------
    trace : pipit.trace.Trace or pandas.DataFrame
        A frame alone has no communicators: partners are world ranks then.
    name : str
        What messages and reports call it.

    Returns
    -------
    Trace
        The events of the first thread of each process; others are counted in `ignored`, and so
        are switches of the recording, whose times count as the program's.

    Raises
    ------
    TraceError
        A frame without the columns of Pipit, or calls that are left without having been entered.
    """
    events = getattr(trace, "events", trace)
    definitions = getattr(trace, "definitions", None)
    missing = [
        key for key in (TIME, TYPE, NAME, PROCESS) if key not in getattr(events, "columns", ())
    ]
    if missing:
        raise TraceError(f"{name}: no column {missing[0]!r}: expected a frame of Pipit's events")
    processes = np.unique(np.asarray(events[PROCESS]).astype(np.int64))
    comms = _communicators(definitions, processes)
    rank = np.searchsorted(processes, np.asarray(events[PROCESS]).astype(np.int64))
    time = np.asarray(events[TIME], dtype=np.float64) * 1e-9
    ignored: Counter[str] = Counter()
    kept = np.ones(len(rank), dtype=np.bool_)
    if THREAD in events.columns:
        thread = np.asarray(events[THREAD]).astype(np.int64)
        first = np.full(len(processes), np.iinfo(np.int64).max)
        np.minimum.at(first, rank, thread)
        kept = thread == first[rank]
        if not kept.all():
            ignored["events of other threads"] = int((~kept).sum())
    order = np.lexsort((time, rank))
    order = order[kept[order]]
    return _trace(events, order, rank, time, comms, ignored, name)


def _trace(
    events: pd.DataFrame,
    order: Ints,
    rank: Ints,
    time: NDArray[np.float64],
    comms: _Communicators,
    ignored: Counter[str],
    name: str,
) -> Trace:
    types, names = (np.asarray(events[key].astype(str), dtype=object) for key in (TYPE, NAME))
    attributes = np.full(len(types), None, dtype=object)
    if ATTRIBUTES in events.columns:
        attributes = np.asarray(events[ATTRIBUTES], dtype=object)
    regions: dict[str, int] = {}
    rows: list[tuple[int, ...]] = []
    chosen: list[int] = []
    kinds: list[int] = []
    refs: list[int] = []
    depth = np.zeros(int(rank.max()) + 1 if len(rank) else 0, dtype=np.int64)
    for event in order.tolist():
        kind, label = types[event], names[event]
        if kind in (ENTER, LEAVE):
            depth[rank[event]] += 1 if kind == ENTER else -1
            if depth[rank[event]] < 0:
                at = f"process {rank[event]}, {time[event] * 1e9:.0f} ns"
                raise TraceError(f"{name}: {at}: {label} is left: expected it to be entered before")
            kinds.append(Kind.ENTER if kind == ENTER else Kind.LEAVE)
            refs.append(regions.setdefault(label, len(regions)))
        elif label in KINDS:
            place = f"{name}: process {rank[event]}, {label}"
            found = attributes[event] if isinstance(attributes[event], Mapping) else {}
            kinds.append(KINDS[label])
            refs.append(len(rows))
            rows.append(_record(KINDS[label], found, comms, int(rank[event]), place))
        else:
            ignored[label] += 1
            continue
        chosen.append(event)
    table = np.array(rows, dtype=np.int64).reshape(-1, len(RECORD_TYPES))
    columns = (table[:, k].astype(kind) for k, kind in enumerate(RECORD_TYPES.values()))
    of_rank = rank[chosen] if chosen else np.zeros(0, dtype=np.int64)
    return Trace(
        name=name,
        offsets=np.searchsorted(of_rank, np.arange(len(depth) + 1)).astype(np.int64),
        kind=np.array(kinds, dtype=np.uint8),
        time=time[chosen] - (time[chosen].min() if chosen else 0.0),
        ref=np.array(refs, dtype=np.int32),
        records=Records(*columns),
        regions=tuple(regions),
        communicators=tuple(comms.members),
        ignored=dict(ignored),
    )


def _record(
    kind: int, found: Mapping[str, Any], comms: _Communicators, rank: int, place: str
) -> tuple[int, ...]:
    """Return a row of `Records`: peer, comm, tag, operation, size, received, request."""
    peer = comm = tag = size = received = -1
    operation = NO_OPERATION
    request = int(found.get("request_id", -1))
    try:
        if kind in PARTNER:
            named = str(found.get("communicator", ""))
            comm = comms.number.get(named, 0)
            peer = comms.world_rank(named, int(found[PARTNER[Kind(kind)]]), rank, place)
            tag, size = int(found.get("msg_tag", 0)), int(found["msg_length"])
        elif kind in ENDED:
            named = str(found.get("communicator", ""))
            comm = comms.number.get(named, 0)
            operation = Collective[str(found["collective_op"]).rpartition(".")[2]]
            root = int(found.get("root", NO_ROOT))
            if root != NO_ROOT:
                peer = comms.world_rank(named, root, rank, place)
            size, received = int(found["size_sent"]), int(found["size_received"])
    except KeyError as error:
        raise TraceError(f"{place}: attribute {error}: expected what Pipit reads of OTF2") from None
    return peer, comm, tag, operation, size, received, request


def _communicators(definitions: Any, processes: Ints) -> _Communicators:
    """Return the communicators of the definitions; the world alone without any."""
    world = np.arange(len(processes), dtype=np.int32)
    if definitions is None:
        return _Communicators({}, [world])
    rows: dict[str, Any] = {
        f"{kind} {int(number)}": attributes
        for kind, number, attributes in zip(
            definitions["Definition Type"], definitions["ID"], definitions[ATTRIBUTES], strict=True
        )
        if kind in ("Comm", "Group", "Location") and number == number  # not NaN
    }
    rank_of = {process: rank for rank, process in enumerate(processes.tolist())}
    number: dict[str, int] = {}
    members: list[Ints32] = []
    for name, attributes in rows.items():
        if not name.startswith("Comm "):
            continue
        group = rows.get(str(attributes["group"]), {})
        if "MPI" not in str(group.get("paradigm", "")):
            continue
        of = [_process(rows.get(str(member))) for member in group.get("members", ())]
        number[name] = len(members)
        members.append(np.array([rank_of[p] for p in of if p in rank_of], dtype=np.int32))
    return _Communicators(number, members or [world])


def _process(location: Any) -> int:
    """Return the number of a location's process."""
    text = str((location or {}).get("group", "")).rpartition(" ")[2]
    return int(text) if text.isdecimal() else -1
