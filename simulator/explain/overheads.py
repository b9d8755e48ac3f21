"""How long each row of a program keeps its rank busy with messages, noise and copies left out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.simulator import model
from hopmap.simulator.parameters.parameters import Parameters
from hopmap.simulator.programs.program import Op, Program

Floats = NDArray[np.float64]


class Overheads(NamedTuple):
    """Seconds of each row: before its send is posted, and once what it waited for has arrived."""

    sending: Floats
    receiving: Floats


def overheads(program: Program, parameters: Parameters) -> Overheads:
    """Return what messages cost their ranks, as both packet engines count it.

    What a network interface sends or takes by itself (`SendMode.HARDWARE`) costs nothing; the
    receiver pays where it waits, at a RECV or at the WAIT of an IRECV.
    """
    kind, size, mode = program.kind, program.size, program.mode
    of_bytes = np.where(size < parameters.eager_limit, size * parameters.overhead_per_byte, 0.0)
    busy = mode != model.HARDWARE

    sends = busy & ((kind == Op.SEND) | (kind == Op.ISEND))
    copied = np.where(mode == model.BUFFERED, size * parameters.copy_per_byte, 0.0)
    sending = sends * (parameters.overhead_send + of_bytes + copied)

    of = np.where(kind == Op.WAIT, program.target, np.arange(program.operations))
    takes = busy[of] & ((kind == Op.RECV) | ((kind == Op.WAIT) & (kind[of] == Op.IRECV)))
    of_put = model.receive_overhead(
        model.PUT, parameters.overhead_recv, parameters.overhead_put_latency
    )
    overhead = np.where(mode == model.PUT, of_put, parameters.overhead_recv)
    return Overheads(sending, takes * (overhead + of_bytes)[of])
