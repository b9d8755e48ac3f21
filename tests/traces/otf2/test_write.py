"""Writing OTF2 archives: what is read back is what was written, and other tools agree."""

import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import otf2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hopmap.simulator import lower
from hopmap.traces import (
    Collective,
    Kind,
    Records,
    Role,
    Span,
    Spans,
    Trace,
    TraceError,
    read_trace,
    write_trace,
)
from hopmap.traces.nas.benchmarks import nas_trace
from hopmap.traces.otf2.definitions import Location, _shared_cores
from hopmap.traces.otf2.definitions import Records as Definitions
from hopmap.traces.otf2.totals import read_summary
from hopmap.traces.summary import Doubt
from hopmap.traces.trace import NO_OPERATION, RECORD_TYPES
from support import about
from support.slow import examples

SHIPPED = ["edge.X.8", "is.S.16", "lu.S.4", "mg.S.16"]


def test_ranks_that_share_cores_are_known_by_the_system_tree(tmp_path):
    """Two hosts of 2 and 4 cores: the first is the fuller one, with 3 ranks to 2 cores."""
    trace = nas_trace("lu.S.4", steps=1)
    for name, nodes, cores, expected in (
        ("fuller", [0, 0, 0, 1], [2, 4], (3, 2)),
        ("enough", [0, 0, 1, 1], [2, 4], None),
        ("alone", [1, 1, 1, 1], [2, 3], (4, 3)),
        ("unknown", [0, 0, 0, 0], None, None),
    ):
        cores = None if cores is None else np.array(cores)
        write_trace(trace, tmp_path / name, node_of=np.array(nodes), cores=cores)
        assert read_trace(tmp_path / name).shared_cores == expected, name
        assert read_summary(tmp_path / name).shared_cores == expected, name
        program = lower(read_trace(tmp_path / name))
        said = [each for each in program.omitted if isinstance(each, Doubt)]
        assert [each.count for each in said] == ([expected[0]] if expected else []), name
        assert all(0.5 < each.share <= 1 for each in said), name


def test_cores_are_read_as_other_tools_may_write_them():
    """As numbers or text, above the node of a process; a tree that is a ring has no end."""
    records = Definitions(
        strings={0: "SCOREP::cores", 1: "2", 2: "cores", 3: "many"},
        locations={k: Location(k, 1, 0, k) for k in range(3)},
        processes={0: 7, 1: 7, 2: 7},
        nodes={7: 6, 6: 5, 5: 7},
    )
    for properties, expected in (
        ([(6, 0, 11, 1)], (3, 2)),  # text
        ([(6, 2, 3, 2)], (3, 2)),  # a number
        ([(6, 2, 3, 3)], None),  # enough
        ([(6, 1, 3, 2)], None),  # of something else
        ([(6, 2, 11, 3), (6, 2, 8, 2), (6, 2, 4, 0)], None),  # no numbers
        ([(4, 2, 3, 1)], None),  # of another host
    ):
        records.properties = properties
        masters = np.arange(3, dtype=np.uint64)
        assert _shared_cores(records, masters) == expected, properties


def assert_same(one: Trace, other: Trace) -> None:
    for name in ("offsets", "kind", "time", "ref"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    for name in Records._fields:
        assert np.array_equal(getattr(one.records, name), getattr(other.records, name)), name
    assert one.regions == other.regions
    assert np.array_equal(one.roles, other.roles)
    for mine, theirs in zip(one.spans, other.spans, strict=True):
        assert np.array_equal(mine, theirs)
    assert [c.tolist() for c in one.communicators] == [c.tolist() for c in other.communicators]
    assert one.resolution == other.resolution


def event_files(folder):
    return {file.name: file.read_bytes() for file in folder.glob("traces/*.evt")}


def test_times_that_are_not_the_programs_and_roles_survive_writing(data, tmp_path):
    trace = read_trace(data / "lu.S.4")
    regions = (*trace.regions, "MPI_my_solver", "mpi_recv_", "PMPI_File_open", "flush")
    roles = [Role.USER, Role.CALL, Role.FILE, Role.TOOL]
    spans = Spans(
        rank=np.array([0, 0, 2], dtype=np.int32),
        begin=np.array([0.125, 0.25, 0.125]),
        end=np.array([0.1875, 0.3125, 0.1875]),
        kind=np.array([Span.FLUSH, Span.OFF, Span.OFF], dtype=np.uint8),
    )
    noted = replace(
        trace,
        regions=regions,
        roles=np.append(trace.roles, roles).astype(np.uint8),
        spans=spans,
        resolution=2.0**40,
        time=np.rint(trace.time * 2**40) / 2**40,
    )
    write_trace(noted, tmp_path / "out")
    again = read_trace(tmp_path / "out")
    assert_same(noted, again)
    assert again.ignored == {"BufferFlush": 1, "MeasurementOnOff": 4}


@pytest.mark.parametrize("name", SHIPPED)
def test_recorded_programs_survive_writing_byte_for_byte(data, tmp_path, name):
    recorded = read_trace(data / name)
    write_trace(recorded, tmp_path / "once.otf2")
    once = read_trace(tmp_path / "once.otf2")
    assert_same(recorded, once)
    assert (once.name, once.ignored) == ("once", {})
    write_trace(once, tmp_path / "twice")
    assert event_files(tmp_path / "twice") == event_files(tmp_path / "once.otf2")


def test_the_archive_has_the_usual_files(data, tmp_path):
    write_trace(read_trace(data / "lu.S.4"), tmp_path / "out")
    files = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    locations = {f"out/traces/{rank}.{kind}" for rank in range(4) for kind in ("def", "evt")}
    assert files == {"out/traces.otf2", "out/traces.def", *locations}


def test_the_python_reader_understands_it(data, tmp_path):
    trace = read_trace(data / "lu.S.4")
    write_trace(trace, tmp_path / "out", node_of=np.array([0, 0, 7, 7]))
    with otf2.reader.open(str(tmp_path / "out" / "traces.otf2")) as reader:
        kinds = [type(event).__name__ for _, event in reader.events]
        names = [comm.name for comm in reader.definitions.comms]
        groups = [place.group for place in reader.definitions.locations]
        roles = {region.name: str(region.region_role) for region in reader.definitions.regions}
    assert len(kinds) == trace.events
    assert kinds.count("MpiSend") == 4520
    assert sorted(names) == ["MPI_COMM_SELF", "MPI_COMM_WORLD"]
    assert [group.name for group in groups] == [f"MPI Rank {rank}" for rank in range(4)]
    assert [group.system_tree_parent.name for group in groups] == [
        *("node 0", "node 0", "node 7", "node 7")
    ]
    assert roles["MPI_Send"].endswith("POINT2POINT")
    assert roles["MPI_Allreduce"].endswith("COLL_ALL2ALL")


@pytest.mark.skipif(not shutil.which("otf2-print"), reason="no otf2-print on this machine")
def test_otf2_print_shows_the_same_events(data, tmp_path):
    def printed(anchor):
        text = subprocess.run(
            ["otf2-print", str(anchor)], check=True, capture_output=True, text=True
        ).stdout
        kept = [
            re.sub(r"<\d+>", "", line)  # communicators are numbered differently
            for line in text.splitlines()
            if re.match(r"[A-Z_]+ +\d+ ", line) and not re.match(r"PROGRAM|COMM_", line)
        ]
        return sorted(re.sub(r"^(\S+ +\d+) +\d+", r"\1", line) for line in kept)

    write_trace(read_trace(data / "edge.X.8"), tmp_path / "out")
    assert printed(tmp_path / "out" / "traces.otf2") == printed(data / "edge.X.8" / "traces.otf2")


REGIONS = ("main", "MPI_Send", "")


@st.composite
def small_traces(draw):
    """Any program that makes sense to OTF2: matched MPI calls, partners inside communicators."""
    ranks = draw(st.integers(1, 4))
    groups = draw(st.lists(st.permutations(range(ranks)), max_size=3))
    cuts = [draw(st.integers(0, ranks)) for _ in groups]
    communicators = [np.arange(ranks, dtype=np.int32)] + [
        np.array(group[:cut], dtype=np.int32) for group, cut in zip(groups, cuts, strict=True)
    ]
    big = st.integers(0, 2**63 - 1)
    rows, records, offsets = [], [], [0]
    for rank in range(ranks):
        tick = draw(st.integers(-100, 100))
        open_calls = []
        for _ in range(draw(st.integers(0, 12))):
            tick += draw(st.sampled_from([0, 1, 1000, 10**12]))
            kind = draw(st.sampled_from([k for k in Kind if not k.name.startswith("RMA")]))
            if kind == Kind.ENTER:
                open_calls.append(draw(st.integers(0, len(REGIONS) - 1)))
                rows.append((kind, tick, open_calls[-1]))
                continue
            if kind == Kind.LEAVE:
                if open_calls:
                    rows.append((kind, tick, open_calls.pop()))
                continue
            own = [k for k, each in enumerate(communicators) if rank in each or not len(each)]
            comm = draw(st.sampled_from(own))
            members = communicators[comm].tolist() or [rank]
            record = dict.fromkeys(RECORD_TYPES, -1) | {"operation": NO_OPERATION}
            if kind in (Kind.SEND, Kind.ISEND, Kind.RECV, Kind.IRECV, Kind.PROBE):
                record |= {"comm": comm, "peer": draw(st.sampled_from(members))}
                record |= {"tag": draw(st.integers(0, 2**31 - 1)), "size": draw(big)}
            if kind == Kind.PROBE:
                record["size"] = 0
            if kind in (Kind.MRECV, Kind.IMRECV):
                record["size"] = draw(big)
            if kind == Kind.IMRECV_REQUEST:
                record["received"] = draw(big)
            if kind in (Kind.COLLECTIVE_END, Kind.COLLECTIVE_COMPLETE):
                record |= {"comm": comm, "peer": draw(st.sampled_from([-1, rank, *members]))}
                record |= {"operation": draw(st.sampled_from(list(Collective)))}
                record |= {"size": draw(big), "received": draw(big)}
            if kind not in (Kind.SEND, Kind.RECV, Kind.COLLECTIVE_BEGIN, Kind.COLLECTIVE_END):
                record |= {"request": draw(st.integers(-1, 2**63 - 1))}
            rows.append((kind, tick, len(records)))
            records.append(record)
        rows += [(Kind.LEAVE, tick, region) for region in reversed(open_calls)]
        offsets.append(len(rows))
    resolution = draw(st.sampled_from([1.0, 1000.0, 1e9, 2500033644.0]))
    kinds, ticks, refs = zip(*rows, strict=True) if rows else ((), (), ())
    return Trace(
        name="drawn",
        offsets=np.array(offsets, dtype=np.int64),
        kind=np.array(kinds, dtype=np.uint8),
        time=np.array(ticks, dtype=np.float64) / resolution,
        ref=np.array(refs, dtype=np.int32),
        records=Records(
            **{
                name: np.array([record[name] for record in records], dtype=kind)
                for name, kind in RECORD_TYPES.items()
            }
        ),
        regions=REGIONS,
        communicators=tuple(communicators),
        resolution=resolution,
    )


# One-sided records, which need windows, are those of test_one_sided.py.
@settings(examples(60), suppress_health_check=[HealthCheck.too_slow])
@given(trace=small_traces())
def test_any_program_is_read_back_as_written(trace, tmp_path_factory):
    folder = tmp_path_factory.mktemp("drawn") / "out"
    write_trace(trace, folder)
    once = read_trace(folder)
    assert_same(trace, once)
    first = event_files(folder)
    write_trace(once, folder)
    assert event_files(folder) == first


def one_message(**changes) -> Trace:
    """Rank 0 sends 8 bytes to rank 1; changes replace fields of the trace or of its records."""
    values = {"peer": 1, "comm": 0, "tag": 3, "operation": 255, "size": 8, "received": -1}
    records = Records(
        **{
            name: np.array([changes.pop(name, values.get(name, -1))], dtype=kind)
            for name, kind in RECORD_TYPES.items()
        }
    )
    trace = Trace(
        name="one message",
        offsets=np.array([0, 3, 3]),
        kind=np.array([Kind.ENTER, Kind.SEND, Kind.LEAVE], dtype=np.uint8),
        time=np.array([0.0, 1e-9, 2e-9]),
        ref=np.array([0, 0, 0], dtype=np.int32),
        records=records,
        regions=("MPI_Send",),
        communicators=(np.array([0, 1], dtype=np.int32), np.array([0], dtype=np.int32)),
    )
    return replace(trace, **changes)


def test_an_inconsistent_trace_is_not_written(tmp_path):
    for changes, complaint in [
        ({"peer": 2}, "rank 0, event 2: partner 2 is not in the communicator"),
        ({"comm": 1}, "rank 0, event 2: partner 1 is not in the communicator"),
        ({"comm": 5}, "rank 0, event 2: communicator 5 is not in the trace"),
        ({"size": -1}, "rank 0, event 2: a size of -1 bytes"),
        ({"time": np.array([0.0, 2e-9, 1e-9])}, "rank 0, event 3: time runs backwards to tick 1"),
        ({"time": np.array([0.0, np.nan, 1.0])}, "times from nan to nan s"),
        ({"ref": np.array([1, 0, 0])}, "rank 0, event 1: region 1 is not in the trace"),
        ({"ref": np.array([0, 9, 0])}, "rank 0, event 2: record 9 is not in the trace"),
        ({"kind": np.array([0, 99, 1])}, "rank 0, event 2: kind 99 is not known"),
        ({"offsets": np.array([0, 3, 2])}, "columns and offsets of unequal length"),
        ({"communicators": (np.array([0, 2]),)}, "communicator 0 has members outside 0..1"),
        ({"resolution": 0.5}, "resolution 0.5, expected whole ticks per second"),
    ]:
        with about(changes, complaint):
            with pytest.raises(TraceError, match=re.escape(complaint)):
                write_trace(one_message(**changes), tmp_path / "out")
            assert list(tmp_path.iterdir()) == []


def test_an_archive_is_replaced_and_nothing_else_is(tmp_path):
    out = tmp_path / "out"
    write_trace(one_message(), out)
    write_trace(one_message(size=9), out)
    assert read_trace(out).records.size.tolist() == [9]

    (out / "thesis.tex").write_text("years of work")
    with pytest.raises(TraceError, match=r"out: not replaced, thesis\.tex in it"):
        write_trace(one_message(), out)
    assert (out / "thesis.tex").read_text() == "years of work"
    with pytest.raises(TraceError, match="a file, expected the place of an archive folder"):
        write_trace(one_message(), out / "thesis.tex")
    with pytest.raises(TraceError, match="not writable"):
        write_trace(one_message(), tmp_path / "absent" / "out")


def test_interruption_leaves_what_was_there(tmp_path):
    def interrupt(_done, _total):
        raise KeyboardInterrupt

    out = tmp_path / "out"
    write_trace(one_message(), out)
    with pytest.raises(KeyboardInterrupt):
        write_trace(one_message(size=9), out, progress=interrupt)
    assert list(tmp_path.iterdir()) == [out]
    assert read_trace(out).records.size.tolist() == [8]
