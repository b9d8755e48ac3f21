"""A folded recording written out is the recording, and replays as it does."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.errors import HopmapWarning
from hopmap.simulator import Parameters, lower, simulate
from hopmap.topologies import topology_from_spec
from hopmap.traces import (
    Kind,
    Span,
    Spans,
    TraceError,
    fold,
    nas_trace,
    read_trace,
    traffic_of,
    unfold,
    write_trace,
)
from hopmap.traces.folded import traffic_of_folded
from hopmap.traces.sources import open_source
from hopmap.traces.trace import PairCounts
from support.made_traces import recv, send, trace_of

K = Kind


def assert_same(found, expected):
    for name in ("offsets", "kind", "time", "ref"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    for name in expected.records._fields:
        columns = (getattr(trace.records, name) for trace in (found, expected))
        assert np.array_equal(*columns), name
    for mine, theirs in zip(found.spans, expected.spans, strict=True):
        assert np.array_equal(mine, theirs)
    assert (found.name, found.regions) == (expected.name, expected.regions)


def noisy(trace, seed=0):
    """The same run with other times, as a recording has them."""
    gap = np.random.default_rng(seed).integers(0, 5000, trace.events)
    late = [np.cumsum(gap[a:b]) for a, b in zip(trace.offsets, trace.offsets[1:], strict=False)]
    ticks = np.rint(trace.time * 1e9) + np.concatenate(late)
    return replace(trace, time=ticks / 1e9)


def recorded_requests(trace):
    """Every request has a number of its own, as Score-P gives them, not from 1."""
    request = trace.records.request
    return replace(
        trace, records=trace.records._replace(request=np.where(request >= 0, request * 3 + 11, -1))
    )


NAS = ["lu.S.4", "cg.S.4", "mg.S.8", "ft.S.4", "sp.S.9", "is.S.2", "ep.S.2"]


@pytest.mark.parametrize("name", NAS)
def test_unfolding_gives_the_recording_back(name):
    trace = recorded_requests(noisy(nas_trace(name)))
    assert_same(unfold(fold(trace)), trace)


@pytest.mark.parametrize(("name", "events"), [("lu.S.4", 1050), ("sp.S.9", 4068), ("cg.S.4", 744)])
def test_a_recording_takes_as_little_as_the_generated_loops(name, events):
    assert fold(noisy(nas_trace(name))).trace.events <= events


def test_recorded_archives_too(data):
    for name in ("lu.S.4", "edge.X.8"):
        trace = read_trace(data / name)
        assert_same(unfold(fold(trace)), trace)
    folded = fold(read_trace(data / "lu.S.4"))
    assert 10 * folded.trace.events < read_trace(data / "lu.S.4").events


@pytest.mark.parametrize("name", NAS)
def test_traffic_is_that_of_the_recording(name):
    trace = nas_trace(name)
    assert traffic_of_folded(fold(trace)).same_as(traffic_of(trace))
    assert lower(fold(trace)).traffic().same_as(lower(trace).traffic())


def test_each_rank_computes_as_long_as_it_did():
    trace = noisy(nas_trace("lu.S.4"))
    folded = fold(trace, keep=False)
    ends = trace.time[trace.offsets[1:] - 1]
    found = unfold(folded)
    np.testing.assert_allclose(found.time[found.offsets[1:] - 1], ends, rtol=1e-12, atol=2e-9)


NETWORK = topology_from_spec("torus:3x3")


def times_of(program, compute):
    parameters = Parameters(compute_scale=compute)
    run = simulate(program, NETWORK, np.arange(program.ranks), parameters=parameters)
    return run.finish


def in_microseconds(folded):
    """The same with round times: else those of iterations are rounded to nanoseconds written out.

    Where messages come at once, a nanosecond decides which goes first.
    """
    time = np.rint(folded.trace.time * 1e6) / 1e6
    return folded._replace(trace=replace(folded.trace, time=time))


@pytest.mark.parametrize("name", NAS)
def test_replays_are_the_same_but_for_what_trips_compute(name):
    trace = recorded_requests(noisy(nas_trace(name)))
    program, loops = lower(trace), lower(fold(trace))
    assert loops.operations <= program.operations + 3 * len(fold(trace).times)
    # Without computation to the last bit.
    assert np.array_equal(times_of(program, 0), times_of(loops, 0))
    # With it, as the run in which every iteration takes its average.
    averages = in_microseconds(fold(trace, keep=False))
    loops, average = lower(averages), lower(unfold(averages))
    np.testing.assert_allclose(times_of(loops, 1), times_of(average, 1), rtol=1e-9)


RANKS = 3


@st.composite
def parts(draw, depth=2):
    """What ranks do one after the other: messages, exchanges, collectives and loops of these."""
    made = []
    for _ in range(draw(st.integers(0, 3))):
        sort = draw(st.sampled_from(["message", "exchange", "collective", "user", "loop"]))
        if sort == "loop" and depth:
            made.append(("loop", draw(st.integers(1, 6)), draw(parts(depth=depth - 1))))
        elif sort != "loop":
            a, b = draw(st.permutations(range(RANKS)))[:2]
            made.append((sort, a, b, draw(st.integers(0, 1)), draw(st.sampled_from([0, 8, 4000]))))
    return made


def written(program, requests):
    """Lists of calls of all ranks."""
    ranks = [[] for _ in range(RANKS)]
    for sort, *of in program:
        if sort == "loop":
            times, body = of
            for _ in range(times):
                for rank, calls in enumerate(written(body, requests)):
                    ranks[rank] += calls
            continue
        a, b, tag, size = of
        if sort == "message":
            ranks[a].append(("MPI_Send", send(b, size, tag)))
            ranks[b].append(("MPI_Recv", recv(a, size, tag)))
        elif sort == "user":
            ranks[a].append(("solve",))
        elif sort == "collective":
            end = (K.COLLECTIVE_END, {"operation": 11, "size": 8 * RANKS, "received": 8 * RANKS})
            for calls in ranks:
                calls.append(("MPI_Allreduce", (K.COLLECTIVE_BEGIN, {}), end))
        else:
            for here, there in ((a, b), (b, a)):
                requests[here] += 2
                post, put = requests[here] - 1, requests[here]
                ranks[here] += [
                    ("MPI_Irecv", (K.IRECV_REQUEST, {"request": post})),
                    ("MPI_Isend", send(there, size, tag, request=put)),
                ]
                ranks[here][-1] = (
                    "MPI_Isend",
                    (K.ISEND, {"peer": there, "size": size, "tag": tag, "request": put}),
                )
                done = (K.IRECV, {"peer": there, "size": size, "tag": tag, "request": post})
                ranks[here].append(("MPI_Wait", done))
                ranks[here].append(("MPI_Wait", (K.ISEND_COMPLETE, {"request": put})))
    return ranks


@st.composite
def recordings(draw):
    lists = written(draw(parts()) + draw(parts()), [0] * RANKS)
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    timed = []
    for calls in lists:
        begin = np.cumsum(rng.integers(1, 4, len(calls))).tolist()
        timed.append([(float(at), *call) for at, call in zip(begin, calls, strict=True)])
    return trace_of(timed, [np.arange(RANKS, dtype=np.int32)])


@given(recordings())
def test_any_recording_comes_back_and_replays_alike(trace):
    folded = fold(trace)
    assert_same(unfold(folded), trace)
    assert folded.iterations(np.arange(folded.trace.events)).sum() == trace.events
    assert np.array_equal(times_of(lower(trace), 0), times_of(lower(folded), 0))
    averages = in_microseconds(fold(trace, keep=False))
    loops, average = lower(averages), lower(unfold(averages))
    np.testing.assert_allclose(times_of(loops, 1), times_of(average, 1), rtol=1e-9)


def ring(rounds, between=lambda rank, k: []):
    """Calls of two ranks that send each other a message, round by round."""
    ranks = []
    for rank in range(2):
        calls = []
        for k in range(rounds):
            calls += [("MPI_Send", send(1 - rank)), ("MPI_Recv", recv(1 - rank))]
            calls += between(rank, k)
        ranks.append([(float(at), *call) for at, call in enumerate(calls)])
    return ranks


@pytest.mark.parametrize(("rounds", "loops"), [(1, 2), (2, 0)])
def test_requests_across_the_ends_of_trips_shift_the_loop_or_prevent_it(rounds, loops):
    """A receive is waited for so many rounds after it was posted."""

    def posts(rank, k):
        done = {"peer": 1 - rank, "size": 8, "tag": 5, "request": k - rounds}
        wait = [("MPI_Wait", (K.IRECV, done))] if k >= rounds else []
        post = [("MPI_Irecv", (K.IRECV_REQUEST, {"request": k}))] if k < 20 - rounds else []
        return wait + post

    trace = trace_of(ring(20, posts), [np.arange(2, dtype=np.int32)])
    folded = fold(trace)
    assert_same(unfold(folded), trace)
    assert len(folded.times) == loops
    for begin, end in zip(folded.begin, folded.end, strict=True):
        kinds = folded.trace.kind[begin:end].tolist()
        assert kinds.index(K.IRECV_REQUEST) < kinds.index(K.IRECV)


@pytest.mark.parametrize(
    "call",
    [
        ("MPI_Test", (K.REQUEST_TEST, {"request": 77})),
        ("MPI_Iprobe",),
        ("MPI_Comm_dup", (K.COLLECTIVE_BEGIN, {}), (K.COLLECTIVE_END, {"operation": 17})),
        ("MPI_Isend", (K.ISEND, {"peer": 0, "size": 1, "request": 1})),
    ],
)
def test_what_is_told_by_its_order_stays_as_it_is(call):
    trace = trace_of(ring(10, lambda rank, k: [call]), [np.arange(2, dtype=np.int32)])
    assert not len(fold(trace).times)


ALLREDUCE = {"operation": 11, "size": 16, "received": 16}


def allreduce(comm=0):
    return (
        "MPI_Allreduce",
        (K.COLLECTIVE_BEGIN, {}),
        (K.COLLECTIVE_END, ALLREDUCE | {"comm": comm}),
    )


def test_a_receive_that_nobody_waits_for_leaves_all_as_it_is():
    def once(rank, k):
        return [("MPI_Irecv", (K.IRECV_REQUEST, {"request": 77}))] if k == 0 else []

    assert not len(fold(trace_of(ring(20, once), [np.arange(2, dtype=np.int32)])).times)


@pytest.mark.parametrize(("rounds", "found"), [(0, True), (1, False)])
def test_no_request_is_under_way_at_the_ends_of_loops_of_all_ranks(rounds, found):
    """A receive is waited for behind the collective of the round after it."""

    def posts(rank, k):
        done = {"peer": 1 - rank, "size": 8, "tag": 5, "request": k - rounds}
        wait = [("MPI_Wait", (K.IRECV, done))] if k >= rounds else []
        post = [("MPI_Irecv", (K.IRECV_REQUEST, {"request": k}))] if k < 20 - rounds else []
        return [*post, *(wait if not rounds else []), allreduce(), *(wait if rounds else [])]

    trace = trace_of(ring(20, posts), [np.arange(2, dtype=np.int32)])
    folded = fold(trace)
    assert_same(unfold(folded), trace)
    assert bool(len(folded.times)) == found


@pytest.mark.parametrize("sort", ["requests", "places"])
def test_rounds_in_another_order_are_another_loop(sort):
    """Of two alike requests the second is over first, or a call receives before it sends."""

    def posts(rank, k):
        numbers = [2 * k, 2 * k + 1] if k < 10 else [2 * k + 1, 2 * k]
        post = [("MPI_Irecv", (K.IRECV_REQUEST, {"request": n})) for n in sorted(numbers)]
        about = {"peer": 1 - rank, "size": 8, "tag": 5}
        ends = [(K.IRECV, about | {"request": n}) for n in numbers]
        both = [send(1 - rank), recv(1 - rank)]
        if sort == "places":
            return [("MPI_Sendrecv", *(both if k < 10 else both[::-1]))]
        return [*post, ("MPI_Waitall", *ends)]

    folded = fold(trace_of(ring(20, posts), [np.arange(2, dtype=np.int32)]))
    assert len(folded.times) == 4
    assert folded.times.max() <= 10


def test_collectives_of_some_ranks_do_not_hide_loops_of_all():
    half = [("MPI_Barrier", *allreduce(1)[1:])]
    ranks = [
        [
            (float(3 * k + at), *call)
            for k in range(20)
            for at, call in enumerate((*some, allreduce()))
        ]
        for some in (half, half, [])
    ]
    groups = [np.arange(3, dtype=np.int32), np.arange(2, dtype=np.int32)]
    trace = trace_of(ranks, groups)
    assert fold(trace).times.tolist() == [19] * 3  # the last one ends the trace


def test_counts_of_pairs_keep_their_calls():
    trace = nas_trace("is.S.2", steps=5)
    ends = np.flatnonzero(trace.kind == K.COLLECTIVE_END)
    trace.records.size[:] = np.minimum(trace.records.size, 8)
    trace.records.received[:] = np.minimum(trace.records.received, 8)
    assert len(ends)
    assert len(fold(trace).times)
    none = np.zeros(0, dtype=np.int64)
    assert not len(fold(replace(trace, counts=PairCounts("made", *[none] * 4))).times)


def test_times_that_were_not_the_programs_stay_between_the_same_calls():
    trace = trace_of(ring(40), [np.arange(2, dtype=np.int32)])
    spans = Spans(*(np.array(column) for column in ([1], [30.4], [30.8], [Span.FLUSH])))
    trace = replace(trace, spans=spans)
    folded = fold(trace)
    # The call that it lies before is in none of rank 1's loops.
    ranks = np.searchsorted(folded.trace.offsets, folded.begin, side="right") - 1
    assert folded.times[ranks == 0].sum() - folded.times[ranks == 1].sum() >= 1
    assert_same(unfold(folded), trace)
    lost, found = lower(trace), lower(folded)
    assert [entry.seconds for entry in found.omitted] == pytest.approx(
        [entry.seconds for entry in lost.omitted]
    )
    computed = [float((p.compute * p.iterations()).sum()) for p in (lost, found)]
    assert computed[0] == pytest.approx(computed[1])


def test_one_sided_operations_are_refused():
    trace = trace_of([[(0.0, "MPI_Put", (K.RMA_PUT, {"peer": 0}))]])
    with pytest.raises(TraceError, match="one-sided operations: they cannot be folded"):
        fold(trace)


def test_a_folded_source_is_its_recording_in_loops(tmp_path):
    trace = noisy(nas_trace("lu.S.4"))
    write_trace(trace, tmp_path / "run.otf2")
    source = open_source("folded:run.otf2", tmp_path)
    with pytest.warns(HopmapWarning, match=r"28,842 events: 978 of them listed"):
        calls = source.calls()
    assert np.array_equal(calls.times, fold(trace).times)
    assert source.traffic().same_as(traffic_of(trace))
    before = source.digest()
    write_trace(nas_trace("lu.S.4", steps=2), tmp_path / "run.otf2")
    assert open_source("folded:run.otf2", tmp_path).digest() != before
    with pytest.warns(HopmapWarning, match="nothing repeats"):
        open_source("folded:collective:allreduce=ring,4,8").calls()
    assert open_source("folded:lu.S.4").calls().trace.events == 1050


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("folded:", "expected folded:TRACE"),
        ("folded:stencil:4x4,5pt", "has no calls: expected a trace"),
        ("scaled:64,folded:lu.W.16,lu.W.4", "expected lu.W.16 itself"),
    ],
)
def test_what_cannot_be_folded_is_refused(text, line):
    with pytest.raises(TraceError, match=line):
        open_source(text)
