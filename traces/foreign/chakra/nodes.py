"""Read the nodes of a rank: messages of protobuf, each with its length before it, or JSON.

The first message is GlobalMetadata, all others are a Node. The JSON is
``{"workload_graph": [{"Id": 1, "NodeType": 4, "data_deps": [0], "runtime": 5, ...}, ...]}``.

Source: mlcommons/chakra, schema/protobuf/et_def.proto for numbers of fields and enumerations,
src/third_party/utils/protolib.py for the lengths, src/feeder/json_node.cpp for the JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from hopmap.errors import needs
from hopmap.traces.foreign.text import read_whole
from hopmap.traces.trace import Collective, TraceError


class NodeType(IntEnum):
    """What a node does."""

    INVALID = 0
    METADATA = 1
    MEM_LOAD = 2
    MEM_STORE = 3
    COMP = 4
    SEND = 5
    RECV = 6
    COLLECTIVE = 7


COMMUNICATION = (NodeType.SEND, NodeType.RECV, NodeType.COLLECTIVE)
OPERATIONS = (
    *(Collective.ALLREDUCE, Collective.REDUCE, Collective.ALLGATHER, Collective.GATHER),
    *(Collective.SCATTER, Collective.BCAST, Collective.ALLTOALL, Collective.REDUCE_SCATTER_BLOCK),
    *(Collective.REDUCE_SCATTER_BLOCK, Collective.BARRIER),
)
"""Operations by their number in the attribute comm_type."""
MOST = 2**53  # bytes, microseconds, operations
_PER_BYTE = 20  # bytes of memory that a byte of a file takes


class Node(NamedTuple):
    """A node of a rank."""

    number: int
    type: NodeType
    seconds: float
    data: tuple[int, ...]  # nodes that it waits for
    control: tuple[int, ...]
    on_cpu: bool
    values: Mapping[str, Any]  # attributes


def read_nodes(file: Path) -> list[Node]:
    """Read a file; numbers of nodes are all different, and what is waited for is in it."""
    data = read_whole(file, _PER_BYTE)
    nodes = list(_of_json(file, data) if is_json(data) else _of_protobuf(file, data))
    known: set[int] = set()
    for node in nodes:
        if node.number in known:
            raise TraceError(f"{file}: node {node.number} stands there twice: expected once")
        known.add(node.number)
    for node in nodes:
        for other in node.data:
            if other not in known:
                raise TraceError(
                    f"{file}: node {node.number} waits for node {other}, which is not there: "
                    "expected the whole trace"
                )
    if not nodes:
        raise TraceError(f"{file}: no nodes: expected a Chakra execution trace")
    return nodes


def is_json(start: bytes) -> bool:
    """Whether a file that begins like this is the JSON form."""
    return start.lstrip()[:1] == b"{" and b'"workload_graph"' in start[:200]


def is_protobuf(start: bytes) -> bool:
    """Whether a file that begins like this has metadata and a node, each with its length."""
    size, at = _length(start, 0)
    behind, first = _length(start, at + size) if at >= 0 else (0, -1)
    metadata, node = start[at : at + size], start[first : first + behind]
    version = metadata[:1] != b"\x0a" or (len(metadata) > 1 and metadata[1] <= size - 2)
    begins = metadata[:1] in (b"", b"\x0a", b"\x12")  # nothing, the version, or an attribute
    return first >= 0 and begins and version and node[:1] in (b"\x08", b"\x12", b"\x18")


def _length(data: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins there, and where it ends; -1 if it does not."""
    number = 0
    for shift in range(5):
        if at + shift >= len(data):
            return 0, -1
        byte = data[at + shift]
        number |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return number, at + shift + 1
    return 0, -1


@cache
def _messages() -> tuple[Any, Any]:
    """Classes of the messages GlobalMetadata and Node, with the fields that are read."""
    with needs("chakra", "reading a Chakra execution trace"):
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="hopmap/chakra.proto", package="hopmap.chakra", syntax="proto3"
    )
    for message, fields in _FIELDS.items():
        described = file.message_type.add(name=message)
        for name, (number, kind) in fields.items():
            repeated = kind.endswith("s")
            word = kind.removesuffix("s") if repeated else kind
            added = described.field.add(name=name, number=number)
            added.label = field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL
            if word == "Attribute":
                added.type, added.type_name = field.TYPE_MESSAGE, ".hopmap.chakra.Attribute"
            else:
                added.type = getattr(field, f"TYPE_{word.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = message_factory.GetMessages([file], pool)
    return found["hopmap.chakra.GlobalMetadata"], found["hopmap.chakra.Node"]


_VALUES = {
    "double": 3, "float": 5, "int32": 7, "int64": 9, "uint32": 11, "uint64": 13, "sint32": 15,
    "sint64": 17, "fixed32": 19, "fixed64": 21, "sfixed32": 23, "sfixed64": 25, "bool": 27,
    "string": 29,
}  # fmt: skip
_READ = {
    *("is_cpu_op", "num_ops", "tensor_size", "pg_name", "root"),
    *("comm_type", "comm_size", "comm_src", "comm_dst", "comm_tag"),
}
_FIELDS: dict[str, dict[str, tuple[int, str]]] = {
    "Attribute": {
        "name": (1, "string"),
        **{f"{kind}_val": (number, kind) for kind, number in _VALUES.items()},
    },
    "GlobalMetadata": {"version": (1, "string"), "attr": (2, "Attributes")},
    "Node": {
        "id": (1, "uint64"),
        "type": (3, "int32"),
        "ctrl_deps": (4, "uint64s"),
        "data_deps": (5, "uint64s"),
        "duration_micros": (7, "uint64"),
        "attr": (10, "Attributes"),
    },
}


def _of_protobuf(file: Path, data: bytes) -> Iterator[Node]:
    from google.protobuf.message import DecodeError

    metadata, node = _messages()
    at, number = 0, 0
    while at < len(data):
        size, first = _length(data, at)
        if first < 0 or first + size > len(data):
            raise TraceError(
                f"{file}: message {number} at byte {at} ends behind the file: it is cut"
            )
        try:
            message = (node if number else metadata).FromString(data[first : first + size])
        except DecodeError:
            raise TraceError(
                f"{file}: message {number} at byte {at}: expected a message of Chakra's schema"
            ) from None
        if number:
            values = {a.name: _value(a) for a in message.attr if a.name in _READ}
            yield _node(
                f"{file}: message {number} at byte {at}",
                message.id,
                message.type,
                message.duration_micros,
                (tuple(message.data_deps), tuple(message.ctrl_deps)),
                values,
            )
        at, number = first + size, number + 1


def _value(attribute: Any) -> Any:
    """Return the number or text of an attribute; 0 of a list and of what is 0."""
    known = [value for field, value in attribute.ListFields() if field.name != "name"]
    return known[0] if known else 0


def _of_json(file: Path, data: bytes) -> Iterator[Node]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        line = f"line {error.lineno}: " if isinstance(error, json.JSONDecodeError) else ""
        raise TraceError(f"{file}: {line}expected a whole Chakra trace in JSON") from None
    listed = document.get("workload_graph")
    if not isinstance(listed, list):
        raise TraceError(f"{file}: workload_graph: expected a list of nodes")
    for place, entry in enumerate(listed):
        where = f"{file}: node {place} of workload_graph"
        if not isinstance(entry, dict):
            raise TraceError(f"{where} is {str(entry)[:40]}: expected an object")
        deps = tuple(
            tuple(entry.get(key) or ()) if isinstance(entry.get(key, []), list) else (None,)
            for key in ("data_deps", "ctrlDeps")
        )
        if any(type(each) is not int for of in deps for each in of):
            raise TraceError(f"{where}: data_deps: expected a list of numbers of nodes")
        numbers = (entry.get("Id"), entry.get("NodeType"), entry.get("runtime", 0))
        yield _node(where, *numbers, deps, entry)


def _node(
    where: str,
    number: Any,
    kind: Any,
    micros: Any,
    deps: tuple[tuple[int, ...], ...],
    values: Mapping[str, Any],
) -> Node:
    if type(number) is not int or number < 0:
        raise TraceError(f"{where}: id {number!r}: expected a whole number")
    if type(kind) is not int or not 0 <= kind <= NodeType.COLLECTIVE:
        raise TraceError(f"{where}: type {kind!r} of node {number}: expected 0 to 7")
    if type(micros) not in (int, float) or not 0 <= micros <= MOST:
        raise TraceError(f"{where}: duration {micros!r} of node {number}: expected microseconds")
    data, control = (tuple(dict.fromkeys(each)) for each in deps)
    on_cpu = bool(values.get("is_cpu_op", False))
    return Node(number, NodeType(kind), micros * 1e-6, data, control, on_cpu, values)
