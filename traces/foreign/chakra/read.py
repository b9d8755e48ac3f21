"""Chakra execution traces as calls: communication that is begun, and completed when it is needed.

A collective is a non-blocking one on the communicator of its process group; a send or receive is
MPI_Isend or MPI_Irecv, between the ranks and with the tag that its attributes say. `order.py` has
the order of a rank, what is completed when, and what stands in `Trace.ignored` for it.

A file ``comm_group.json`` in the folder lists the ranks of each process group (pg_name), as for
ASTRA-sim; else a group has all ranks whose files name the group. Without a name
all ranks take part. Bytes (comm_size) are what a rank puts in: the block of an all-gather, all
blocks of a reduce-scatter or an all-to-all.

Sources: mlcommons/chakra, schema/protobuf/et_def.proto, src/feeder/et_feeder_node.cpp for the
attributes; astra-sim, workload/Workload.cc, for what is sent, and its option
``comm-group-configuration``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints
from hopmap.traces.foreign.recognition import Recording
from hopmap.traces.foreign.trace_builder import Acts, Calls, Groups, acts_of, trace_of
from hopmap.traces.matching import Messages
from hopmap.traces.trace import NO_OPERATION, Collective, Kind, Trace, TraceError

from .nodes import COMMUNICATION, MOST, OPERATIONS, Node, NodeType, is_json, is_protobuf, read_nodes
from .order import Order, is_communication, order_of, uses_data

GROUPS = "comm_group.json"
MOST_OPERATIONS = 2**63
RATE = 4e14  # operations per second of a node that says how many, and not how long
FIRST, LAST, WAIT, SEND, RECEIVE = range(5)
_REGIONS = ("MPI_Init", "MPI_Finalize", "MPI_Wait", "MPI_Isend", "MPI_Irecv")
_DISTINCT = tuple(dict.fromkeys(OPERATIONS))
_NAMES = tuple(f"MPI_I{operation.name.lower()}" for operation in _DISTINCT)
_ROOTED = (Collective.BCAST, Collective.REDUCE, Collective.GATHER, Collective.SCATTER)
_IN_BLOCKS = (Collective.ALLTOALL, Collective.REDUCE_SCATTER_BLOCK, Collective.SCATTER)


class ChakraSource(Recording):
    """Files of Chakra execution traces, one a rank."""

    tool = "chakra"
    about = "Chakra execution traces, one file a rank"

    @staticmethod
    def matches(_: Path, start: bytes) -> bool:
        """Whether a file that begins like this has metadata and nodes."""
        return is_json(start) or is_protobuf(start)

    def files(self) -> list[Path]:
        """Files of the ranks, and the list of groups if there is one."""
        files = super().files()
        groups = files[0].with_name(GROUPS)
        return [*files, groups] if groups.is_file() else files

    def calls(self) -> Trace:
        """Read the files of all ranks."""
        return read_chakra(super().files(), self.name)


class _Act(NamedTuple):
    """A communication of a rank: its node, and the calls that begin and complete it."""

    rank: int
    node: Node
    group: int
    begin: int
    end: int


def read_chakra(files: list[Path], name: str) -> Trace:
    """Read the files of all ranks, in order."""
    listed = [read_nodes(file) for file in files]
    ranks = [
        [_timed(node, file) for node in nodes] for file, nodes in zip(files, listed, strict=True)
    ]
    rated = sum(
        node.seconds != was.seconds
        for nodes, before in zip(ranks, listed, strict=True)
        for node, was in zip(nodes, before, strict=True)
    )
    members, group_of = _communicators(files, ranks)
    acts: list[_Act] = []
    region: list[int] = []
    time: list[float] = []
    orders, offsets = [], [0]
    for rank, (file, nodes) in enumerate(zip(files, ranks, strict=True)):
        groups = [group_of.get(_group(node), -1) if _takes_part(node) else -1 for node in nodes]
        order = order_of(nodes, groups, file)
        begun: dict[int, int] = {}
        region.append(FIRST)
        time.append(0.0)
        for step in order.steps:
            node = nodes[step.node]
            call = len(region)
            if step.ends:
                acts.append(_Act(rank, node, groups[step.node], begun[step.node], call))
            begun.setdefault(step.node, call)
            region.append(WAIT if step.ends else _region(node, f"{file}: node {node.number}"))
            time.append(step.time)
        region.append(LAST)
        time.append(order.seconds)
        orders.append(order)
        offsets.append(len(region))
    begin = np.array(time)
    calls = Calls(np.array(offsets, dtype=np.int64), np.array(region), begin, begin.copy())
    sent = _messages(files, acts, len(files))
    collectives, unrooted = _collectives(files, acts, members, len(sent.call))
    return trace_of(
        name,
        calls,
        (*acts_of(sent), *collectives),
        (*_REGIONS, *_NAMES),
        members,
        ignored=_ignored(ranks, orders, unrooted, rated),
    )


def _timed(node: Node, file: Path) -> Node:
    """Return a computation whose operations are known with the time that they take."""
    operations = node.values.get("num_ops", 0)
    if node.type != NodeType.COMP or node.seconds:
        return node
    if type(operations) is not int or not 0 <= operations <= MOST_OPERATIONS:
        raise TraceError(
            f"{file}: num_ops of node {node.number}: expected at most {MOST_OPERATIONS}"
        )
    return node._replace(seconds=operations / RATE)


def _takes_part(node: Node) -> bool:
    return node.type == NodeType.COLLECTIVE and is_communication(node)


def _group(node: Node) -> str:
    return str(node.values.get("pg_name", ""))


def _communicators(files: list[Path], ranks: list[list[Node]]) -> tuple[list[Ints], dict[str, int]]:
    """Members of every communicator, and its number by the name of the group."""
    listed = _listed_groups(files[0].with_name(GROUPS), len(files))
    found: dict[str, list[int]] = {}
    for rank, nodes in enumerate(ranks):
        for name in {_group(node) for node in nodes if _takes_part(node)}:
            found.setdefault(name, []).append(rank)
    members, number = [np.arange(len(files))], {"": 0}
    for name in sorted(found.keys() - {""}):
        own = listed.get(name, found[name])
        if strange := sorted(set(found[name]) - set(own)):
            raise TraceError(
                f"{files[strange[0]]}: group {name!r}: {GROUPS} lists ranks {str(own)[:40]}: "
                f"expected rank {strange[0]} among them"
            )
        number[name] = len(members)
        members.append(np.array(own))
    return members, number


def _listed_groups(file: Path, ranks: int) -> dict[str, list[int]]:
    if not file.is_file():
        return {}
    try:
        document = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        document = None
    fine = isinstance(document, dict) and all(
        isinstance(of, list)
        and of
        and all(type(rank) is int and 0 <= rank < ranks for rank in of)
        and len(set(of)) == len(of)
        for of in document.values()
    )
    if not fine or document is None:
        raise TraceError(
            f'{file}: expected groups like {{"0": [0, 1]}}, of different ranks below {ranks}'
        )
    return {str(name): of for name, of in document.items()}


def _region(node: Node, where: str) -> int:
    if node.type != NodeType.COLLECTIVE:
        return SEND if node.type == NodeType.SEND else RECEIVE
    kind = _whole(node, "comm_type", where, len(OPERATIONS) - 1)
    return len(_REGIONS) + _DISTINCT.index(OPERATIONS[kind])


def _whole(node: Node, key: str, where: str, most: int, otherwise: int | None = None) -> int:
    value = node.values.get(key, otherwise)
    if type(value) is not int or not 0 <= value <= most:
        said = "nothing" if value is None else repr(value)[:40]
        raise TraceError(f"{where}: {key} is {said}: expected 0 to {most}")
    return value


def _messages(files: list[Path], acts: list[_Act], ranks: int) -> Messages:
    rows: list[tuple[int, ...]] = []
    for act in acts:
        if act.node.type == NodeType.COLLECTIVE:
            continue
        where = f"{files[act.rank]}: node {act.node.number}"
        sends = act.node.type == NodeType.SEND
        peer = _whole(act.node, "comm_dst" if sends else "comm_src", where, ranks - 1)
        tag = _whole(act.node, "comm_tag", where, 2**31 - 1, 0)
        size = _whole(act.node, "comm_size", where, MOST, act.node.values.get("tensor_size"))
        rows.append((act.begin, act.end, sends, peer, tag, 0, size))
    table = np.array(sorted(rows), dtype=np.int64).reshape(-1, 7).T
    return Messages(table[0], table[1], table[2] > 0, *table[3:])


def _collectives(
    files: list[Path], acts: list[_Act], members: list[Ints], requests: int
) -> tuple[list[Acts], int]:
    """Begins and ends of collectives, and how many have an assumed root."""
    parts: list[Acts] = []
    unrooted = 0
    of: dict[tuple[int, Collective], list[_Act]] = {}
    for act in acts:
        if act.node.type == NodeType.COLLECTIVE:
            operation = OPERATIONS[int(act.node.values["comm_type"])]
            of.setdefault((act.rank, operation), []).append(act)
    for (rank, operation), own in of.items():
        groups = Groups(members, rank, files[rank])
        comm = np.array([act.group for act in own])
        size = np.array([_size(act, operation, files[rank]) for act in own])
        part = size // groups.size[comm] if operation in _IN_BLOCKS else size
        roots = None
        if operation in _ROOTED:
            roots = np.array([_root(act, members, files[rank]) for act in own])
            unrooted += sum("root" not in act.node.values for act in own)
        ends = groups.collectives(
            np.array([act.end for act in own]),
            operation,
            comm,
            part,
            part,
            roots,
        )
        numbers = requests + 1 + np.arange(len(own))
        requests += len(own)
        begin = ends._replace(
            call=np.array([act.begin for act in own]),
            kind=np.full(len(own), Kind.COLLECTIVE_REQUEST),
            request=numbers,
            operation=np.full(len(own), NO_OPERATION),
            **dict.fromkeys(("peer", "comm", "size", "received"), np.full(len(own), -1)),
        )
        complete = np.full(len(own), Kind.COLLECTIVE_COMPLETE)
        parts += [begin, ends._replace(kind=complete, request=numbers)]
    return parts, unrooted


def _size(act: _Act, operation: Collective, file: Path) -> int:
    otherwise = 0 if operation == Collective.BARRIER else None
    return _whole(act.node, "comm_size", f"{file}: node {act.node.number}", MOST, otherwise)


def _root(act: _Act, members: list[Ints], file: Path) -> int:
    """Place of the root in the communicator: of the rank that the attribute root names."""
    where = f"{file}: node {act.node.number}"
    root = _whole(act.node, "root", where, 2**31 - 1, int(members[act.group][0]))
    places = np.flatnonzero(members[act.group] == root)
    if not places.size:
        raise TraceError(f"{where}: root {root}: expected a rank of its group")
    return int(places[0])


def _ignored(
    ranks: list[list[Node]], orders: list[Order], unrooted: int, rated: int
) -> dict[str, int]:
    nodes = [node for of_rank in ranks for node in of_rank]
    return {
        "communications of the CPU (is_cpu_op), which count as computation, in": sum(
            node.on_cpu and node.type in COMMUNICATION for node in nodes
        ),
        "computations of CPU and GPU that overlap, which a wait holds up together, in": sum(
            order.overlapping for order in orders
        ),
        "communications that wait for others and begin when the rank has nothing else to do, in": (
            sum(order.held_back for order in orders)
        ),
        f"computations known by num_ops, at {RATE:g} operations a second, in": rated,
        "collectives without a root (the first rank of the group is assumed), in": unrooted,
        "control dependencies (ctrl_deps), which order nothing, in": sum(
            len(node.control) for of_rank in ranks if uses_data(of_rank) for node in of_rank
        ),
    }
