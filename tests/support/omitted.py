"""An archive of which a replay leaves out many things, and what they are."""

from __future__ import annotations

from otf2.enums import Paradigm, ParameterType

from hopmap.traces.summary import Doubt, Omission
from support.archives import archive_of, region


def made(folder):
    """Two ranks of 10 s each; what rank 0 does besides is left out."""
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


EXPECTED = [
    Omission("flushes of trace buffers", 1, 4.0, 0.2),
    Omission("one-sided calls without records, not simulated", 1, 0.1, 0.005),
    Omission("receives never completed", 1),
    Omission("probes, not simulated", 1),
    Omission("ParameterInt records", 1),
    Doubt("messages that are never received, counted and sent", 1),
]
