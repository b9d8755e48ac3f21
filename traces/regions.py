"""What regions mean to a replay: which are MPI calls, of what sort, and which are none."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Bools


class Role(IntEnum):
    """What a region is; those from CALL to ONE_SIDED are calls of MPI."""

    USER = 0
    CALL = 1
    POLL = 2  # looks whether something is there, and returns at once
    FILE = 3  # MPI-IO
    ONE_SIDED = 4
    TOOL = 5  # of the measurement system: not the program's own time


# C, Fortran (upper or lower case, with underscores behind it, mpi_f08), and the profiling names.
_CALL = re.compile(r"p?mpi_(\w+?)(?:_f08(?:ts)?)?_*", re.IGNORECASE | re.ASCII)
_POLL = re.compile(r"(win_)?test|test(any|some|all)|im?probe|request_get_status(_\w+)?")
_FILE = re.compile(r"file_\w+")
_ONE_SIDED = re.compile(
    r"win_\w+|r?(put|get|accumulate|get_accumulate)(_c)?|(fetch_and_op|compare_and_swap)(_c)?"
)
_SORTS = ((_POLL, Role.POLL), (_FILE, Role.FILE), (_ONE_SIDED, Role.ONE_SIDED))


def mpi_name(region: str) -> str:
    """Return what a region's name says that it calls: "recv" for MPI_Recv, mpi_recv_, PMPI_RECV.

    Names that are not of that form give "".
    """
    found = _CALL.fullmatch(region)
    return found[1].lower() if found else ""


def role_of_call(region: str) -> Role:
    """Sort of a call of MPI, by its name."""
    name = mpi_name(region)
    return next((role for pattern, role in _SORTS if pattern.fullmatch(name)), Role.CALL)


def roles_by_name(regions: Iterable[str]) -> NDArray[np.uint8]:
    """Roles of regions of which no more than the name is known."""
    roles = [role_of_call(name) if mpi_name(name) else Role.USER for name in regions]
    return np.array(roles, dtype=np.uint8)


def is_call(roles: NDArray[np.uint8]) -> Bools:
    """Which roles are those of calls of MPI."""
    return (roles >= Role.CALL) & (roles <= Role.ONE_SIDED)
