"""Runs and programs for other tools: OTF2, Perfetto, and the simulators of `EXPORTS`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from hopmap.arrays import Ints
from hopmap.errors import HopmapWarning
from hopmap.plugins import Table
from hopmap.simulator.model import PUT

if TYPE_CHECKING:
    from hopmap.simulator.programs.program import Program
    from hopmap.topologies import Topology

BYTES_PER_ROW = 100  # in memory: the program without loops, its sizes, tags and computation


class Placed(NamedTuple):
    """Where ranks run, for a simulator that has a network."""

    network: Topology
    zone: str  # a name in `simgrid.ZONES`
    hosts: str  # contents of the file that says the host of each rank


class Export(NamedTuple):
    """A simulator that programs are written for."""

    summary: str  # one line for ``hopmap list formats``
    network: bool  # whether it has one, so that a `Placed` is written as well


EXPORTS: Mapping[str, Export] = {
    "simgrid": Export(
        "SimGrid 3.32: time-independent traces; platform and hosts of a mapping", network=True
    ),
    "goal": Export(
        "LogGOPSim and ATLAHS: one GOAL schedule of the ranks, for any mapping", network=False
    ),
}
# Their modules: ``write(out, program, parameters, placed)`` of each returns the command that
# replays the program there.
WRITERS: Mapping[str, Any] = Table(__name__, {name: name for name in EXPORTS})


def write_out_loops(program: Program, label: str) -> Program:
    """Return a program without its loops, as formats of other simulators have it.

    Warn of sends in another mode than standard, which they lack. Messages call it `label`.
    """
    from hopmap.simulator.programs.unrolling import without_loops
    from hopmap.traces import require_memory

    mode = program.mode[program.sends()]
    puts = mode >= PUT
    counted = {
        "buffered, synchronous or ready sends": int(((mode > 0) & ~puts).sum()),
        "puts, and answers of memory,": int(puts.sum()),
    }
    for kind, sends in counted.items():
        if sends:
            said = f"{program.name}: {sends} {kind} are written as standard"
            warnings.warn(said, HopmapWarning, stacklevel=3)
    operations = int(program.iterations().sum())
    require_memory(
        BYTES_PER_ROW * operations,
        f"{program.name}: {label} of {operations:,} operations",
        "take fewer steps or ranks",
    )
    return without_loops(program)


def message_sizes(program: Program) -> Ints:
    """Bytes of each row; a receive has the bytes of the message that it takes."""
    size = program.size.copy()
    sends, receives = program.sends(), program.receives()
    taken = receives >= 0
    size[receives[taken]] = program.size[sends[taken]]
    return size
