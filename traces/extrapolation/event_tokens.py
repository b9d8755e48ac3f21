"""What ranks do, call by call, as words: calls that do the same have the same hash.

A call is an outermost region of MPI, or a record outside any, and what its rank recorded since the
call before. Two calls are the same if all their events are, except for times. Requests are
identified by how many events ago they were started, or until they are completed.

Loops are the tandem repeats of a rank's word, inner ones first, short periods before long ones.
A period that is found becomes one symbol, its run one place of the word, and the search begins
again, so that loops within loops are found as what repeats among symbols. A pass looks for periods
up to a power of two, at the distances to the next few places where half as many symbols come as
here; what repeats at none of these is not found. Its cost is a sort of what is left of the word,
and there are about log2 of the longest period of them for each level of nesting.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Bools, Ints
from hopmap.traces.trace import ENDS, POSTS, Collective, Kind, Role, Trace, is_call

Hashes = NDArray[np.uint64]


class Reduced(NamedTuple):
    """A word with its runs in one symbol each."""

    hashes: Hashes  # (n,)
    start: Ints  # (n + 1,): place in the whole word at which each symbol begins, and its end
    # (loops, 3): first place, length of an iteration and iterations, in places of the whole word,
    # inner loops first. Those within an iteration but the first of another are listed as well.
    loops: Ints


def mix(values: NDArray[np.generic]) -> Hashes:
    """Scatter whole numbers over 64 bits, one to one (the finisher of splitmix64)."""
    x = values.astype(np.int64).view(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def find_loops(hashes: Hashes, apart: Bools, clean: Bools, level: Ints) -> Reduced:
    """Find the loops of a word of n symbols.

    No loop may hold the symbols that are `apart`. An iteration may begin or end before a symbol
    that is `clean` (n + 1,); begins and ends of a run have one `level` (n + 1,).
    """
    from .repeats_kernels import sums_of, tandem_repeats

    start = np.arange(len(hashes) + 1)
    _, word = np.unique(hashes, return_inverse=True)
    symbols = int(word.max(initial=-1)) + 1
    word = np.where(apart, symbols + np.arange(len(word)), word)
    symbols += len(word)
    known: dict[int, int] = {}
    loops = [np.zeros((0, 3), dtype=np.int64)]
    longest = 1
    while longest < len(word):
        sums, powers = sums_of(mix(word))
        after = _next_places(word, symbols, sums, powers, longest // 2)
        found, runs = tandem_repeats(word, after, sums, powers, clean, level, start, longest)
        if not found:
            longest *= 2
            continue
        first, period, iterations = runs[:found].T
        loops.append(
            np.stack((start[first], start[first + period] - start[first], iterations), axis=1)
        )
        # What a loop is, from what its iterations and they are.
        sums, powers = sums_of(hashes)
        body = sums[first + period] - sums[first] * powers[period]
        made = mix(mix(body.view(np.int64)) + mix(iterations) + mix(-period))
        number = np.empty(found, dtype=np.int64)
        for place, each in enumerate(made.tolist()):
            number[place] = known.setdefault(each, symbols + len(known))
        hashes, word = hashes.copy(), word.copy()
        hashes[first], word[first] = made, number
        inside = np.zeros(len(word) + 2, dtype=np.int64)
        np.add.at(inside, first + 1, 1)
        np.add.at(inside, first + period * iterations, -1)
        kept = np.cumsum(inside)[:-1] == 0
        start, clean, level = start[kept], clean[kept], level[kept]
        hashes, word = hashes[kept[:-1]], word[kept[:-1]]
        # The symbols that are left are counted from 0 on, known loops among them.
        left, word = np.unique(word, return_inverse=True)
        symbols, place_of = len(left), {symbol: at for at, symbol in enumerate(left.tolist())}
        known = {each: place_of[loop] for each, loop in known.items() if loop in place_of}
        longest = 1
    return Reduced(hashes, start, np.concatenate(loops))


def _next_places(word: Ints, symbols: int, sums: Hashes, powers: Hashes, gram: int) -> Ints:
    """Where each place's next `gram` symbols come again; the word's length where they do not."""
    from .repeats_kernels import next_places

    if gram < 2:
        return next_places(word, symbols)
    grams = sums[gram:] - sums[:-gram] * powers[gram]
    known, code = np.unique(grams, return_inverse=True)
    code = np.append(code, len(known) + np.arange(gram - 1))  # there are fewer symbols left
    return next_places(code, len(known) + gram - 1)


_COLLECTIVE = (Kind.COLLECTIVE_END, Kind.COLLECTIVE_REQUEST, Kind.COLLECTIVE_COMPLETE)
# What a replay tells by the order in the whole recording.
_SINGLE = (Kind.REQUEST_CANCELLED, Kind.MRECV, Kind.IMRECV_REQUEST, Kind.IMRECV)
_COUNTED = (Collective.ALLTOALLV, Collective.ALLTOALLW)


class Words(NamedTuple):
    """The calls of a trace, rank after rank."""

    # (ranks + 1,): calls of rank r are ``offsets[r]:offsets[r + 1]``; what follows its last call is
    # one more
    offsets: Ints
    first: Ints  # (calls + 1,): event at which each begins, and the number of events
    hashes: NDArray[np.uint64]  # (calls,)
    single: Bools  # (calls,): calls that stay as they are
    collective: Bools  # (calls,): calls of collectives
    joint: Bools  # (calls,): blocking ones of all ranks
    open: Ints  # (calls,): requests under way when each begins
    level: Ints  # (calls,): regions that are open then


def column_of(trace: Trace, name: str) -> Ints:
    """Return a column of the records by event, -1 at brackets."""
    column = np.full(trace.events, -1, dtype=np.int64)
    recorded = trace.kind > Kind.LEAVE
    column[recorded] = getattr(trace.records, name)[trace.ref[recorded]]
    return column


class Requests(NamedTuple):
    """What belongs to the same request."""

    # (events,): of a start its completion, of a completion or test the start; -1 of other events
    partner: Ints
    stray: Bools  # (events,): starts without a completion, and what is without a start


def requests_of(trace: Trace) -> Requests:
    """Find the start of each request that is completed or tested."""
    partner = np.full(trace.events, -1, dtype=np.int64)
    stray = np.zeros(trace.events, dtype=np.bool_)
    where = np.flatnonzero(np.isin(trace.kind, (*POSTS, *ENDS, Kind.REQUEST_TEST)))
    kind = trace.kind[where]
    request = trace.records.request[trace.ref[where]]
    rank = np.searchsorted(trace.offsets, where, side="right") - 1
    order = np.lexsort((request, rank))
    where, kind, request, rank = where[order], kind[order], request[order], rank[order]
    post, ends = np.isin(kind, POSTS), np.isin(kind, ENDS)
    # Up to here: the latest start or completion of the same request.
    opens = np.where(post | ends, np.arange(len(where)), 0)
    before = np.concatenate(([0], np.maximum.accumulate(opens)[:-1])) if len(opens) else opens
    found = (request[before] == request) & (rank[before] == rank) & post[before]
    found &= ~post & (before < np.arange(len(where)))
    partner[where[found]] = where[before[found]]
    done = found & ends
    partner[where[before[done]]] = where[done]
    stray[where[~post & ~found]] = True
    stray[where[post & (partner[where] < 0)]] = True
    return Requests(partner, stray)


def words_of(trace: Trace, requests: Requests) -> Words:
    """Split a trace into calls and say what each does."""
    bracket = trace.kind <= Kind.LEAVE
    step = np.where(trace.kind == Kind.ENTER, 1, -1) * bracket
    depth = np.cumsum(step)
    mpi = bracket & np.append(is_call(trace.roles), False)[np.where(bracket, trace.ref, -1)]
    inside = np.cumsum(np.where(mpi, step, 0))
    start = trace.offsets[:-1]
    lengths = np.diff(trace.offsets)
    inside -= np.repeat(np.append(0, inside)[start], lengths)
    depth -= np.repeat(np.append(0, depth)[start], lengths)
    closes = (inside <= 0) & (mpi | ~bracket)

    # A call begins behind the one before; what is behind the last one of a rank is one more.
    begins = np.zeros(trace.events + 1, dtype=np.bool_)
    begins[np.flatnonzero(closes) + 1] = True
    begins[trace.offsets] = True
    first = np.flatnonzero(begins)
    offsets = np.searchsorted(first, trace.offsets)
    of = np.cumsum(begins[:-1]) - 1
    calls = len(first) - 1

    def any_of(events: Bools) -> Bools:
        return np.bincount(of[events], minlength=calls) > 0

    operation, comm = column_of(trace, "operation"), column_of(trace, "comm")
    single = requests.stray | np.isin(trace.kind, _SINGLE)
    single |= (trace.kind == Kind.PROBE) & (column_of(trace, "request") >= 0)
    polls = np.append(trace.roles == Role.POLL, False)
    single |= polls[np.where(bracket, trace.ref, -1)]
    ended = np.isin(trace.kind, _COLLECTIVE)
    single |= ended & (operation >= Collective.CREATE_HANDLE)
    if trace.counts is not None:
        single |= np.isin(operation, _COUNTED)
    sizes = np.array([*(len(members) for members in trace.communicators), 0])
    joint = (trace.kind == Kind.COLLECTIVE_END) & (sizes[comm] == trace.ranks)
    alone = any_of(single) | (~any_of(closes))
    alone[_in_spans(trace, first, offsets)] = True

    partner = requests.partner
    steps = np.where(partner >= 0, partner - np.arange(trace.events), 0)
    hashes = mix(np.where(bracket, trace.ref, -1)) + mix(trace.kind)
    carried = (column_of(trace, name) for name in ("peer", "tag", "size", "received"))
    for values in (comm, operation, *carried, steps):
        hashes = mix(hashes.view(np.int64)) + mix(values)
    # A call is the hashes of its events, each with its place in the call.
    scattered = mix(hashes.view(np.int64) + (np.arange(trace.events) - first[of]))
    total = np.append(np.uint64(0), np.cumsum(scattered, dtype=np.uint64))
    return Words(
        offsets=offsets,
        first=first,
        hashes=total[first[1:]] - total[first[:-1]],
        single=alone,
        collective=any_of(ended),
        joint=any_of(joint),
        open=_under_way(of, partner, trace.kind, calls),
        level=np.append(0, depth)[first[:-1]] * (first[:-1] != np.repeat(start, np.diff(offsets))),
    )


def _under_way(of: Ints, partner: Ints, kind: NDArray[np.uint8], calls: int) -> Ints:
    """Count the requests that are started before each call and completed in it or later."""
    posts = np.flatnonzero(np.isin(kind, POSTS) & (partner >= 0))
    change = np.bincount(of[posts] + 1, minlength=calls + 1)
    change -= np.bincount(of[partner[posts]] + 1, minlength=calls + 1)
    return np.cumsum(change)[:calls]


def _in_spans(trace: Trace, first: Ints, offsets: Ints) -> Ints:
    """Return calls in which, or before which, a time lies that events do not show."""
    found = [np.zeros(0, dtype=np.int64)]
    for rank, begin, end, _ in zip(*trace.spans, strict=True):
        low, high = offsets[rank : rank + 2]
        if low == high:
            continue
        ends = trace.time[first[low + 1 : high + 1] - 1]
        found.append(
            np.arange(
                low + min(np.searchsorted(ends, begin), high - low - 1),
                low + min(np.searchsorted(ends, end), high - low - 1) + 1,
            )
        )
    return np.concatenate(found)
