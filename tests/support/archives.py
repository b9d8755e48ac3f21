"""Archives written with the wheel's own Python API, for what no recording at hand contains."""

from contextlib import contextmanager
from types import SimpleNamespace

import otf2
import pytest
from otf2.enums import GroupType, Paradigm, ParameterType

from hopmap.simulator import Parameters, lower, simulate
from hopmap.topologies import mesh
from hopmap.traces import read_trace
from hopmap.traces.otf2 import archive as reading
from hopmap.traces.summary import Doubt, Omission

from .free_ends import FREE_ENDS

# A network on which nothing takes time.
FREE = Parameters(**FREE_ENDS)


@contextmanager
def archives_read_here():
    """Read sound archives in this process: forking takes longer, and tests/traces/safety has it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "run_guarded", lambda works, *_: [work(None) for work in works])
        yield


@contextmanager
def archive_of(folder, ranks):
    """An archive under construction: MPI_COMM_WORLD, a thread per rank, resolution 1000/s."""
    with otf2.writer.open(str(folder), timer_resolution=1000) as archive:
        definitions = archive.definitions
        machine = definitions.system_tree_node("machine")
        processes = [
            definitions.location_group(f"MPI Rank {rank}", system_tree_parent=machine)
            for rank in range(ranks)
        ]
        masters = [definitions.location("Master thread", group=process) for process in processes]

        def group(members, kind=GroupType.COMM_GROUP):
            return definitions.group("", group_type=kind, paradigm=Paradigm.MPI, members=members)

        group(masters, GroupType.COMM_LOCATIONS)
        yield SimpleNamespace(
            archive=archive,
            definitions=definitions,
            processes=processes,
            masters=masters,
            group=group,
            world=definitions.comm("MPI_COMM_WORLD", group=group(range(ranks))),
            send=definitions.region("MPI_Send", paradigm=Paradigm.MPI),
            main=definitions.region("main", paradigm=Paradigm.USER),
            events=archive.event_writer_from_location,
        )


def region(a, name, paradigm=Paradigm.MPI, **more):
    return a.definitions.region(name, paradigm=paradigm, **more)


def call(events, at, called, until=None, inside=()):
    """A call from `at` to `until`; what is inside is (method, *arguments), at its end."""
    until = at if until is None else until
    events.enter(at, called)
    for method, *arguments in inside:
        getattr(events, method)(until, *arguments)
    events.leave(until, called)


def replayed(program, engine="simpy"):
    """Run a program, a node for each rank, where only computation takes time."""
    network = mesh((program.ranks,)).with_links(bandwidth=1e300, latency=0.0)
    return simulate(program, network, range(program.ranks), engine=engine, parameters=FREE)


def finish_of(folder, engine="simpy"):
    """When each rank of an archive's replay is done, to the clock's millisecond."""
    return replayed(lower(read_trace(folder)), engine).finish.round(9).tolist()


def archive_with_omissions(folder):
    """Write two ranks of 10 s each; a replay leaves out some calls of rank 0."""
    with archive_of(folder, 2) as a:
        wtime, put = region(a, "MPI_Wtime"), region(a, "MPI_Put")
        probe, irecv = region(a, "MPI_Probe"), region(a, "MPI_Irecv")
        number = a.definitions.parameter("n", parameter_type=ParameterType.INT64)
        for rank, master in enumerate(a.masters):
            events = a.events(master)
            events.program_begin(0, "made", [])
            events.enter(0, wtime)
            events.leave(0, wtime)
            if rank == 0:
                events.buffer_flush(1000, 5000)
                events.enter(6000, put)
                events.leave(6100, put)
                events.enter(7000, probe)
                events.mpi_probe(7000, 1, a.world, 1, 0xFFFFFFFFFFFFFFFF)
                events.leave(7000, probe)
                events.enter(7000, irecv)
                events.mpi_irecv_request(7000, 5)
                events.leave(7000, irecv)
                events.enter(7000, a.send)
                events.mpi_send(7000, 1, a.world, 1, 8)
                events.leave(7000, a.send)
                events.parameter_int(7000, number, 3)
            events.enter(10000, wtime)
            events.leave(10000, wtime)
            events.program_end(10000, 0)
        region(a, "main", Paradigm.USER)
    return folder


OMISSIONS = [
    Omission("flushes of trace buffers", 1, 4.0, 0.2),
    Omission("one-sided calls without records, not simulated", 1, 0.1, 0.005),
    Omission("receives never completed", 1),
    Omission("probes, not simulated", 1),
    Omission("ParameterInt records", 1),
    Doubt("messages that are never received, counted and sent", 1),
]
