"""Programs as GOAL schedules, the text that LogGOPSim's and ATLAHS' txt2bin reads.

Every rank is a list of labelled operations, ``calc`` nanoseconds, ``send`` and ``recv`` bytes, and
of what each waits for: ``requires`` the end of another, or ``irequires`` its begin, which for a
send means that it may still be under way. Here each operation follows the one before it in its
task by its end, or by its begin if that is an ISEND or IRECV; a WAIT is a ``calc 0`` that
requires the end of what it waits for. Other tasks hang on their START, and are joined likewise.
Collectives are written as their messages, so that both simulators replay the same ones.

A message of 0 bytes is written as one of 1: LogGP charges (bytes - 1) G, and LogGOPSim does so
without asking. Overheads are LogGOPSim's options. It receives where the processor is free, where
hopmap receives at the RECV or WAIT, and its receiver is busy until the last byte: with messages
that come one at a time both have the same times, otherwise they may differ.

Sources: Hoefler, Siebert and Lumsdaine, Group operation assembly language, ICPP 2009;
spcl/LogGOPSim, src/LogGOPSim/txt2bin.re.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from hopmap.arrays import Ints
from hopmap.simulator.parameters.parameters import Parameters
from hopmap.simulator.programs.program import Op, Program
from hopmap.traces.safety.atomic_files import replacing

from . import Placed, message_sizes, write_out_loops

NANOSECOND = 1e-9


def may_write(_out: Path) -> bool:
    """Whether a place may be replaced: any file."""
    return True


def write(out: Path, program: Program, parameters: Parameters, _placed: Placed | None) -> str:
    """Write a program; return the command to replay it."""
    write_goal(out, program)
    options = " ".join(loggops_options(parameters))
    return f"txt2bin -i {out} -o {out}.bin && LogGOPSim -f {out}.bin {options}"


def write_goal(path: str | Path, program: Program) -> None:
    """Write a program as one GOAL file, which appears whole."""
    program = write_out_loops(program, "a schedule")
    # One number for each tag of a communicator or collective.
    pairs = np.stack((program.context, program.tag))
    tags = np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
    sizes = np.maximum(message_sizes(program), 1)
    pause = _nanoseconds(program)
    edges = np.searchsorted(program.rank_of, np.arange(program.ranks + 1))
    with replacing(path) as partial, partial.open("w", encoding="ascii") as file:
        file.write(f"num_ranks {program.ranks}\n")
        for rank in range(program.ranks):
            file.write(f"\nrank {rank} {{\n")
            tasks = range(edges[rank], edges[rank + 1])
            file.writelines(_lines(program, tasks, tags, sizes, pause))
            file.write("}\n")


def loggops_options(parameters: Parameters) -> list[str]:
    """Return the options with which LogGOPSim has hopmap's end points, in whole nanoseconds.

    L is the latency of injection and ejection, without hops; o the mean of the two overheads.
    """
    figures = {
        "L": parameters.injection_latency + parameters.ejection_latency,
        "o": (parameters.overhead_send + parameters.overhead_recv) / 2,
        "g": parameters.gap,
        "G": parameters.gap_per_byte,
    }
    options = [f"--LogGOPS_{key}={round(value / NANOSECOND)}" for key, value in figures.items()]
    # Eager to hopmap is what is below the limit, to LogGOPSim what is not above.
    largest = min(max(parameters.eager_limit, 1), 2**31) - 1
    return [*options, "--LogGOPS_O=0", f"--LogGOPS_S={largest}"]


def _lines(program: Program, tasks: range, tags: Ints, sizes: Ints, pause: Ints) -> Iterator[str]:
    """Operations of one rank, task after task; labels are rows, c those that compute."""
    begins = _begins(program, tasks)
    joins: list[str] = []
    for task in tasks:
        before = begins.get(task, "")
        first, end = int(program.offsets[task]), int(program.offsets[task + 1])
        columns = (program.kind, program.peer, tags, sizes, program.target, pause)
        rows = zip(range(first, end), *(c[first:end].tolist() for c in columns), strict=True)
        for row, kind, peer, tag, size, target, work in rows:
            if work:
                yield from _operation(f"c{row}", f"calc {work}", before)
                before = f"requires c{row}"
            label, text, more = f"l{row}", "calc 0", ""
            if kind in (Op.SEND, Op.ISEND):
                text = f"send {size}b to {peer} tag {tag}"
            elif kind in (Op.RECV, Op.IRECV):
                text = f"recv {size}b from {peer} tag {tag}"
            elif kind == Op.WAIT:
                if program.kind[target] == Op.START:
                    # The end of the task that it began, which is written further below.
                    over = int(program.offsets[int(program.target[target]) + 1]) - 1
                    joins.append(f"{label} requires l{over}\n")
                else:
                    more = f"requires l{target}"
            elif kind == Op.REPEAT or (kind == Op.FINISH and task == tasks[0]):
                continue
            yield from _operation(label, text, before, more)
            posted = kind in (Op.ISEND, Op.IRECV)
            before = f"{'irequires' if posted else 'requires'} {label}"
    yield from joins


def _operation(label: str, text: str, *needs: str) -> Iterator[str]:
    yield f"{label}: {text}\n"
    for need in needs:
        if need:
            yield f"{label} {need}\n"


def _begins(program: Program, tasks: range) -> dict[int, str]:
    """By task, the START that it requires."""
    first, end = int(program.offsets[tasks[0]]), int(program.offsets[tasks[-1] + 1])
    starts = first + np.flatnonzero(program.kind[first:end] == Op.START)
    return {int(program.target[row]): f"requires l{row}" for row in starts.tolist()}


def _nanoseconds(program: Program) -> Ints:
    """Return computation before each row, its sums along a task right to a nanosecond."""
    worked = program.compute / NANOSECOND
    rounded = np.empty(len(worked), dtype=np.int64)
    for begin, end in pairwise(program.offsets.tolist()):  # a sum of all would lose nanoseconds
        rounded[begin:end] = np.diff(np.rint(np.cumsum(worked[begin:end])), prepend=0)
    return rounded
