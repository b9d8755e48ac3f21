"""One call as a program: the same as that of a trace with this call alone."""

from dataclasses import replace

import numpy as np
import pytest

from hopmap.api.workload import Workload
from hopmap.simulator import ALGORITHMS, Op, Parameters, simulate
from hopmap.simulator.collectives.schedules import AlgorithmError
from hopmap.simulator.measured import prediction
from hopmap.simulator.measured.files import MeasuredError
from hopmap.simulator.measured.known_names import NO_NAME
from hopmap.simulator.measured.names import Known, lookup
from hopmap.simulator.measured.prediction import (
    CHANGED,
    MESSAGE,
    NOT_SO_MANY,
    NOTHING,
    ON_GPU,
    PORTS,
    SQUARE,
    TOO_LARGE,
    TOO_MANY,
    bytes_moved,
    call_program,
    call_time,
    dims_of,
    nodes_of_ranks,
    predict,
)
from hopmap.simulator.programs.mpi_calls import SendMode
from hopmap.topologies import mesh, topology_from_spec, torus
from hopmap.traces.patterns.collectives import OPERATIONS
from hopmap.traces.sources import open_source
from support.free_ends import FREE
from support.measured_calls import measured_of

COLUMNS = (
    "offsets", "rank_of", "kind", "compute", "peer", "tag", "context", "size", "target", "mode",
)  # fmt: skip
SIX = ("bine_folded", "bine_halving_in_turns", "bine_any_even")
OPTIONS = {
    "bcast": ("chain(fanout=4, segment=0)", "bine(puts=1, segment=1000)"),
    "reduce": ("bine(puts=1, ports=2)",),
    "allreduce": ("bine_halving(segment=1000)",),
}


@pytest.mark.parametrize("members", [2, 6, 8])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_call_is_the_program_that_a_trace_of_it_becomes(operation, members):
    size = members * 1000
    for algorithm in (*ALGORITHMS[operation], *OPTIONS.get(operation, ())):
        powers_only = algorithm.startswith(("bine", "torus")) and algorithm not in SIX
        if members == 6 and powers_only:
            with pytest.raises(AlgorithmError, match="6 members: expected"):
                call_program(operation, algorithm, members, size)
            continue
        call = call_program(operation, algorithm, members, size)
        source = open_source(f"collective:{operation}={algorithm},{members},{size}")
        lowered = Workload(source).program()
        for column in COLUMNS:
            same = np.array_equal(getattr(call, column), getattr(lowered, column))
            assert same, (algorithm, column)
        for here, there in zip(call.work, lowered.work, strict=True):
            assert np.array_equal(here, there), algorithm
        assert call.chosen == lowered.chosen
        assert {k: v.tolist() for k, v in call.collectives.items()} == {
            k: v.tolist() for k, v in lowered.collectives.items()
        }


@pytest.mark.parametrize(
    ("operation", "algorithm", "size", "instead"),
    [
        # Elements have 4 bytes: Open MPI's ring needs one for each of 8 ranks.
        ("allreduce", "ring", 31, "recursive_doubling"),
        ("allreduce", "ring", 32, "ring"),
        ("bcast", "scatter_allgather", 31, "linear"),
        ("allreduce", "bine_halving", 31, "bine_halving"),
    ],
)
def test_for_few_elements_open_mpi_takes_another_algorithm(operation, algorithm, size, instead):
    assert call_program(operation, algorithm, 8, size).chosen == {operation: {instead: 1}}


NO_ENDS = Parameters(**FREE)
SIZE, SPEED = 2**20, 1e9


def row(collective, algorithm, size=SIZE, **more):
    return {
        "collective": collective, "algorithm": algorithm, "buffer_bytes": size, "median_ns": 1.0,
    } | more  # fmt: skip


def time_of(network, *given, parameters=NO_ENDS):
    return predict(measured_of([row(*given)]), [network], parameters)


@pytest.mark.parametrize(
    ("collective", "algorithm", "buffers"),
    [
        ("bcast", "default-pipeline", 3),  # unsegmented: three hops, one after the other
        ("allgather", "default-ring", 3 / 4),  # three blocks of a quarter
        ("allreduce", "default-ring", 2 * 3 / 4),
        ("reduce_scatter", "default-ring", 3 / 4),
    ],
)
def test_times_on_a_ring_of_four_are_closed_forms(collective, algorithm, buffers):
    network = torus((4,)).with_links(bandwidth=SPEED, latency=0.0)
    found = time_of(network, collective, algorithm)
    assert found.why == ("",)
    assert found.time[0] == pytest.approx(buffers * SIZE / SPEED, rel=1e-9)


@pytest.mark.parametrize("operation", ["bcast", "alltoall", "gather", "allreduce"])
def test_the_buffer_is_the_whole_of_what_the_data_say(operation):
    # A block is buffer / p; what bcast and reductions carry is the buffer.
    volume = bytes_moved(operation, 64, 4)
    assert (
        volume.sum() == {"bcast": 64, "alltoall": 4 * 64, "gather": 64, "allreduce": 64}[operation]
    )


def test_every_algorithm_of_a_measured_operation_makes_a_program_that_ends():
    for operation in ("bcast", "reduce", "allreduce", "allgather", "alltoall", "gather", "scatter"):
        for algorithm in ALGORITHMS[operation]:
            program = call_program(operation, algorithm, 8, 4096)
            assert simulate(program, torus((2, 2, 2)), np.arange(8)).makespan > 0


@pytest.mark.parametrize("puts", [0, 1])
def test_an_algorithm_that_puts_is_puts_at_both_ends(puts):
    program = call_program("bcast", f"bine(puts={puts})", 8, 4096)
    moves = np.isin(program.kind, (Op.SEND, Op.ISEND, Op.RECV, Op.IRECV))
    assert (program.mode[moves] == (SendMode.PUT if puts else SendMode.STANDARD)).all()
    assert not program.mode[~moves].any()


def test_how_many_packets_stand_for_a_large_message_hardly_matters(monkeypatch):
    network = torus((4, 4))
    given = [row("alltoall", "default-pairwise"), row("bcast", "default-binomial")]
    times = []
    for packets in (prediction.FEWEST, 8 * prediction.PACKETS):
        monkeypatch.setattr(prediction, "PACKETS", packets)
        times.append(predict(measured_of(given), [network], replace(NO_ENDS, packet_size=1)).time)
    assert times[0] == pytest.approx(times[1], rel=0.03)


@pytest.mark.parametrize(("rows", "made"), [(10**6, 1), (0, 2)])
def test_programs_are_kept_unless_they_are_large(monkeypatch, rows, made):
    calls = []

    def call(*given, **more):
        calls.append(given)
        return call_program(*given, **more)

    monkeypatch.setattr(prediction, "KEPT_ROWS", rows)
    monkeypatch.setattr(prediction, "_kept", {})
    monkeypatch.setattr(prediction, "call_program", call)
    once, again = (time_of(torus((4,)), "bcast", "default-binomial").time for _ in range(2))
    assert once == again
    assert len(calls) == made


def test_calls_that_differ_in_name_alone_are_simulated_once(monkeypatch):
    made = []

    def time_of_call(entry, size, *_):
        made.append((entry.algorithm, size))
        return 1.0

    monkeypatch.setattr(prediction, "call_time", time_of_call)
    names = ("default-binomial", "binomial_ompi", "default-pipeline")
    calls = [row("bcast", name, size) for name in names for size in (64, 128)]
    found = predict(measured_of(calls), [torus((4,))], NO_ENDS)
    assert found.time.tolist() == [1.0] * 6
    assert found.ranks.tolist() == [4] * 6
    binomial, pipeline = "binomial(segment=0)", "pipeline(segment=0)"
    assert sorted(made) == [(name, size) for name in (binomial, pipeline) for size in (64, 128)]


def test_unknown_names_gpu_buffers_and_what_is_too_large_are_told_and_not_simulated():
    network = torus((4,))
    rows = [row("bcast", "default-trix3"), row("bcast", "default-binomial", gpu_aware="yes")]
    found = predict(measured_of(rows), [network], NO_ENDS)
    assert found.why == (NO_NAME, ON_GPU)
    assert np.isnan(found.time).all()
    three = [row("bcast", "default-binomial", 64)]
    enough = 3 * (1 + MESSAGE)
    assert predict(measured_of(three), [network], NO_ENDS, limit=enough).why == ("",)
    assert predict(measured_of(three), [network], NO_ENDS, limit=enough - 1).why == (TOO_LARGE,)


def test_calls_in_which_everyone_talks_to_everyone_are_told_too_large_before_they_are_made(
    monkeypatch,
):
    monkeypatch.setattr(prediction, "call_program", pytest.fail)
    calls = measured_of([row("alltoall", "default-pairwise", 2**22)])
    assert predict(calls, [torus((64, 64))], NO_ENDS).why == (TOO_LARGE,)


@pytest.mark.parametrize("operation", ["allgather", "allreduce", "alltoall", "bcast", "gather",
                                       "reduce", "reduce_scatter", "scatter"])  # fmt: skip
def test_who_talks_to_everyone_is_listed(operation):
    members = 64
    for name in ALGORITHMS[operation]:
        program = call_program(operation, name, members, 4 * members * members)
        many = len(program.sends()) >= members * members / 2
        assert many == (name in SQUARE.get(operation, ())), name


def test_ranks_sit_on_the_nodes_of_the_allocation_one_beside_the_other():
    job = replace(mesh((8,)), order=np.array([5, 2, 7]))
    assert nodes_of_ranks(job, 2, 2, "here").tolist() == [5, 5, 2, 2]
    assert nodes_of_ranks(job, 0, 1, "here").tolist() == [5, 2, 7]
    assert nodes_of_ranks(mesh((3,)), 0, 1, "here").tolist() == [0, 1, 2]


def test_calls_on_other_numbers_of_nodes_than_there_are_are_refused():
    with pytest.raises(MeasuredError, match="3 nodes: torus:4 has 4: expected as many"):
        calls = measured_of([row("bcast", "default-binomial", nodes=3)])
        predict(calls, [torus((4,))], NO_ENDS)
    with pytest.raises(MeasuredError, match="4 nodes: mesh:8 has 2: expected at most as many"):
        nodes_of_ranks(replace(mesh((8,)), order=np.array([1, 2])), 4, 1, "times.csv")


@pytest.mark.parametrize("name", ["default-default", "default-crp", "default-3dtorus", "strange"])
def test_names_without_a_public_definition_are_not_known(name):
    assert all(lookup(c, name) is None for c in ("allgather", "alltoall", "bcast"))


def test_known_names_are_algorithms_that_exist_with_their_options():
    assert lookup("bcast", "default-chain") == Known("bcast", "chain(fanout=4, segment=0)")
    assert lookup("alltoall", "default-linear-sync") == Known("alltoall", "linear_sync")


def test_names_of_the_authors_library_take_the_torus_their_segments_and_puts():
    name = "BINE-BINOMIAL_TREE-UTOFU-65536-1"
    assert lookup("bcast", name, "4x2x2") == Known(
        "bcast", "bine(dims=4x2x2, segment=65536, puts=1)", puts=True, kept=True, prepares=True
    )
    over_mpi = lookup("allgather", "BINE-VEC_DOUBLING_CONT_PERMUTE-MPI-0-1", "4x2x2")
    assert over_mpi == Known("allgather", "bine(dims=4x2x2)", kept=True, prepares=True)
    assert lookup("allgather", "BINE-VEC_DOUBLING_CONT_PERMUTE-UTOFU-0-6", "4x4x4") is None


def test_who_prepares_does_so_before_everything_and_who_keeps_buffers_has_none_to_allocate():
    name, size = "BINE-VEC_DOUBLING_CONT_PERMUTE-MPI-0-1", 2**20
    node_of = np.arange(8)
    times = {}
    for puts, new in ((0.0, 0.0), (1e-3, 0.0), (1e-3, 1e-9)):
        parameters = replace(
            NO_ENDS,
            collective_put_setup=puts,
            collective_fresh_memory_per_byte=new,
            collective_fresh_memory_threshold=1,
        )
        for entry in (lookup("allgather", name, "8"), lookup("allgather", "default-bruck")):
            times[entry.algorithm, puts, new] = call_time(
                entry, size, torus((8,)), node_of, parameters
            )
    bine = lookup("allgather", name, "8").algorithm
    assert times[bine, 1e-3, 0.0] == pytest.approx(times[bine, 0.0, 0.0] + 1e-3)
    assert times[bine, 1e-3, 1e-9] == times[bine, 1e-3, 0.0]
    assert times["bruck", 1e-3, 0.0] == times["bruck", 0.0, 0.0]
    assert times["bruck", 1e-3, 1e-9] > times["bruck", 0.0, 0.0] + 0.7e-9 * size


def test_puts_leave_at_once_and_messages_of_mpi_after_a_gap():
    slow = replace(NO_ENDS, gap=1e-3)
    for name, gaps in (("BINE-BINOMIAL_TREE-UTOFU-0-1", 0), ("default-linear", 6)):
        collective = "scatter" if gaps else "bcast"
        entry = lookup(collective, name.replace("linear", "basic-linear"), "8")
        without, with_gap = (
            call_time(entry, 1024, torus((8,)), np.arange(8), p) for p in (NO_ENDS, slow)
        )
        assert with_gap - without == pytest.approx(gaps * 1e-3, rel=1e-3)


def test_what_the_authors_have_over_mpi_for_a_line_of_ranks_takes_no_torus_and_no_segments():
    for collective, name, ours in (
        ("gather", "BINE-BINOMIAL_TREE_CONT_PERMUTE-MPI-0-1", "bine_ranges"),
        ("reduce", "BINE-BINOMIAL_TREE-MPI-1048576-1", "bine"),
        ("alltoall", "BINE-LOG-MPI-0-1", "bine"),
    ):
        assert lookup(collective, name, "4x2x2") == Known(collective, ours)


def test_puts_go_by_no_buffer():
    """A byte below the eager limit costs both sides nothing: it is put where it belongs."""
    network = torus((2,)).with_links(bandwidth=SPEED, latency=0.0)
    slow = replace(NO_ENDS, overhead_per_byte=1.0)
    call = "bcast", "BINE-BINOMIAL_TREE_TMPBUF-UTOFU-0-1", 64
    assert time_of(network, *call, parameters=slow).time[0] == pytest.approx(64 / SPEED)
    assert time_of(network, "bcast", "default-binomial", 64, parameters=slow).time[0] > 64


def test_several_ports_are_told_and_not_simulated():
    found = time_of(torus((2, 2, 2)), "bcast", "BINE-BINOMIAL_TREE-UTOFU-0-6")
    assert found.why == (PORTS,)


def test_lengths_of_a_torus_are_those_that_ranks_follow_last_first():
    assert dims_of(torus((2, 3, 4))) == "4x3x2"
    assert dims_of(topology_from_spec("tofud:job=2x4x8,order=YZX")) == "2x8x4"
    assert dims_of(topology_from_spec("fattree:4x4")) == ""


def test_calls_of_changed_mpis_of_no_elements_and_of_too_many_ranks_are_told():
    rows = [
        row("allgather", "ring_ompi", mpi="customOMPI", nodes=4),
        row("allgather", "ring_ompi", 4 * 4 - 1, mpi="OMPI", nodes=4),
        row("bcast", "binomial_ompi", 4 * 4 - 1, nodes=4),
        row("allgather", "ring_ompi", 4 * 4, nodes=4),
    ]
    assert predict(measured_of(rows), [torus((4,))], NO_ENDS).why == (CHANGED, NOTHING, "", "")
    few = predict(measured_of(rows), [torus((4,))], NO_ENDS, ranks=3)
    assert few.why == (CHANGED, TOO_MANY, TOO_MANY, TOO_MANY)


def test_an_algorithm_that_is_not_for_so_many_ranks_is_told():
    assert time_of(torus((6,)), "allreduce", "bine_bdw_remap_over").why == (NOT_SO_MANY,)


def test_of_very_many_segments_the_later_ones_take_as_long_as_those_before(monkeypatch):
    network, call = torus((2, 2)), ("bcast", "BINE-BINOMIAL_TREE-UTOFU-4096-1", 2**20)
    whole = time_of(network, *call).time
    monkeypatch.setattr(prediction, "SEGMENTS", 64)
    assert time_of(network, *call).time == pytest.approx(whole, rel=0.01)
