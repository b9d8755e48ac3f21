"""Every function of MPI that moves data is recorded: no expression leaves one out by accident."""

from __future__ import annotations

import re
import subprocess

import pytest

from hopmap.traces.recorder.build import _BY_HAND, _PROTOTYPE, HOOKS, prototypes
from support.real_mpi import SAYS, installed

MODES = ("", "b", "r", "s")
COLLECTIVES = (
    *("Barrier", "Bcast", "Gather", "Gatherv", "Scatter", "Scatterv", "Allgather", "Allgatherv"),
    *("Alltoall", "Alltoallv", "Alltoallw", "Reduce", "Allreduce", "Reduce_scatter"),
    *("Reduce_scatter_block", "Scan", "Exscan", "Neighbor_allgather", "Neighbor_allgatherv"),
    *("Neighbor_alltoall", "Neighbor_alltoallv", "Neighbor_alltoallw"),
)
ONE_SIDED = ("Put", "Get", "Accumulate", "Get_accumulate")
MOVERS = {
    "3.1": (
        *(f"{mode}send".capitalize() for mode in MODES),
        *(f"I{mode}send" for mode in MODES),
        *(f"{mode}send_init".capitalize() for mode in MODES),
        *("Recv", "Irecv", "Recv_init", "Mrecv", "Imrecv", "Start", "Startall"),
        *("Sendrecv", "Sendrecv_replace", *COLLECTIVES),
        *(f"I{name.lower()}" for name in COLLECTIVES),
        *(*ONE_SIDED, *(f"R{name.lower()}" for name in ONE_SIDED)),
        *("Fetch_and_op", "Compare_and_swap"),
    ),
    "4.0": (
        *(f"{name}_init" for name in COLLECTIVES),
        *("Isendrecv", "Isendrecv_replace", "Psend_init", "Precv_init"),
        *("Pready", "Pready_range", "Pready_list"),
    ),
    "4.1": (),  # has new functions on buffers, requests and errors only
}
"""What moves data between ranks, by the first standard that has it (sections 3 to 12)."""
BARE = re.compile(
    r"File_\w+"  # data of files, which `hopmap info` lists as MPI-IO
    r"|(Open|Close)_port|(Publish|Unpublish|Lookup)_name|Buffer_(detach|flush)|Comm_flush_buffer"
    r"|Parrived|Request_get_status(_all|_any|_some)?|Win_sync"
)
"""Functions that are recorded as calls of which no more is known: none moves data between ranks."""


def test_what_moves_data_is_recorded():
    for standard, names in MOVERS.items():
        forms = [f"{name}{end}" for name in names for end in ("", "_c")]
        header = "\n".join(f"int MPI_{name}(void *buffer, int count);" for name in forms)
        assert list(prototypes(header)) == forms, standard
        assert [name for name in names if name not in HOOKS] == [], standard


@pytest.mark.parametrize("mpi", list(SAYS))
def test_of_an_mpi_each_function_that_may_communicate_has_a_hook_or_moves_nothing(mpi):
    mpicc = installed(mpi).command("mpicc")
    asked = subprocess.run(
        [mpicc, "-E", "-P", "-x", "c", "-"],
        input="#include <mpi.h>\n",
        capture_output=True,
        text=True,
        check=True,
    )
    declared = {name.removesuffix("_c") for name, _ in _PROTOTYPE.findall(asked.stdout)}
    assert {*MOVERS["3.1"]} <= declared
    wrapped = {name.removesuffix("_c") for name in prototypes(asked.stdout)}
    known = {*HOOKS, *_BY_HAND}
    assert {name for name in wrapped - known if not BARE.fullmatch(name)} == set()
    assert {name for names in MOVERS.values() for name in names} & declared <= wrapped
