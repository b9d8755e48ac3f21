"""Timelines as JSON: the published format, and what the slices and arrows say."""

from __future__ import annotations

import json
from collections import Counter, defaultdict

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from hopmap.simulator import Parameters, Record, lower, program_of, simulate
from hopmap.simulator.export import perfetto
from hopmap.simulator.export.perfetto import ViewerError, write_perfetto
from hopmap.topologies import mesh, topology_from_spec
from hopmap.traces import TraceError, nas_folded

# Duffy, Sinclair: Trace Event Format, Google, 2016
# (docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU): the JSON object
# format, and the fields of complete, flow, counter and metadata events. It is prose: this is the
# same as a schema.
NUMBER, WORD, WHOLE = {"type": "number"}, {"type": "string"}, {"type": "integer"}
NAME = {"type": ["integer", "string"]}
PLACE = {"name": WORD, "pid": WHOLE, "tid": WHOLE, "ts": {"type": "number", "minimum": 0}}


def event(phase, required=(), **columns):
    return {
        "type": "object",
        "properties": {"ph": {"const": phase}, **PLACE, "cat": WORD, **columns},
        "required": ["ph", *PLACE, *required],
        "additionalProperties": False,
    }


ARGS = {"type": "object"}
SCHEMA = {
    "type": "object",
    "required": ["traceEvents"],
    "properties": {
        "displayTimeUnit": {"enum": ["ms", "ns"]},
        "otherData": {"type": "object"},
        "traceEvents": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["ph"],
                "oneOf": [
                    event("X", ["dur"], dur={"type": "number", "minimum": 0}, args=ARGS),
                    event("s", ["id", "cat"], id=NAME),
                    event("f", ["id", "cat"], id=NAME, bp={"const": "e"}),
                    event(
                        *("C", ["args"]),
                        args={"type": "object", "additionalProperties": NUMBER, "minProperties": 1},
                    ),
                    event("M", ["args"], args={"type": "object", "minProperties": 1}),
                ],
            },
        },
    },
    "additionalProperties": False,
}
VALIDATOR = Draft202012Validator(SCHEMA)


def timeline(tmp_path, program, spec="mesh:4x4", engine="compiled", links=0, **parameters):
    """Result, and the events of its file, which obey the schema."""
    topology = topology_from_spec(spec)
    node_of = np.arange(program.ranks)
    result = simulate(
        *(program, topology, node_of),
        engine=engine,
        parameters=Parameters(**parameters),
        record=Record(operations=True, bins=links),
    )
    written = write_perfetto(tmp_path / "run.json", program, result, topology, node_of)
    document = json.loads((tmp_path / "run.json").read_text())
    assert next(VALIDATOR.iter_errors(document), None) is None
    assert written == len(document["traceEvents"])
    return result, document["traceEvents"]


def nanoseconds(us):
    assert abs(us * 1000 - round(us * 1000)) < 1e-3
    return round(us * 1000)


def threads(events):
    """Slices of each (pid, tid) as (begin, end, name, event), in file order."""
    slices = defaultdict(list)
    for e in events:
        if e["ph"] == "X":
            begin = nanoseconds(e["ts"])
            slices[e["pid"], e["tid"]].append((begin, begin + nanoseconds(e["dur"]), e["name"], e))
    return slices


@pytest.mark.parametrize("name", ["edge.X.8", "lu.S.8"])
def test_slices_nest_and_arrows_begin_and_end_in_them(lowered, tmp_path, name):
    recorded = name == "edge.X.8"
    program = lowered(name) if recorded else lower(nas_folded(name, steps=1))
    result, events = timeline(tmp_path, program, links=20, compute_scale=0.1)
    slices = threads(events)
    for of_thread in slices.values():
        stack = []
        for begin, end, *_ in sorted(of_thread, key=lambda s: (s[0], -s[1])):
            while stack and stack[-1] <= begin:
                stack.pop()
            assert not stack or end <= stack[-1]
            stack.append(end)
    last = max(end for of_thread in slices.values() for _, end, *_ in of_thread)
    assert last == round(result.makespan * 1e9)

    ends = defaultdict(dict)
    for e in events:
        if e["ph"] in "sf":
            assert e["ph"] not in ends[e["id"]]
            ends[e["id"]][e["ph"]] = e
    times = result.message_times
    assert 0 < len(ends) <= result.messages
    for number, pair in ends.items():
        begin, end = pair["s"], pair["f"]
        assert (begin["pid"], end["pid"]) == (times.source[number], times.target[number])
        assert begin["ts"] <= end["ts"]
    bounds = {key: {(b, e) for b, e, *_ in some} for key, some in slices.items()}
    starts = {key: {b for b, _ in some} for key, some in bounds.items()}
    for pair in ends.values():
        assert nanoseconds(pair["s"]["ts"]) in starts[pair["s"]["pid"], pair["s"]["tid"]]
    counted = Counter(e["ph"] for e in events)
    assert counted["C"] == result.link_use.busy.shape[1]
    assert counted["s"] == counted["f"]


def test_calls_and_what_they_wait_for_by_hand(tmp_path):
    # As in test_operations: at a byte a second, 3 s of computation, 1 s to send, 15 s on the way.
    lists = [[("compute", 3.0), ("send", 1, 10)], [("recv", 0, 10)]]
    program, topology = program_of("by hand", lists), mesh((2,)).with_links(bandwidth=1, latency=5)
    parameters = Parameters(
        overhead_send=1.0,
        overhead_recv=2.0,
        injection_bandwidth=1e300,
        injection_latency=0.0,
        ejection_bandwidth=1e300,
        ejection_latency=0.0,
    )
    result = simulate(
        program, topology, [0, 1], parameters=parameters, record=Record(operations=True)
    )
    write_perfetto(tmp_path / "run.json", program, result, topology, np.arange(2))
    events = json.loads((tmp_path / "run.json").read_text())["traceEvents"]
    shown = [(e["pid"], e["name"], e["ts"] / 1e6, e["dur"] / 1e6) for e in events if e["ph"] == "X"]
    assert shown == [
        (0, "compute", 0, 3),
        (0, "MPI_Send", 3, 1),
        (1, "MPI_Recv", 0, 21),
        (1, "waiting", 0, 19),
    ]
    assert next(e["args"] for e in events if e["name"] == "MPI_Send") == {
        "peer": 1,
        "bytes": 10,
        "tag": 0,
        "communicator": 0,
    }


def test_collectives_are_slices_with_their_messages_inside(tmp_path):
    program = lower(nas_folded("lu.S.4", steps=1))
    _, events = timeline(tmp_path, program)
    names = Counter(e["name"] for e in events if e.get("cat") == "collective")
    called = {f"MPI_{call}": 4 * count for call, count in NAMED.items()}
    assert {name: names[name] for name in called} == called
    inner = [e for e in events if e.get("cat") == "message" and e["ph"] == "X"]
    assert {e["name"] for e in inner} <= {"send", "recv", "isend", "irecv", "wait"}


# Collectives of LU, however many steps: mapping of their calls on all four ranks.
NAMED = {"Bcast": 10, "Barrier": 2}


def test_a_timeline_that_no_viewer_opens_is_refused_before_it_is_written(tmp_path, monkeypatch):
    program = program_of("idle", [[("send", 1, 1)], [("recv", 0, 1)]])
    monkeypatch.setattr(perfetto, "MOST", 3)
    with pytest.raises(ViewerError, match=r"run.json: \d events or more: expected at most 3"):
        timeline(tmp_path, program)
    assert list(tmp_path.iterdir()) == []


def test_operations_must_have_been_recorded(tmp_path):
    program = program_of("idle", [[("compute", 1.0)]])
    result = simulate(program, mesh((1,)), [0])
    with pytest.raises(TraceError, match=r"record=Record\(operations=True\)"):
        write_perfetto(tmp_path / "run.json", program, result, mesh((1,)), np.arange(1))
