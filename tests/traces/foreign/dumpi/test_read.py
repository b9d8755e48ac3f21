"""DUMPI's files, written here from docs/traceformat.dox and the widths of its iodefs.h."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from hopmap.simulator import lower
from hopmap.traces import Collective, Kind, TraceError, summarize, traffic_of
from hopmap.traces.foreign.dumpi.rank import END_OF_STREAM, LAYOUTS, NAMES, TYPE_SIZES
from hopmap.traces.sources import open_source

from ..read_back import collectives, pairs

MAGIC = b"\xff\xaa\xddDUMPI"
WORLD, SELF, INT = 2, 3, 9
WIDTHS = {"q": ">q", "i": ">i", "h": ">h", "b": ">b"}
FULL, BARE = 0x4F, 0x48  # statuses, both clocks and thread; wall clock and thread


def packed(layout, arguments):
    """Write arguments as their letters say; a status is (bytes, source, cancelled, tag)."""
    out = b""
    values = iter(arguments)
    for letter in layout:
        if letter in "?)":
            continue
        value = next(values)
        if value is None:
            continue
        if letter in WIDTHS:
            out += struct.pack(WIDTHS[letter], value)
        elif letter == "S":
            out += struct.pack(">i", len(value))
            for size, source, cancelled, tag in value:
                out += struct.pack(">iibbi", size, source, cancelled, 0, tag)
        elif letter == "C":
            out += struct.pack(">i", len(value)) + value
        elif letter == "D":
            out += struct.pack(">i", len(value))
            out += b"".join(struct.pack(">i", len(text)) + text for text in value)
        elif letter == "R":
            out += struct.pack(">i", len(value))
            for row in value:
                out += struct.pack(f">i{len(row)}i", len(row), *row)
        else:
            code = {"A": "i", "H": "h", "B": "b"}[letter]
            out += struct.pack(f">i{len(value)}{code}", len(value), *value)
    return out


class Rank:
    """Writes the calls of a rank, each a microsecond."""

    def __init__(self):
        self.body, self.time = struct.pack(">ii", 0, 1_296_777_956), 5
        self.call("Init", [b"./mpi"])

    def call(self, name, *arguments, mask=FULL):
        number = NAMES.index(f"MPI_{name}") if name in NAMES or f"MPI_{name}" in NAMES else name
        layout = LAYOUTS[number]
        if not mask & 3:
            layout = layout.replace("S", "")
        self.time += 2
        clock = struct.pack(">HiHi", 0, self.time * 1000, 0, self.time * 1000 + 1000)
        both = clock * (1 + bool(mask & 4))
        self.body += struct.pack(">HBH", number, mask, 0) + both + packed(layout, arguments)
        return self

    def data(self):
        self.call("Finalize")
        out = MAGIC + self.body + struct.pack(">H", END_OF_STREAM)
        header = len(out)
        out += (
            bytes((1, 0, 0))
            + struct.pack(">q", 0)
            + struct.pack(">H4sH2sii", 4, b"host", 2, b"me", 0, 0)
        )
        footer = len(out)
        out += struct.pack(">Q", 0xF007FEE7) + bytes(40)
        keyval = len(out)
        out += bytes(4)
        sizes = len(out)
        out += struct.pack(f">i{len(TYPE_SIZES) + 1}i", len(TYPE_SIZES) + 1, *TYPE_SIZES, 24)
        index = (sizes, 0, 0, header, 8, footer, keyval)
        return out + MAGIC + struct.pack(">7Q", *index)


def write(folder, ranks, meta=True):
    for number, rank in enumerate(ranks):
        (folder / f"run-{number:04}.bin").write_bytes(rank.data())
    if meta:
        text = f"hostname=h\nnumprocs={len(ranks)}\nstartime=1\nfileprefix=/x/run\nversion=1\n"
        (folder / "run.meta").write_text(text)
    return open_source(folder)


def read(folder, ranks):
    return write(folder, ranks).trace()


def test_messages_of_all_sorts(tmp_path):
    a, b = Rank(), Rank()
    a.call("Send", 10, INT, 1, 7, WORLD).call("Isend", 1, 28, 1, 8, WORLD, 5)
    a.call("Wait", 5, [(0, 0, 0, 0)])
    b.call("Recv", 99, INT, -1, -1, WORLD, [(40, 0, 0, 7)]).call("Irecv", 9, 28, 0, 8, WORLD, 4)
    b.call("Waitall", 1, [4], [(24, 0, 0, 8)])
    b.call("Sendrecv", 2, INT, 0, 1, 3, INT, 0, 2, WORLD, [], mask=BARE)
    a.call("Sendrecv", 3, INT, 1, 2, 2, INT, 1, 1, WORLD, [(8, 1, 0, 1)])
    trace = read(tmp_path, [a, b])
    assert pairs(trace) == [(0, 1, 3, 76), (1, 0, 1, 8)]
    assert trace.ignored == {}
    assert lower(trace).omitted == ()


def test_what_tests_and_waits_found_is_told(tmp_path):
    a, b = Rank(), Rank()
    for k in range(6):
        a.call("Isend", 1, INT, 1, k, WORLD, 10 + k)
        b.call("Irecv", 1, INT, 0, k, WORLD, 20 + k)
    a.call("Waitall", 6, [*range(10, 16)], [])
    b.call("Test", 20, 0, []).call("Test", 20, 1, [(4, 0, 0, 0)])
    b.call("Waitany", 2, [21, 22], 1, [(4, 0, 0, 2)])
    b.call("Testany", 2, [21, 22], 0, 1, [(4, 0, 0, 1)])
    b.call("Waitsome", 3, [23, 24, 25], 2, [2, 0], [(4, 0, 0, 5), (4, 0, 0, 3)])
    b.call("Testall", 1, [24], 0, []).call("Testall", 1, [24], 1, [(4, 0, 0, 4)])
    # Later ones find nothing: these requests would otherwise be taken for complete.
    b.call("Irecv", 1, INT, 0, 9, WORLD, 30).call("Test", 30, 0, [])
    b.call("Testany", 1, [30], 0, 0, []).call("Testall", 1, [30], 0, []).call("Wait", 30, [])
    a.call("Send", 1, INT, 1, 9, WORLD)
    trace = read(tmp_path, [a, b])
    found = np.flatnonzero(trace.kind == Kind.IRECV)
    calls = [trace.regions[trace.ref[at]] for at in np.flatnonzero(trace.kind == Kind.ENTER)]
    of = np.cumsum(trace.kind == Kind.ENTER)[found] - 1
    assert [calls[k] for k in of] == [
        *("MPI_Test", "MPI_Waitany", "MPI_Testany", "MPI_Waitsome", "MPI_Waitsome", "MPI_Testall"),
        "MPI_Wait",
    ]
    assert sorted(trace.records.tag[trace.ref[found]].tolist()) == [*range(6), 9]
    assert lower(trace).p2p_traffic().same_as(traffic_of(trace))


def test_a_cancelled_receive_and_a_null_partner_send_nothing(tmp_path):
    a, b = Rank(), Rank()
    a.call("Send", 10, INT, -3, 7, WORLD)
    b.call("Irecv", 9, INT, -1, -1, WORLD, 4).call("Cancel", 4).call("Wait", 4, [(0, -1, 1, -1)])
    trace = read(tmp_path, [a, b])
    assert pairs(trace) == []
    assert trace.ignored == {"cancelled receives, left out, in": 1}


def test_communicators_have_their_members(tmp_path):
    ranks = [Rank() for _ in range(4)]
    for rank, writer in enumerate(ranks):
        writer.call("Comm_split", WORLD, rank % 2, -rank, 4)
        writer.call("Comm_dup", 4, 5)
        writer.call(
            "Send" if rank < 2 else "Recv",
            5,
            INT,
            0 if rank < 2 else 1,
            0,
            5,
            *([] if rank < 2 else [[]]),
        )
        writer.call("Cart_create", WORLD, 2, [2, 2], [0, 0], 0, 6)
        writer.call("Cart_sub", 2, 6, [0, 1], 7)
        writer.call("Comm_group", WORLD, 3).call("Group_incl", 3, 2, [3, 1], 4)
        writer.call("Comm_create", WORLD, 4, 8 if rank in (1, 3) else 1)
        writer.call("Barrier", 7)
        if rank in (1, 3):
            writer.call("Bcast", 1, INT, 0, 8)
        writer.call("Barrier", SELF)
    trace = read(tmp_path, ranks)
    assert pairs(trace) == [(0, 2, 1, 20), (1, 3, 1, 20)]
    members = {tuple(each.tolist()) for each in trace.communicators}
    assert members == {(0, 1, 2, 3), (), (2, 0), (3, 1), (0, 1), (2, 3)}
    assert collectives(trace, Collective.BCAST) == [(3, 0, 4), (3, 8, 4)]
    assert lower(trace).traffic().messages.sum() > 0


def test_counts_below_0_are_named(tmp_path):
    ranks = [Rank().call("Allgatherv", 2, 1, INT, [-1, 3], [0, 0], INT, WORLD) for _ in range(2)]
    with pytest.raises(TraceError, match=r"call 1, MPI_Allgatherv: a count below 0: expected"):
        read(tmp_path, ranks)


def test_a_communicator_of_unknown_origin_is_named(tmp_path):
    ranks = [Rank().call("Comm_dup", 77, 78) for _ in range(2)]
    with pytest.raises(TraceError, match=r"run-0000.bin: communicator 77: its members are unk"):
        read(tmp_path, ranks)


def test_groups_without_some_keep_their_order(tmp_path):
    ranks = [Rank() for _ in range(3)]
    for rank, writer in enumerate(ranks):
        writer.call("Comm_group", WORLD, 3)
        writer.call("Group_incl", 3, 3, [2, 1, 0], 4).call("Group_excl", 4, 1, [1], 5)
        writer.call("Comm_create", WORLD, 5, 1 if rank == 1 else 8)
        if rank != 1:
            writer.call("Barrier", 8)
    trace = read(tmp_path, ranks)
    assert [each.tolist() for each in trace.communicators] == [[0, 1, 2], [], [2, 0]]
    assert trace.ignored == {}


def test_who_is_outside_of_a_group_may_make_another_communicator(tmp_path):
    ranks = [Rank() for _ in range(3)]
    for writer in ranks:
        writer.call("Comm_group", WORLD, 3).call("Group_incl", 3, 1, [0], 4)
        writer.call("Comm_create", WORLD, 4, 8).call("Barrier", 8)
    trace = read(tmp_path, ranks)
    assert [each.tolist() for each in trace.communicators] == [[0, 1, 2], [], [0], [1, 2]]


def test_a_grid_may_leave_ranks_out(tmp_path):
    ranks = [Rank() for _ in range(3)]
    for rank, writer in enumerate(ranks):
        writer.call("Cart_create", WORLD, 1, [2], [0], 0, 6 if rank < 2 else 1)
    assert read(tmp_path, ranks).communicators[2].tolist() == [0, 1]


def test_an_order_of_ranks_that_nothing_tells_is_told_to_be_taken(tmp_path):
    ranks = [Rank() for _ in range(2)]
    for writer in ranks:
        writer.call("Cart_create", WORLD, 1, [2], [0], 1, 6)
        writer.call("Graph_create", 2, WORLD, 2, [1, 2], [1, 0], 1, 7)
        writer.call("Graph_create", 2, WORLD, 2, [1, 2], [1, 0], 0, 8)
        writer.call("Comm_create", WORLD, 40, 9)  # of a group of unknown making
    trace = read(tmp_path, ranks)
    what = "unknown rank order of communicators (parent's order assumed), in"
    assert trace.ignored == {what: 3}


def test_one_sided_operations_are_told_to_be_left_out(tmp_path):
    rank = Rank().call("Put", 1, INT, 0, 0, 1, INT, 4).call("Get", 1, INT, 0, 0, 1, INT, 4)
    assert read(tmp_path, [rank]).ignored == {"one-sided operations, left out, in": 2}


def test_statuses_are_narrower_and_inits_longer_in_old_versions(tmp_path):
    """Before 0.6.3 statuses have no tag; before 0.6.2 the length of MPI_Init's texts twice."""
    ranks = [Rank(), Rank()]
    ranks[0].call("Send", 1, INT, 1, 7, WORLD).call("Barrier", WORLD)
    ranks[1].call("Recv", 9, INT, -1, 7, WORLD, [], mask=BARE).call("Barrier", WORLD)
    source = write(tmp_path, ranks)
    expected = source.trace()
    for number, version in ((1, (0, 6, 2)), (0, (0, 6, 1))):
        file = tmp_path / f"run-{number:04}.bin"
        data = bytearray(file.read_bytes())
        footer = int.from_bytes(data[-32:-24], "big")
        assert tuple(data[footer : footer + 3]) == (1, 0, 0)
        data[footer : footer + 3] = bytes(version)
        file.write_bytes(data)
        if version < (0, 6, 2):
            with pytest.raises(TraceError, match=r"cut|function"):
                source.trace()
        else:
            assert pairs(source.trace()) == pairs(expected)


def test_clocks_of_16_bits_go_on(tmp_path):
    """Seconds are counted modulo 65,536."""
    rank = Rank()
    for begin, end in ((65_534, 65_535), (65_535, 1), (2, 3)):
        clock = struct.pack(">HiHi", begin, 0, end, 0)
        number = NAMES.index("MPI_Barrier")
        rank.body += struct.pack(">HBH", number, BARE, 0) + clock + struct.pack(">h", WORLD)
    trace = read(tmp_path, [rank])
    barriers = trace.regions.index("MPI_Barrier")
    times = trace.time[(trace.ref == barriers) & (trace.kind <= Kind.LEAVE)]
    assert np.diff(times).tolist() == pytest.approx([1, 0, 2, 1, 1])


def test_calls_of_threads_stand_in_order_of_time(tmp_path):
    rank = Rank()
    for thread, at in ((0, 9), (1, 8)):
        clock = struct.pack(">HiHi", at, 0, at, 1)
        word = ("Barrier", "Comm_rank")[thread]
        numbers = struct.pack(">h", WORLD) + (struct.pack(">i", 0) if thread else b"")
        rank.body += struct.pack(">HBH", NAMES.index(f"MPI_{word}"), BARE, thread) + clock + numbers
    trace = read(tmp_path, [rank])
    names = [trace.regions[ref] for ref in trace.ref[trace.kind == Kind.ENTER]]
    assert names.index("MPI_Comm_rank") < names.index("MPI_Barrier")


def test_collectives_are_counted_as_score_p_does(tmp_path):
    ranks = [Rank() for _ in range(2)]
    for rank, writer in enumerate(ranks):
        root = rank == 0
        writer.call("Reduce", 3, INT, 4, 0, WORLD).call("Allreduce", 2, INT, 4, WORLD)
        writer.call("Gather", rank, 5, INT, 0, WORLD, *([5, INT] if root else [None, None]))
        writer.call(
            "Gatherv",
            rank,
            2,
            1 + rank,
            INT,
            0,
            WORLD,
            *([[1, 2], [0, 1]] if root else [None, None]),
            INT,
        )
        writer.call(
            "Scatterv",
            rank,
            2,
            INT,
            1 + rank,
            INT,
            0,
            WORLD,
            *([[1, 2], [0, 1]] if root else [None, None]),
        )
        writer.call("Allgatherv", 2, 1 + rank, INT, [1, 2], [0, 1], INT, WORLD)
        writer.call("Reduce_scatter", 2, [3, 5], INT, 4, WORLD)
        writer.call("Alltoallv", 2, [6, 7], [0, 6], INT, [6, 7], [0, 6], INT, WORLD)
    trace = read(tmp_path, ranks)
    assert collectives(trace, Collective.REDUCE) == [(0, 12, 24), (0, 12, 0)]
    assert collectives(trace, Collective.GATHER) == [(0, 20, 40), (0, 20, 0)]
    assert collectives(trace, Collective.GATHERV) == [(0, 4, 12), (0, 8, 0)]
    assert collectives(trace, Collective.SCATTERV) == [(0, 12, 4), (0, 0, 8)]
    assert collectives(trace, Collective.ALLGATHERV) == [(-1, 8, 12), (-1, 16, 12)]
    assert collectives(trace, Collective.REDUCE_SCATTER) == [(-1, 32, 24), (-1, 32, 40)]
    assert collectives(trace, Collective.ALLTOALLV) == [(-1, 52, 52)] * 2


def test_every_function_is_stepped_over(tmp_path):
    values = {"q": 1, "i": 0, "h": 2, "b": 1, "A": [0], "H": [9], "B": [1], "S": [], "C": b"text"}
    values |= {"D": [b"a", b"bc"], "R": [[1, 2, 3]]}
    read_well = 0
    for name, layout in zip(NAMES, LAYOUTS, strict=True):
        if not layout or "E" in layout:  # arrays of arrays of texts are not written here
            continue
        arguments = [values[letter] for letter in layout if letter not in "?)"]
        rank = Rank().call(name.removeprefix("MPI_"), *arguments).call("Barrier", WORLD)
        try:
            assert Collective.BARRIER in read(tmp_path, [rank]).records.operation, name
            read_well += 1
        except TraceError as error:  # arguments that make no sense, but were read
            assert ": function" not in str(error), name
            assert "cut" not in str(error), name
    assert read_well > 150


def test_a_cut_file_is_one_clear_line(tmp_path):
    source = write(tmp_path, [Rank().call("Barrier", WORLD)])
    file = tmp_path / "run-0000.bin"
    whole = file.read_bytes()
    for size in range(len(whole)):
        file.write_bytes(whole[:size])
        with pytest.raises(TraceError) as error:
            source.trace()
        assert "\n" not in str(error.value)


def test_missing_files_and_unknown_functions_are_named(tmp_path):
    write(tmp_path, [Rank(), Rank()])
    (tmp_path / "run-0001.bin").unlink()
    with pytest.raises(TraceError, match=r"run-0001.bin of 2 ranks: no such file"):
        open_source(tmp_path)
    (tmp_path / "run-0002.bin").write_bytes(Rank().data())
    (tmp_path / "run-0001.bin").write_bytes(Rank().data())
    with pytest.raises(TraceError, match=r"numprocs=2, and 3 files run-\*.bin in its folder"):
        open_source(tmp_path)
    rank = Rank()
    rank.body += struct.pack(">H", 900)
    (tmp_path / "x").mkdir()
    with pytest.raises(TraceError, match=r"call 1: function 900: expected one below 293"):
        read(tmp_path / "x", [rank])


def test_the_shared_trace_has_the_totals_of_its_calls(shared):
    folder = shared / "foreign" / "dumpi"
    if not folder.is_dir():
        pytest.skip("no ../shared/foreign")
    trace = open_source(folder).trace()
    summary = summarize(trace)
    # Each of the four ranks sends one MPI_INT around the ring: 16 bytes.
    assert (summary.messages, summary.bytes, summary.pairs) == (4, 16, 4)
    assert summary.collectives["BARRIER"] == summary.collectives["ALLREDUCE"] == 1
    # Every call is 00 XX 4f 00 00 behind the last one's arguments, from MPI_Init to MPI_Finalize.
    data = (folder / "testtrace-0000.bin").read_bytes()[16:0x179]
    assert data.count(b"\x4f\x00\x00\x00\x00\x00") == (trace.kind[: trace.offsets[1]] == 0).sum()
