"""GOAL's text as txt2bin.re reads it, and the binary as Parser.hpp lays it out."""

from __future__ import annotations

import re
import struct
from dataclasses import replace

import numpy as np
import pytest

from hopmap.traces import TraceError
from hopmap.traces.foreign.goal.read import COOKIE, USED_UP, read_goal
from hopmap.traces.schedule import Task
from hopmap.traces.sources import open_source
from support import about

TEXT = """// a schedule
num_ranks 2
/* of two
   ranks */
rank 0 {
l1: calc 100 cpu 2
l2: send 80000b to 1 tag 7 cpu 1 nic 1
l3:recv 10 b from -1 tag -1
l2 requires l1
l3 irequires l2
}

rank 1 {
send 10b to 0
l1: recv 80000b from 0 tag 7
}
"""


def read(folder, data):
    file = folder / "x.goal"
    file.write_bytes(data if isinstance(data, bytes) else data.encode())
    return read_goal(file)


def partner_of(schedule, k):
    """Partner of an operation as a binary has it; of a CALC, which has none, it is 0."""
    return 0 if schedule.kind[k] == Task.CALC else schedule.peer[k] % 2**32


def binary(schedule, cookie=COOKIE, more=0):
    """Write a schedule as LogGOPSim's Graph::serialize_mmap does."""
    parts = []
    for rank in range(schedule.ranks):
        first, behind = schedule.offsets[rank : rank + 2]
        nodes = range(first, behind)
        mine = [(a - first, b - first, s) for a, b, s in zip(schedule.after, schedule.before, schedule.begun, strict=True) if first <= a < behind]  # fmt: skip  # noqa: E501
        waits = [sum(a == k - first for a, *_ in mine) for k in nodes]
        roots = [k for k, count in enumerate(waits) if not count]
        body, lists = b"", []
        for k in nodes:
            ends = [a for a, b, s in mine if b == k - first and not s]
            begins = [a for a, b, s in mine if b == k - first and s]
            at = len(lists)
            lists += ends + begins
            body += struct.pack(
                "<IBIQIBBIIII",
                *(waits[k - first], schedule.kind[k], partner_of(schedule, k)),
                *(schedule.size[k], schedule.tag[k] % 2**32, schedule.cpu[k], schedule.nic[k]),
                *(len(ends), at, len(begins), at + len(ends)),
            )
            body += bytes(more)
        head = struct.pack(f"<II{len(roots)}I", len(nodes), len(roots), *roots)
        parts.append(head + body + struct.pack(f"<{len(lists)}I", *lists))
    start = 6 + 16 * len(parts)
    table = b""
    for part in parts:
        table += struct.pack("<QQ", start, start + len(part))
        start += len(part)
    return struct.pack("<QIBB", cookie, len(parts), 0, 0) + table + b"".join(parts)


def same(one, other):
    for name in ("offsets", "kind", "size", "peer", "tag", "cpu", "nic"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    edges = [sorted(zip(s.after, s.before, s.begun, strict=True)) for s in (one, other)]
    assert edges[0] == edges[1]


def test_every_statement(tmp_path):
    schedule = read(tmp_path, TEXT)
    assert schedule.offsets.tolist() == [0, 3, 5]
    assert schedule.kind.tolist() == [Task.CALC, Task.SEND, Task.RECV, Task.SEND, Task.RECV]
    assert schedule.size.tolist() == [100, 80000, 10, 10, 80000]
    assert schedule.peer.tolist() == [-1, 1, -1, 0, 0]
    assert schedule.tag.tolist() == [0, 7, -1, 0, 7]
    assert (schedule.cpu.tolist(), schedule.nic.tolist()) == ([2, 1, 0, 0, 0], [0, 1, 0, 0, 0])
    edges = zip(schedule.after, schedule.before, schedule.begun, strict=True)
    assert [tuple(map(int, edge)) for edge in edges] == [(1, 0, 0), (2, 1, 1)]
    assert schedule.traffic().bytes.tolist() == [80000, 10]


def test_each_rank_counts_its_operations_from_its_own_first(tmp_path):
    ranks = [f"rank {rank} {{\na: calc 1\nb: calc 2\nb requires a\n}}\n" for rank in range(3)]
    schedule = read(tmp_path, "num_ranks 3\n" + "".join(ranks))
    assert (schedule.after.tolist(), schedule.before.tolist()) == ([1, 3, 5], [0, 2, 4])
    same(read(tmp_path, binary(schedule)), schedule)


def test_what_is_largest_is_read(tmp_path):
    """Of a send the tag 2^32 - 1 is a number; of a receive it is any."""
    text = TEXT.replace("calc 100", f"calc {2**53}").replace("to 1 tag 7", f"to 1 tag {2**32 - 1}")
    schedule = read(tmp_path, text.replace("from 0 tag 7", f"from 0 tag {2**32 - 1}"))
    assert (schedule.size[0], schedule.tag[1], schedule.tag[4]) == (2**53, 2**32 - 1, -1)
    same(read(tmp_path, binary(schedule)), schedule)


def test_ranks_may_stand_in_any_order(tmp_path):
    head, zero, one = TEXT.partition("rank 0")[0], *TEXT.partition("rank 0")[2].split("\nrank 1")
    swapped = f"{head}rank 1{one}\nrank 0{zero}\n"
    same(read(tmp_path, swapped), read(tmp_path, TEXT))


def test_the_binary_is_the_same(tmp_path):
    schedule = read(tmp_path, TEXT)
    same(read(tmp_path, binary(schedule)), schedule)
    assert open_source(tmp_path / "x.goal").kind == "schedule"


@pytest.mark.parametrize("more", [17, 65])  # options, counters and thresholds; then handlers
def test_the_binary_of_loggopsim2_has_wider_operations(tmp_path, more):
    schedule = read(tmp_path, TEXT)
    same(read(tmp_path, binary(schedule, more=more)), schedule)
    data = bytearray(binary(schedule, more=more))
    data[8 + 6 + 32 + 8 + 4 + 4] = 5  # a get
    with pytest.raises(TraceError, match=r"kind 5.*expected a send, receive or calc"):
        read(tmp_path, bytes(data))


def test_a_wrong_statement_is_named(tmp_path):
    for old, new, said in [
        ("l2 requires l1", "l2 requires l9", "labels of operations that stand above"),
        ("l2 requires l1", "l2 wants l1", "a label and a colon"),
        ("l1: calc 100", "l1: think 100", "send SIZEb to RANK"),
        ("calc 100", "calc soon", "a whole number >= 0"),
        ("80000b to 1", "80000b to 2", "partners below N"),
        ("80000b to 1", "80000b at 1", "send SIZEb to RANK"),
        ("cpu 2", "cpu 65536", "cpu and nic of 16"),
        ("cpu 2", "cpu 2 tag", "tag, cpu or nic with a number"),
        ("num_ranks 2", "num_ranks 3", "rank 2 stands there 0 times"),
        ("rank 1 {", "rank 0 {", "0 stands there 2 times"),
        ("l1: recv 8", "l1: calc 1\nl1: recv 8", "1 labels stand twice"),
        ("rank 1 {\n", "rank 1 {\n}\nl5: calc 1\n", "num_ranks, or rank R"),
        ("100", "9" * 30, "at most 2^53"),
        ("100", f"{2**53 + 1}", "at most 2^53"),
        ("80000b to 1", "80000b to -1", "a whole number >= 0"),
        ("80000b to 1 tag 7", "80000b to 1 tag -1", "a whole number >= 0"),
        ("cpu 2", "cpu -1", "a whole number >= 0"),
        ("cpu 2", "nic 2", "tag, cpu or nic with a number"),
        ("rank 1 {", "rank 2 {", "R below N"),
    ]:
        with about(old, new, said):
            with pytest.raises(TraceError) as error:
                read(tmp_path, TEXT.replace(old, new, 1))
            assert said in str(error.value)
            assert "\n" not in str(error.value)


def test_a_line_is_named_by_its_number(tmp_path):
    with pytest.raises(TraceError, match=r"x.goal: line 9 of rank 0 is 'l2 requires l9': exp"):
        read(tmp_path, TEXT.replace("l2 requires l1", "l2 requires l9"))


@pytest.mark.parametrize("what", ["text", "binary"])
def test_a_cut_file_is_one_clear_line(tmp_path, what):
    whole = TEXT.encode() if what == "text" else binary(read(tmp_path, TEXT))
    file = tmp_path / "x.goal"
    for size in range(len(whole) - 1):
        file.write_bytes(whole[:size])
        with pytest.raises(TraceError) as error:
            read_goal(file)
        assert "\n" not in str(error.value)


def test_a_used_up_binary_and_wrong_lists_are_refused(tmp_path):
    schedule = read(tmp_path, TEXT)
    with pytest.raises(TraceError, match="has used it up"):
        read(tmp_path, binary(schedule, USED_UP))
    data = bytearray(binary(schedule))
    data[8 + 6 + 32 + 8 + 4] ^= 1  # how many the first operation waits for
    with pytest.raises(TraceError, match="rank 0: operation 0 waits for 1 and 0 are listed"):
        read(tmp_path, bytes(data))
    data = bytearray(binary(schedule))
    data[8 + 6 + 32 + 8 + 4 + 39 + 35] += 1  # where the list of those that wait for its begin is
    with pytest.raises(TraceError, match="rank 0: lists of 2 numbers: expected more: it is cut"):
        read(tmp_path, bytes(data))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"size": 2**53 + 1}, f"operation 1: kind 1, partner 1, size {2**53 + 1}: expected"),
        ({"peer": 2}, "operation 1: kind 1, partner 2"),
        ({"peer": -1}, f"operation 1: kind 1, partner {2**32 - 1}"),
        ({"kind": 4}, "operation 1: kind 4"),
        ({"after": 3}, "operation 3: expected one below 3"),
    ],
)
def test_a_binary_with_numbers_that_make_no_sense_is_refused(tmp_path, change, said):
    schedule = read(tmp_path, TEXT)
    if "after" in change:
        data = binary(schedule).replace(struct.pack("<II", 1, 2), struct.pack("<II", 1, 3))
    else:
        columns = {name: getattr(schedule, name).copy() for name in change}
        for name, value in change.items():
            columns[name][1] = value
        data = binary(replace(schedule, **columns))
    with pytest.raises(TraceError, match=f"rank 0.*{re.escape(said)}"):
        read(tmp_path, data)


def test_shared_schedules_have_the_totals_of_their_lines(shared):
    files = sorted((shared / "foreign" / "goal").glob("*.goal"))
    if not files:
        pytest.skip("no ../shared/foreign")
    for file in files:
        words = [line.split() for line in file.read_text().splitlines()]
        sends = [int(row[2].rstrip("b")) for row in words if row[1:2] == ["send"]]
        traffic = open_source(file).traffic()
        assert (traffic.messages.sum(), traffic.bytes.sum()) == (len(sends), sum(sends))
        needs = sum(row[1:2] in (["requires"], ["irequires"]) for row in words)
        schedule = read_goal(file)
        assert len(schedule.after) == needs
        for kind, word in enumerate(("send", "recv", "calc"), 1):
            sizes = [int(row[2].rstrip("b")) for row in words if row[1:2] == [word]]
            assert sorted(schedule.size[schedule.kind == kind].tolist()) == sorted(sizes)
