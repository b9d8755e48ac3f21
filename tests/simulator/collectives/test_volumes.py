"""What a collective moves, read from what Score-P records of it."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hopmap.simulator.collectives.volumes import (
    OWN_LEFT_OUT,
    Account,
    Reading,
    habits,
    read_accounts,
    share_out,
    volume,
)
from hopmap.traces import Collective
from support.scorep_bytes import OF_BLOCKS, WITH_ROOT, recorded

C = Collective
P = 8
I = np.arange(P)  # noqa: E741
ZERO = np.zeros(P, dtype=np.int64)


def at(root, value):
    return np.where(root == I, value, 0)


@pytest.mark.parametrize(
    ("operation", "root", "sent", "received", "expected"),
    [
        # The figures of the recorded edge.X.8.
        (C.BARRIER, -1, ZERO, ZERO, [0]),
        (C.BCAST, 3, at(3, 800), np.full(P, 100), [100]),
        (C.REDUCE, 5, np.full(P, 8), at(5, 64), [8]),
        (C.ALLREDUCE, -1, np.full(P, 64), np.full(P, 64), [8]),
        (C.GATHER, 1, np.full(P, 8), at(1, 64), np.full(P, 8)),
        (C.SCATTER, 1, at(1, 64), np.full(P, 8), np.full(P, 8)),
        (C.GATHERV, 4, I + 1, at(4, 36), I + 1),
        (C.ALLGATHER, -1, np.full(P, 64), np.full(P, 64), np.full(P, 8)),
        (C.ALLGATHERV, -1, 8 * (I + 1), np.full(P, 36), I + 1),
        (C.ALLTOALL, -1, np.full(P, 32), np.full(P, 32), np.full((P, P), 4)),
        (C.SCAN, -1, 8 * (P - I), 8 * (I + 1), [8]),
        (C.EXSCAN, -1, 8 * (P - 1 - I), 8 * I, [8]),
        (C.REDUCE_SCATTER_BLOCK, -1, np.full(P, 64), np.full(P, 64), np.full(P, 8)),
        (C.REDUCE_SCATTER, -1, np.full(P, 36), 8 * (I + 1), I + 1),
        # In place: Score-P leaves the own part out.
        (C.ALLREDUCE, -1, np.full(P, 7 * 4), np.full(P, 7 * 4), [4]),
        (C.BCAST, 0, at(0, 800), ZERO, [100]),
    ],
)
def test_bytes_of_an_operation(operation, root, sent, received, expected):
    taken = volume(operation, root, np.asarray(sent), np.asarray(received))
    assert np.array_equal(taken, expected)


sums = st.lists(st.integers(0, 10**12), min_size=1, max_size=9)


@given(sums, st.randoms(use_true_random=False))
def test_shares_add_up_to_what_was_sent_and_received(received, random):
    sent = [0] * len(received)
    for _ in range(3):
        sent[random.randrange(len(sent))] += sum(received) // 3
    sent[0] += sum(received) - sum(sent)
    pairs = share_out(np.array(sent), np.array(received))
    assert (pairs >= 0).all()
    assert pairs.sum(axis=1).tolist() == sent
    assert pairs.sum(axis=0).tolist() == received


def test_equal_totals_are_shared_equally():
    assert (share_out(np.full(4, 400), np.full(4, 400)) == 100).all()


def test_totals_that_disagree_keep_what_was_sent():
    pairs = share_out(np.array([10, 20]), np.array([7, 7]))
    assert pairs.sum(axis=1).tolist() == [10, 20]
    assert share_out(np.array([10, 20]), np.array([0, 0])).sum() == 30


EQUAL = (C.ALLREDUCE, C.ALLGATHER, C.ALLTOALL, C.REDUCE_SCATTER_BLOCK)


def moved(operation, blocks, root, in_place):
    """What `volume` is to say."""
    blocks = np.array(blocks, dtype=np.int64)
    if operation in (C.GATHERV, C.SCATTERV):
        return np.where((np.arange(len(blocks)) == root) & in_place, 0, blocks)
    if operation == C.ALLTOALL:
        return np.broadcast_to(blocks[:, None], (len(blocks), len(blocks)))
    if operation in OF_BLOCKS or operation in (C.GATHER, C.SCATTER, *EQUAL[1:]):
        return blocks
    return blocks[:1]


@st.composite
def calls(draw, operations):
    operation = draw(st.sampled_from(operations))
    members = draw(st.integers(2, 9))
    sizes = st.integers(0, 2**40)
    blocks = [draw(sizes)] * members
    if operation in OF_BLOCKS:
        blocks = draw(st.lists(sizes, min_size=members, max_size=members))
    root = draw(st.integers(0, members - 1)) if operation in WITH_ROOT else -1
    in_place = operation not in (C.BCAST, C.EXSCAN) and draw(st.booleans())
    return operation, blocks, root, in_place


@settings(deadline=None)
@given(calls([*WITH_ROOT, C.SCAN, C.EXSCAN]))
def test_what_a_root_or_the_first_member_tells_is_exact(call):
    operation, blocks, root, in_place = call
    sent, received = recorded(operation, blocks, root, in_place)
    assert np.array_equal(
        volume(operation, root, sent, received), moved(operation, blocks, root, in_place)
    )


@settings(deadline=None)
@given(calls([C.ALLGATHERV, C.REDUCE_SCATTER]))
def test_blocks_that_differ_tell_by_the_other_side(call):
    operation, blocks, root, in_place = call
    assume(len(set(blocks)) > 1)
    sent, received = recorded(operation, blocks, root, in_place)
    assert np.array_equal(volume(operation, root, sent, received), blocks)


@settings(deadline=None)
@given(calls(sorted(OWN_LEFT_OUT)))
def test_equal_accounts_are_exact_unless_both_readings_are_whole(call):
    operation, blocks, root, in_place = call
    members = len(blocks)
    blocks = blocks[:1] * members
    assume(blocks[0] % (members if in_place else members - 1))
    sent, received = recorded(operation, blocks, root, in_place)
    assert read_accounts([Account(operation, sent, received)]) == [
        Reading(members - in_place, False)
    ]
    assert np.array_equal(
        volume(operation, root, sent, received), moved(operation, blocks, root, in_place)
    )


def account(size, members, in_place=False, operation=C.ALLREDUCE):
    return Account(operation, *recorded(operation, [size] * members, in_place=in_place))


def readings(*accounts):
    """Whether each is taken as in place."""
    taken = read_accounts(accounts)
    return [r.parts < len(a.sent) for a, r in zip(accounts, taken, strict=True)]


def test_other_calls_of_the_operation_on_the_communicator_decide():
    for in_place in (False, True):
        # 1009 bytes are whole in one reading only, 4 x 5 x 20 bytes in both.
        tells, open_ = account(1009, 5, in_place), account(400, 5, in_place)
        assert readings(tells, open_) == [in_place, in_place]
    elsewhere = account(1009, 5, True, C.ALLGATHER)
    assert readings(elsewhere, account(400, 5, True)) == [True, False]
    assert readings(account(1009, 5), account(1013, 5, True), account(400, 5, True)) == [
        False,
        True,
        False,
    ]


def test_whole_elements_of_four_bytes_decide_where_whole_bytes_do_not():
    # 56 bytes are 7 each, or 8 in place; at two members 4 are 2 each, or 4 in place.
    assert readings(account(8, 8, True)) == [True]
    assert readings(account(4, 2, True), account(8, 2, True)) == [True, True]
    # Without in place at two members, everything is whole in both.
    assert readings(account(4, 2), account(8, 2)) == [False, False]


@pytest.mark.parametrize("members", range(2, 10))
@pytest.mark.parametrize("in_place", [False, True])
def test_what_is_whole_in_both_readings_is_taken_without_unless_that_takes_a_coincidence(
    members, in_place
):
    # Of 8 members, a megabyte in place would be 7/8 MB without, by chance a multiple of 7 bytes.
    one = account(members * (members - 1) << 10, members, in_place)
    taken = 1 if members == 8 else 0
    assert read_accounts([one]) == [Reading(members - taken, True)]
    # With two sizes three times as unlikely as not, in place; odd members never are.
    two = account(members * (members - 1) << 11, members, in_place)
    assert readings(one, two) == [members in (4, 8)] * 2


def test_a_megabyte_in_place_on_eight_members_is_a_megabyte():
    sent, received = recorded(C.ALLREDUCE, [1 << 20] * 8, in_place=True)
    assert volume(C.ALLREDUCE, -1, sent, received).tolist() == [1 << 20]


def test_other_operations_that_were_not_in_place_raise_what_is_asked_of_chance():
    # NAS IS on 8 ranks: 1029 = 3 x 7^3 bucket sizes, beside an alltoall of 4 bytes.
    buckets = account(4 * 1029, 8)
    assert readings(buckets) == [True]
    assert readings(buckets, account(4, 8, operation=C.ALLTOALL)) == [False, False]


def test_nothing_sent_is_nothing_in_both_readings():
    nothing = np.zeros(4, dtype=np.int64)
    assert read_accounts([Account(C.ALLREDUCE, nothing, nothing)]) == [Reading(4, False)]


def test_other_communicators_decide_where_this_one_does_not_tell():
    # With two members everything is whole in both readings; the nine bytes of eight tell.
    all_, two = account(8, 8, True), account(64, 2, True)
    calls = [(C.ALLREDUCE, int(a.sent[0]), len(a.sent)) for a in (all_, two, account(9, 8, True))]
    was = habits(*np.array(calls, dtype=np.int64).T)
    assert was == {C.ALLREDUCE: True}
    assert read_accounts([two], was) == [Reading(1, True)]
    assert read_accounts([two]) == [Reading(2, True)]
    # What tells here comes first; other operations tell nothing; habits that differ are none.
    assert read_accounts([account(9, 8)], was) == [Reading(8, False)]
    assert read_accounts([two], {C.ALLGATHER: True}) == [Reading(2, True)]
    calls.append((C.ALLREDUCE, 8 * 9, 8))
    assert habits(*np.array(calls, dtype=np.int64).T) == {}
    never = habits(np.array([C.ALLREDUCE]), np.array([8 * 9]), np.array([8]))
    assert never == {C.ALLREDUCE: False}
    assert read_accounts([all_], never) == [Reading(8, True)]
