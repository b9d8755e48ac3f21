"""The model: every rule about time and order, as pure functions of numbers.

All engines call these functions, SimPy as they stand and compiled ones through ``numba.njit``, so
that they form the same times by the same additions in the same order. What they say in words is
in docs/explanations/, messages-and-protocols.md and network-and-routing.md.

A message travels over a path of *servers*: the injection link of its node, the links of the route,
the ejection link of the target; or, between ranks of one node, that node's memory alone. Each
server takes packets first come first served.
"""

from __future__ import annotations

# Kinds of event. At one instant a lower kind is handled first, then a lower number (of the message
# or, of RESUME, the task), then a lower packet. A packet is never in two places, so that its hop
# could not decide and is left out of the key.
SERVED = 0  # a network interface whose queues take turns has served a packet
LEAVE = 1  # a message has passed its rank's end point, if that takes time
ARRIVE = 2  # a packet's head (store-and-forward: its tail) reaches a server
DELIVER = 3  # the tail of a message's last packet reaches the target
SENT = 4  # the tail of a large message's last packet has left the source
ANSWER = 5  # a rank that computed gets to a message that has arrived
RESUME = 6  # a task goes on
CREDIT = 7  # there is room again behind a link whose buffers are finite
PASSED = 8  # a packet's tail has left such a buffer, and the link that it goes over is free

# What a packet carries. All but data are control messages: the request and the grant of a
# rendezvous, the acknowledgement of a small synchronous message.
DATA = 0
REQUEST = 1
GRANT = 2
ACKNOWLEDGEMENT = 3

# MPI's modes of sending.
STANDARD = 0
BUFFERED = 1
SYNCHRONOUS = 2
READY = 3
PUT = 4  # no mode of MPI's: into memory that the target has named, asks for nothing either
HARDWARE = 5  # likewise, by a network interface, without its rank: no rank is busy with it
RENDEZVOUS = 6  # as standard, but asks first whatever its size: to a receiver with many senders

# When a send is complete: when it is posted, when its message has been received, when its data have
# left the first server.
POSTED = 0
ACKNOWLEDGED = 1
LEFT = 2


def order_key(kind: int, number: int, packet: int, number_bits: int, packet_bits: int) -> int:
    """Rank of an event among events of one instant; lower comes first.

    The bits only have to be wide enough: they do not change the order.
    """
    return (((kind << number_bits) | number) << packet_bits) | packet


QUANTILES = 4096  # of a distribution that noise is drawn from, see `noise.py`


def mix_hash(above: int, number: int) -> int:
    """Scramble two numbers into 32 bits, any of which are as good as random.

    What is drawn depends on what it is drawn for alone: a task of a seed, a pause of a task.
    The function on 32 bits is that of multipliers 0x21F0AAAD and 0xD35A2D97 in the list of Chris
    Wellons' hash-prospector, of the least known bias. The second one stands here less 2^32, so that
    products fit 64 bits with a sign, and are the same in Python, numpy and compiled code.
    """
    word = number
    for add in (0, above):
        word = (word + add) & 0xFFFFFFFF
        word = ((word ^ (word >> 16)) * 0x21F0AAAD) & 0xFFFFFFFF
        word = ((word ^ (word >> 15)) * -0x2CA5D269) & 0xFFFFFFFF
        word = word ^ (word >> 15)
    return word


def asks_first(size: int, mode: int, eager_limit: int) -> bool:
    """Whether a message of `size` bytes is a rendezvous: its data wait for the receive's grant.

    That of a ready send is there already, as is the memory of a put. So MPICH has it (ch3: ready
    sends of any size are eager).
    """
    return mode == RENDEZVOUS or (size >= eager_limit and mode not in (READY, PUT, HARDWARE))


def completion(size: int, mode: int, eager_limit: int, eager_completion: float) -> int:
    """Say what completes a send: POSTED, ACKNOWLEDGED or LEFT.

    A large synchronous message is a rendezvous, whose grant says that the receive is there. A small
    one takes its data along and is acknowledged when it meets the receive: so do Open MPI (ob1) and
    MPICH (ch3). Other small ones are complete at once if they are copied (`eager_completion` is 0).
    """
    if mode == BUFFERED:
        return POSTED
    if size >= eager_limit or mode == RENDEZVOUS:
        return LEFT
    if mode == SYNCHRONOUS:
        return ACKNOWLEDGED
    return LEFT if eager_completion > 0 and mode in (STANDARD, READY) else POSTED


def completion_time(
    left: float, size: int, mode: int, eager_limit: int, eager_completion: float
) -> float:
    """When a send is complete whose last byte has `left` the first server then."""
    return left + eager_completion if size < eager_limit and mode != RENDEZVOUS else left


def byte_overhead(size: int, mode: int, eager_limit: int, per_byte: float) -> float:
    """Seconds that a rank is busy with the bytes of a message, as it is sent or received.

    LogGOPS's O, of messages that go through buffers; what a rendezvous moves is not touched.
    """
    return size * per_byte if size < eager_limit and mode != RENDEZVOUS else 0.0


def receive_overhead(mode: int, overhead_recv: float, put_latency: float) -> float:
    """Seconds that a rank is busy with a message that has arrived, its bytes apart.

    Of a put's the first ones pass on its way, see `notice_time`. An interface costs nothing,
    nor do its bytes.
    """
    return max(0.0, overhead_recv - put_latency) if mode == PUT else overhead_recv


def in_call(now: float, until: float) -> float:
    """When a rank that computes `until` then, gets to what arrives `now`: at its next call."""
    return until if until > now else now


def leave_time(now: float, free: float, size: int, gap_per_byte: float) -> float:
    """When a message has passed its rank's end point, which is `free` for it from then on.

    LogGP's (k - 1) G: the first byte takes no time (Alexandrov, Ionescu, Schauser, Scheiman, LogGP,
    SPAA 1995).
    """
    start = now if now > free else free
    return start + max(0, size - 1) * gap_per_byte


def packet_count(size: int, packet_size: int) -> int:
    """Packets of a message; a message of 0 bytes is one empty packet."""
    return -(-size // packet_size) or 1


def packet_bytes(size: int, packet_size: int, packet: int) -> int:
    """Bytes of a packet: all are full but the last."""
    return min(packet_size, size - packet * packet_size)


def service_start(now: float, free: float) -> float:
    """When a server begins with a packet that arrives `now`: at once, or when it is free."""
    return now if now > free else free


def service_end(start: float, size: int, bandwidth: float, tail: float) -> float:
    """When a server is done with a packet, and free for the next.

    Not before the packet's `tail` has come off the previous, perhaps slower, server.
    """
    end = start + size / bandwidth
    return end if end > tail else tail


def head_arrival(start: float, end: float, latency: float, cut_through: bool) -> float:
    """When the next server may begin: cut-through at the head, store-and-forward at the tail."""
    return (start if cut_through else end) + latency


def tail_arrival(end: float, latency: float) -> float:
    """When the whole packet has reached the next server, or the target."""
    return end + latency


def place_free(
    start: float, end: float, size: int, flit: int, leaving: float, entering: float
) -> float:
    """When the place of a packet that leaves from `start` to `end` can be taken by the next one.

    With its tail; where credits are of flits (bytes, 0: of packets), once one has left, as in
    wormhole routers (Dally and Seitz, 1987), but not so early that the next packet runs into it.
    `leaving` and `entering` are the bandwidths of the links from and to it, bytes/s.
    """
    if flit == 0 or size <= flit:
        return end
    first = start + flit / leaving
    followed = end - (size - flit) / entering
    free = first if first > followed else followed
    return free if free > start else end


def credit_arrival(free: float, latency: float, credit_delay: float) -> float:
    """When a link knows of a place behind it that is `free` from then on."""
    return free + latency + credit_delay


def notice_time(
    arrival: float, cargo: int, mode: int, overhead_control: float, put_latency: float
) -> float:
    """When a message counts as arrived: a control message once its target has handled it.

    A put's target notices it after a while, and may do something else meanwhile.
    """
    if cargo != DATA:
        return arrival + overhead_control
    return arrival + put_latency if mode == PUT else arrival
