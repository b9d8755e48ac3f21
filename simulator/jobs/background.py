"""Traffic of others: nodes that send messages at a rate, whatever becomes of them.

An open loop, as networks are loaded in Dally and Towles, Principles and Practices of
Interconnection Networks, 2004, 23.1: what is sent does not depend on how fast it gets through.
Messages set out at the moments of a Poisson process; nobody receives them, and no rank waits. Such
a load has no end of its own, so that it is made for a time; for a longer time it begins with the
same messages.
"""

from __future__ import annotations

import numpy as np

from hopmap.arrays import Floats, Ints
from hopmap.errors import choice
from hopmap.simulator.parameters.keys import ParameterError
from hopmap.simulator.parameters.parameters import Parameters
from hopmap.simulator.programs.mpi_calls import SendMode
from hopmap.simulator.programs.program import Op, Program, with_finishes
from hopmap.traces import require_memory
from hopmap.traces.patterns.synthetic import PATTERNS, synthetic_traffic

UNIFORM, INCAST = "uniform", "incast"
BYTES_PER_MESSAGE = 200  # of its rows and of an engine's


def background(
    pattern: str,
    ranks: int,
    *,
    rate: float,
    size: int,
    seconds: float,
    seed: int = 0,
    parameters: Parameters | None = None,
) -> Program:
    """Return the traffic of as many ranks as a program.

    Parameters
    ----------
    pattern : str
        "uniform": every message to any other rank; "incast": all but the first to the first; or a
        pattern of `PATTERNS` on a line of the ranks.
    ranks : int
        Which stand on a node each.
    rate : float
        Bytes/s that a rank sends, in the mean.
    size : int
        Bytes of a message.
    seconds : float
        Until when messages set out.
    parameters : Parameters, optional
        Overheads and the scale of computation, so that the rate is kept under them.
    """
    parameters = parameters or Parameters()
    said = f"background {pattern}"
    if pattern not in BACKGROUNDS:
        raise ParameterError(choice("unknown background", pattern, BACKGROUNDS))
    if ranks < 2:
        raise ParameterError(f"{said}: {ranks} nodes for it: expected at least 2")
    if not (rate > 0 and size >= 1):
        raise ParameterError(
            f"{said}: {rate:g} bytes/s in messages of {size} bytes: expected more than 0 of both"
        )
    busy = parameters.overhead_send
    if size < parameters.eager_limit:
        busy += size * parameters.overhead_per_byte
    if size / rate <= busy:
        raise ParameterError(
            f"{said}: {rate:g} bytes/s a node in messages of {size} bytes, each {busy:g} s of "
            f"overhead: expected less than {size / busy:g} bytes/s, or larger messages"
        )
    if parameters.compute_scale <= 0:
        raise ParameterError(f"{said}: compute.scale 0: expected more, it waits between messages")
    require_memory(
        int(BYTES_PER_MESSAGE * ranks * seconds * rate / size),
        f"{said}: {seconds:g} s of it",
        "expected a shorter time, a lower rate or larger messages",
    )
    target = np.zeros(ranks, dtype=np.int64)
    if pattern not in (UNIFORM, INCAST):
        pairs = synthetic_traffic(pattern, (ranks,))
        target[pairs.src] = pairs.dst
    parts: list[tuple[Floats, Ints]] = []
    for rank in range(ranks):
        sends = pattern == UNIFORM or target[rank] != rank
        sent = _moments(size / rate, seconds if sends else 0.0, seed, rank)
        to = np.full(len(sent), target[rank])
        if pattern == UNIFORM:
            others = np.random.default_rng([seed, rank, 1]).integers(ranks - 1, size=len(sent))
            to = others + (others >= rank)
        parts.append((_pauses(sent, busy) / parameters.compute_scale, to))
    return _program(f"{pattern} background", parts, size)


BACKGROUNDS = (UNIFORM, INCAST, *(name for name in PATTERNS if name != UNIFORM))


def _moments(mean: float, seconds: float, seed: int, rank: int) -> Floats:
    """Draw when a rank's messages set out."""
    number = int(seconds / mean) + 16
    while True:
        gaps = np.random.default_rng([seed, rank, 0]).exponential(mean, size=number)
        sent = np.cumsum(gaps)
        if sent[-1] > seconds:
            return sent[sent <= seconds]
        number *= 2


def _pauses(sent: Floats, busy: float) -> Floats:
    """Return what a rank computes before each send, which then keeps it busy for so long."""
    behind = np.arange(len(sent)) * busy
    at = np.maximum.accumulate(sent - behind) + behind if len(sent) else sent
    return np.diff(at, prepend=-busy) - busy


def _program(name: str, parts: list[tuple[Floats, Ints]], size: int) -> Program:
    rank = np.repeat(np.arange(len(parts)), [len(to) for _, to in parts])
    columns = {
        "kind": Op.ISEND,
        "compute": np.maximum(np.concatenate([pauses for pauses, _ in parts]), 0.0),
        "peer": np.concatenate([to for _, to in parts]),
        "tag": 0,
        "context": 0,
        "size": size,
        "mode": SendMode.READY,
    }
    return with_finishes(name, len(parts), rank, columns)
