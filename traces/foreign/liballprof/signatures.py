"""Arguments of MPI's functions as liballprof lists them, between the times of a call.

Source: spcl/LogGOPSim, src/liballprof/gencode.py and mpi_header.h. Every argument stands in order,
behind a colon: an address, a number or a handle as one number; a datatype as number, size and
extent; a communicator as handle, own rank and size; counts and displacements as an address and one
number for each member.
"""

from __future__ import annotations

from collections.abc import Mapping

from hopmap.traces.trace import Collective

ADDRESS, NUMBER, TYPE, COMMUNICATOR, COUNTS = "a", "n", "t", "c", "v"
WIDTHS = {ADDRESS: 1, NUMBER: 1, TYPE: 3, COMMUNICATOR: 3}

_SEND = "buf:a count:n type:t peer:n tag:n comm:c"
_RECV = _SEND
_INIT = f"{_SEND} request:a"
_PAIRS = "sbuf:a scounts:v sdispls:v stype:t rbuf:a rcounts:v rdispls:v rtype:t comm:c"
_EACH = "sbuf:a count:n type:t rbuf:a rcount:n rtype:t"

_TEXTS: dict[str, str] = {
    **dict.fromkeys(("Send", "Bsend", "Ssend", "Rsend"), _SEND),
    **dict.fromkeys(("Isend", "Ibsend", "Issend", "Irsend"), _INIT),
    **dict.fromkeys(("Send_init", "Bsend_init", "Ssend_init", "Rsend_init", "Recv_init"), _INIT),
    "Recv": f"{_RECV} status:a",
    "Irecv": _INIT,
    "Sendrecv": (
        "sbuf:a count:n type:t peer:n tag:n rbuf:a rcount:n rtype:t source:n rtag:n comm:c status:a"
    ),
    "Sendrecv_replace": "buf:a count:n type:t peer:n tag:n source:n rtag:n comm:c status:a",
    "Wait": "request:a status:a",
    "Test": "request:a flag:a status:a",
    "Waitall": "number:n request:a statuses:a",
    "Waitany": "number:n request:a index:a status:a",
    "Waitsome": "number:n request:a out:a indices:a statuses:a",
    "Testall": "number:n request:a flag:a statuses:a",
    "Testany": "number:n request:a index:a flag:a status:a",
    "Testsome": "number:n request:a out:a indices:a statuses:a",
    "Start": "request:a",
    "Startall": "number:n request:a",
    "Request_free": "request:a",
    "Cancel": "request:a",
    "Barrier": "comm:c",
    "Bcast": "buf:a count:n type:t root:n comm:c",
    "Reduce": "sbuf:a rbuf:a count:n type:t op:n root:n comm:c",
    **dict.fromkeys(("Allreduce", "Scan", "Exscan"), "sbuf:a rbuf:a count:n type:t op:n comm:c"),
    **dict.fromkeys(("Gather", "Scatter"), f"{_EACH} root:n comm:c"),
    **dict.fromkeys(("Allgather", "Alltoall"), f"{_EACH} comm:c"),
    "Gatherv": "sbuf:a count:n type:t rbuf:a counts:v displs:v rtype:t root:n comm:c",
    "Scatterv": "sbuf:a counts:v displs:v stype:t rbuf:a count:n type:t root:n comm:c",
    "Allgatherv": "sbuf:a count:n type:t rbuf:a counts:v displs:v rtype:t comm:c",
    "Alltoallv": _PAIRS,
    "Alltoallw": _PAIRS.replace("type:t", "type:a"),
    "Reduce_scatter": "sbuf:a rbuf:a counts:v type:t op:n comm:c",
    "Comm_dup": "comm:c new:a",
    "Comm_split": "comm:c color:n key:n new:a",
    "Comm_create": "comm:c group:n new:a",
    "Cart_create": "comm:c dims:n sizes:a periods:a reorder:n new:a",
    "Cart_sub": "comm:c remain:a new:a",
    "Graph_create": "comm:c nodes:n index:a edges:a reorder:n new:a",
}

SIGNATURES: Mapping[str, tuple[tuple[str, str], ...]] = {
    f"MPI_{name}": tuple((arg[:-2], arg[-1]) for arg in text.split())
    for name, text in _TEXTS.items()
}
"""Names and kinds of arguments of the functions that say something of messages."""

OPERATIONS: Mapping[str, Collective] = {
    **{f"MPI_{each.name.capitalize()}": each for each in Collective if each < 17},
    **dict.fromkeys(
        ("MPI_Comm_dup", "MPI_Comm_split", "MPI_Comm_create", "MPI_Cart_create", "MPI_Cart_sub"),
        Collective.CREATE_HANDLE,
    ),
    "MPI_Graph_create": Collective.CREATE_HANDLE,
}
"""What functions that are collective on the communicator that they name do."""


def place(function: str, argument: str, members: int = 0) -> int | None:
    """Fields of a line before an argument's, the function's name and the first time apart.

    Parameters
    ----------
    members : int
        Of the communicator, which counts have one of each.
    """
    at = 0
    for name, kind in SIGNATURES[function]:
        if name == argument:
            return at
        at += 1 + members if kind == COUNTS else WIDTHS[kind]
    return None


def widths(function: str) -> tuple[int, int]:
    """Fields of a function's arguments: those that are always there, and lists of counts."""
    kinds = [kind for _, kind in SIGNATURES[function]]
    counts = kinds.count(COUNTS)
    return sum(WIDTHS.get(kind, 1) for kind in kinds), counts
