"""The rules of time and order, one by one, as Python and as compiled code."""

from __future__ import annotations

import numba
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.simulator import model

KINDS = (
    *(model.SERVED, model.LEAVE, model.ARRIVE, model.DELIVER),
    *(model.SENT, model.ANSWER, model.RESUME),
)
MODES = (model.STANDARD, model.BUFFERED, model.SYNCHRONOUS, model.READY, model.PUT)
NUMBER_BITS, PACKET_BITS = 12, 7
keys = st.tuples(
    st.sampled_from(KINDS), st.integers(0, 2**NUMBER_BITS - 1), st.integers(0, 2**PACKET_BITS - 1)
)
times = st.floats(0, 1e3)


@given(keys, keys)
def test_key_orders_by_kind_then_number_then_packet(one, other):
    key_one, key_other = (model.order_key(*key, NUMBER_BITS, PACKET_BITS) for key in (one, other))
    assert (key_one < key_other) == (one < other)
    assert (key_one == key_other) == (one == other)


@given(keys, keys, st.integers(0, 10), st.integers(0, 10))
def test_wider_fields_do_not_change_the_order(one, other, more, still_more):
    narrow = [model.order_key(*key, NUMBER_BITS, PACKET_BITS) for key in (one, other)]
    wide = [
        model.order_key(*key, NUMBER_BITS + more, PACKET_BITS + still_more) for key in (one, other)
    ]
    assert (narrow[0] < narrow[1]) == (wide[0] < wide[1])


@given(st.integers(0, 10**7), st.integers(1, 10**6))
def test_packets_add_up_and_only_the_last_is_short(size, packet_size):
    count = model.packet_count(size, packet_size)
    if count <= 1000:
        packets = [model.packet_bytes(size, packet_size, k) for k in range(count)]
        assert sum(packets) == size
        assert set(packets[:-1]) <= {packet_size}
        assert packets[-1] > 0 or size == 0


def test_an_empty_message_is_one_packet():
    assert model.packet_count(0, 100) == 1
    assert model.packet_bytes(0, 100, 0) == 0


def test_large_messages_ask_first_but_for_ready_ones_and_puts():
    for mode in MODES:
        assert not model.asks_first(99, mode, 100)
        assert model.asks_first(100, mode, 100) == (mode not in (model.READY, model.PUT))
    assert model.asks_first(0, model.STANDARD, 0)


def test_the_mode_and_the_size_say_what_completes_a_send():
    small = [model.completion(99, mode, 100, 0.0) for mode in MODES]
    assert small == [model.POSTED, model.POSTED, model.ACKNOWLEDGED, model.POSTED, model.POSTED]
    in_place = [model.completion(99, mode, 100, 0.5) for mode in MODES]
    assert in_place == [model.LEFT, model.POSTED, model.ACKNOWLEDGED, model.LEFT, model.POSTED]
    for later in (0.0, 0.5):
        large = [model.completion(100, mode, 100, later) for mode in MODES]
        assert large == [model.LEFT, model.POSTED, model.LEFT, model.LEFT, model.LEFT]
        assert model.completion(1, model.RENDEZVOUS, 100, later) == model.LEFT


def test_only_an_eager_send_is_over_later_than_its_data_have_left():
    assert model.completion_time(1.0, 99, model.STANDARD, 100, 0.5) == 1.5
    assert model.completion_time(1.0, 100, model.STANDARD, 100, 0.5) == 1.0
    assert model.completion_time(1.0, 99, model.RENDEZVOUS, 100, 0.5) == 1.0


def test_what_asks_first_whatever_its_size_goes_through_no_buffer():
    assert model.asks_first(1, model.RENDEZVOUS, 100)
    assert model.byte_overhead(10, model.RENDEZVOUS, 100, 0.5) == 0.0
    assert model.byte_overhead(10, model.STANDARD, 100, 0.5) == 5.0


@given(times, times, times)
def test_a_put_is_noticed_late_and_keeps_its_target_busy_for_so_much_less(arrival, recv, latency):
    for mode in MODES:
        put = mode == model.PUT
        noticed = model.notice_time(arrival, model.DATA, mode, 0.25, latency)
        assert noticed == arrival + latency * put
        assert model.receive_overhead(mode, recv, latency) == max(recv - latency * put, 0)
        for cargo in (model.REQUEST, model.GRANT, model.ACKNOWLEDGEMENT):
            assert model.notice_time(arrival, cargo, mode, 0.25, latency) == arrival + 0.25


@given(times, times)
def test_a_rank_that_computes_gets_to_what_arrives_when_it_is_done(now, until):
    assert model.in_call(now, until) == max(now, until)


@given(times, times, times, st.integers(0, 10**6), st.floats(1e-3, 1e12))
def test_service_follows_arrival_server_and_tail(now, free, tail, size, bandwidth):
    start = model.service_start(now, free)
    end = model.service_end(start, size, bandwidth, tail)
    assert start == max(now, free)
    assert end == max(start + size / bandwidth, tail)


rates = st.floats(0.1, 10)


@given(st.integers(2, 1000), st.integers(1, 1000), rates, rates, st.floats(0, 2))
def test_a_place_is_free_as_soon_as_the_next_packet_never_runs_into_this_one(
    size, flit, leaving, entering, late
):
    """By flits both go at a steady rate: where the first of them could, and where the last."""
    start, end = 3.0, 3.0 + size / leaving * (1 + late)
    free = model.place_free(start, end, size, flit, leaving, entering)
    if flit >= size:
        assert free == end
        return
    after_head = free - (start + flit / leaving)  # from when a flit has left
    before_tail = free + (size - flit) / entering - end  # the same flit's end behind the tail
    assert min(after_head, before_tail) == pytest.approx(0, abs=1e-9)
    assert start < free <= end
    assert model.place_free(start, end, size, 0, leaving, entering) == end


def test_cut_through_hands_on_the_head_store_and_forward_the_tail():
    assert model.head_arrival(1.0, 3.0, 0.5, True) == 1.5
    assert model.head_arrival(1.0, 3.0, 0.5, False) == 3.5
    assert model.tail_arrival(3.0, 0.5) == 3.5


@pytest.mark.parametrize(
    ("rule", "arguments"),
    [
        (model.place_free, (0.1, 0.7, 500, 3, 1e9, 2e9)),
        (model.order_key, (3, 1234, 56, 31, 20)),
        (model.asks_first, (30, model.READY, 20)),
        (model.completion, (10, model.SYNCHRONOUS, 20, 0.0)),
        (model.completion_time, (0.1, 10, model.STANDARD, 20, 0.2)),
        (model.receive_overhead, (model.PUT, 0.3, 0.1)),
        (model.notice_time, (0.1, model.DATA, model.PUT, 0.2, 0.3)),
        (model.in_call, (0.1, 0.3)),
        (model.leave_time, (0.1, 0.3, 1024, 6e-9)),
        (model.packet_count, (12345, 100)),
        (model.packet_bytes, (12345, 100, 123)),
        (model.service_start, (0.1, 0.3)),
        (model.service_end, (0.1, 7, 3.0, 0.2)),
        (model.head_arrival, (0.1, 0.3, 0.7, True)),
        (model.tail_arrival, (0.1, 0.7)),
    ],
)
def test_compiled_rules_give_the_same_numbers(rule, arguments):
    assert numba.njit(rule)(*arguments) == rule(*arguments)
