"""Modes of sending by the names of calls."""

from __future__ import annotations

import pytest

from hopmap.simulator.programs.send_modes import SendMode, mode_of


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
