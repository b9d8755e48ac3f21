"""Modes of sending by the names of calls, and in archives: ticks are milliseconds."""

from __future__ import annotations

import pytest

from hopmap.simulator.programs.mpi_calls import SendMode, mode_of
from support.archives import archive_of, finish_of, region


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        *((name, SendMode.BUFFERED) for name in ("MPI_Bsend", "MPI_Ibsend", "mpi_bsend_")),
        *((name, SendMode.SYNCHRONOUS) for name in ("MPI_Ssend", "PMPI_Issend", "MPI_SSEND__")),
        *((name, SendMode.READY) for name in ("MPI_Rsend", "MPI_Irsend", "pmpi_rsend_")),
        ("MPI_Ssend_c", SendMode.SYNCHRONOUS),
        *((name, SendMode.STANDARD) for name in ("MPI_Send", "MPI_Isend", "mpi_send_")),
        *((name, SendMode.STANDARD) for name in ("MPI_Bsend_init", "MPI_Start", "my_mpi_ssend")),
    ],
)
def test_names_of_calls_say_the_mode(name, mode):
    assert mode_of(name) == mode


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_large_buffered_sends_both_ways_run(tmp_path, engine):
    """A megabyte each way, both before their receives: a deadlock if MPI_Bsend could wait."""
    with archive_of(tmp_path / "bsend", 2) as a:
        bsend, recv = region(a, "MPI_Bsend"), region(a, "MPI_Recv")
        for rank, master in enumerate(a.masters):
            events = a.events(master)
            events.enter(0, bsend)
            events.mpi_send(0, 1 - rank, a.world, 0, 2**20)
            events.leave(0, bsend)
            events.enter(500, recv)
            events.mpi_recv(700, 1 - rank, a.world, 0, 2**20)
            events.leave(700, recv)
    assert finish_of(tmp_path / "bsend", engine) == [0.5, 0.5]


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@pytest.mark.parametrize(
    ("called", "ends"), [("MPI_Ssend", 1.0), ("mpi_ssend_", 1.0), ("MPI_Send", 0.0)]
)
def test_a_small_synchronous_send_waits_for_its_receive(tmp_path, engine, called, ends):
    """8 bytes whose receive is posted a second later."""
    with archive_of(tmp_path / "ssend", 2) as a:
        send, recv = region(a, called), region(a, "MPI_Recv")
        sender, receiver = (a.events(master) for master in a.masters)
        sender.enter(0, send)
        sender.mpi_send(0, 1, a.world, 0, 8)
        sender.leave(1000, send)
        receiver.enter(0, a.main)
        receiver.enter(1000, recv)
        receiver.mpi_recv(1000, 0, a.world, 0, 8)
        receiver.leave(1000, recv)
        receiver.leave(1000, a.main)
    assert finish_of(tmp_path / "ssend", engine) == [ends, 1.0]
