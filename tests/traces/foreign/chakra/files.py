"""Chakra's files as its tools write them, by protobuf; and a reader of bytes that is not ours."""

import struct
from collections import Counter

from hopmap.traces.foreign.chakra.nodes import _messages

COMP, SEND, RECV, COLL = 4, 5, 6, 7
ALL_REDUCE, REDUCE, ALL_GATHER, GATHER, SCATTER, BROADCAST, ALL_TO_ALL, REDUCE_SCATTER = range(8)
BARRIER = 9


def node(number, kind, micros=0, deps=(), control=(), **values):
    """Return a node; values are attributes, as Chakra's converters name them."""
    return {"number": number, "kind": kind, "micros": micros, "deps": deps} | {
        "control": control, "values": {"is_cpu_op": False, **values}
    }  # fmt: skip


def coll(number, operation, size, deps=(), **values):
    return node(number, COLL, 3, deps, comm_type=operation, comm_size=size, **values)


def encoded(ranks_node):
    """Return the bytes of a node's message."""
    _, message = _messages()
    made = message(id=ranks_node["number"], type=ranks_node["kind"])
    made.duration_micros = ranks_node["micros"]
    made.data_deps.extend(ranks_node["deps"])
    made.ctrl_deps.extend(ranks_node["control"])
    for name, value in ranks_node["values"].items():
        kind = (
            "bool" if isinstance(value, bool) else "string" if isinstance(value, str) else "int64"
        )
        made.attr.add(name=name, **{f"{kind}_val": value})
    return made.SerializeToString()


def with_length(message):
    size, head = len(message), b""
    while size > 0x7F:
        head, size = head + bytes((size & 0x7F | 0x80,)), size >> 7
    return head + bytes((size,)) + message


def file_of(nodes, version="1.0.0"):
    metadata, _ = _messages()
    parts = [metadata(version=version).SerializeToString(), *map(encoded, nodes)]
    return b"".join(map(with_length, parts))


def write(folder, *ranks, name="step"):
    """Write a file a rank; return the first."""
    folder.mkdir(exist_ok=True)
    for rank, nodes in enumerate(ranks):
        (folder / f"{name}.{rank}.et").write_bytes(file_of(nodes))
    return folder / f"{name}.0.et"


def counted(data):
    """Count nodes by type, microseconds and dependencies, from the bytes of a file alone."""
    types, sums, at, first = Counter(), Counter(), 0, True
    while at < len(data):
        size, at = _varint(data, at)
        message, at = data[at : at + size], at + size
        if first:
            first = False
            continue
        fields = list(_fields(message))
        types[next((value for key, value in fields if key == 3), 0)] += 1
        sums["micros"] += sum(value for key, value in fields if key == 7)
        sums["data"] += sum(len(list(_packed(value))) for key, value in fields if key == 5)
        sums["bytes"] += sum(_of_size(value) for key, value in fields if key == 10)
    return types, sums


def _of_size(attribute):
    fields = dict(_fields(attribute))
    return fields.get(9, 0) if fields[1] == b"comm_size" else 0


def _varint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        number, shift, at = number | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return number, at


def _packed(data):
    at = 0
    while at < len(data):
        number, at = _varint(data, at)
        yield number


def _fields(data):
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = _varint(data, at)
        elif wire == 2:
            size, at = _varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            width = {1: 8, 5: 4}[wire]
            (value,) = struct.unpack_from("<q" if width == 8 else "<i", data, at)
            at += width
        yield key >> 3, value
