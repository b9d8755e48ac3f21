"""Messages of a rank, from calls that name a partner and calls that complete requests."""

from __future__ import annotations

import numpy as np
import pytest

from hopmap.traces import Collective, TraceError
from hopmap.traces.foreign.messages import Listed, Part, settle
from hopmap.traces.foreign.trace_builder import Calls, Groups
from hopmap.traces.matching import ANY

PEER, TAG, COMM, SIZE = 1, 7, 0, 100


def at(*calls):
    return np.array(calls, dtype=np.int64)


def completed(begun, ended, key=5):
    """Calls that begin and complete each message of requests that have one number."""
    listed = Listed()
    for part, calls in begun:
        keys = np.full(len(calls), key)
        listed.add(at(*calls), (PEER, TAG, COMM, SIZE), True, request=keys, part=part)
    for part, calls in ended:
        listed.note(at(*calls), np.full(len(calls), key), part, status=10 * at(*calls))
    table, status = listed.messages()
    return list(zip(table.call.tolist(), table.done.tolist(), status.tolist(), strict=True))


def test_a_call_that_blocks_completes_what_it_begins():
    listed = Listed()
    listed.add(at(3, 1), (at(1, 2), TAG, COMM, SIZE), True, status=at(30, 10))
    table, status = listed.messages()
    assert (table.call.tolist(), table.done.tolist(), status.tolist()) == ([1, 3], [1, 3], [10, 30])
    assert table.peer.tolist() == [2, 1]


def test_a_number_that_is_used_again_means_the_latest_request():
    assert completed([(Part.BEGIN, (0, 2))], [(Part.END, (1, 3))]) == [(0, 1, 10), (2, 3, 30)]
    assert completed([(Part.BEGIN, (0, 1))], [(Part.END, (2,))]) == [(0, -1, -1), (1, 2, 20)]
    assert completed([(Part.BEGIN, (0,))], [(Part.FORGET, (1,))]) == [(0, -1, -1)]


def test_of_calls_that_may_have_completed_a_request_the_last_is_taken():
    assert completed([(Part.BEGIN, (0, 4))], [(Part.ASK, (1, 2))]) == [(0, 2, 20), (4, -1, -1)]
    both = [(Part.ASK, (1, 3)), (Part.END, (2,))]
    assert completed([(Part.BEGIN, (0,))], both) == [(0, 2, 20)]


def test_a_persistent_request_sends_as_often_as_it_is_started():
    begun = [(Part.INIT, (0,))]
    ended = [(Part.START, (1, 3)), (Part.END, (2, 4))]
    assert completed(begun, ended) == [(1, 2, 20), (3, 4, 40)]


def test_receives_that_leave_something_open_take_what_nobody_else_takes():
    sends, takes = Listed(), Listed()
    sends.add(at(0), (1, TAG, COMM, SIZE), True)
    takes.add(at(0), (ANY, TAG, COMM, 10 * SIZE), False)
    takes.add(at(1), (ANY, TAG, COMM, 10 * SIZE), False)
    times = np.zeros(3)
    calls = Calls(at(0, 1, 3), at(0, 0, 0), times, times)
    (begun, _), told = settle([sends.messages()[0], takes.messages()[0]], calls, times)
    assert begun.peer.tolist() == [1, 0]
    assert begun.size.tolist() == [SIZE, SIZE]
    assert list(told.values()) == [1, 1]


def test_partners_and_roots_are_members_of_their_communicators():
    groups = Groups([np.arange(4), at(), at(3, 1)], 1, "file")
    assert (groups.size.tolist(), groups.place.tolist()) == ([4, 1, 2], [1, 0, 1])
    assert groups.world(at(2, 0, 0, 1, -1), at(0, 1, 2, 2, 2)).tolist() == [2, 1, 3, 1, -1]
    with pytest.raises(TraceError, match="file: partner 2: expected a rank below 2"):
        groups.world(at(2), at(2))
    made = groups.collectives(at(0), Collective.BCAST, at(2), at(8), at(8), at(1))
    assert (made.peer.tolist(), made.size.tolist(), made.received.tolist()) == ([1], [16], [8])
    with pytest.raises(TraceError, match="file: bcast with root 2: expected a root below 2"):
        groups.collectives(at(0), Collective.BCAST, at(2), at(8), at(8), at(2))
