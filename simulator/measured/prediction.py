"""What the model says of measured collectives: one call, all ranks at once, the last one's end."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hopmap.arrays import Floats, Ints
from hopmap.progress import Progress, silent
from hopmap.simulator.collectives.algorithms import schedule_call
from hopmap.simulator.collectives.schedules import AlgorithmError, cut
from hopmap.simulator.deadlock import DeadlockError
from hopmap.simulator.in_threads import in_threads
from hopmap.simulator.packets import compiled_engine
from hopmap.simulator.parameters.parameters import Parameters
from hopmap.simulator.programs.from_collectives import program_of_call
from hopmap.simulator.programs.program import Program
from hopmap.simulator.run_plan import plan_run
from hopmap.topologies import Topology

from .files import Measured, MeasuredError
from .known_names import explain_unknown
from .names import SEVERAL_PORTS, Known, lookup

ELEMENT = 4  # bytes of an element in the measured calls, an int
WHOLE = ("bcast", "reduce", "allreduce")

PACKETS = 64  # of the largest message of a call, at most
FEWEST = 8  # where that would be more than so many packets in all
ENOUGH = 50_000
SEGMENTS = 1024  # of a buffer that is simulated
MOST = 20_000_000  # packets of a call that is simulated, some 20 s; a message is as much as
MESSAGE = 4  # more of them
# Algorithms in which everyone talks to everyone else, or as often.
SQUARE: Mapping[str, tuple[str, ...]] = {
    "allgather": ("ring", "neighbour_exchange", "sparbit", "bine_blocks", "bine_any_even"),
    "allreduce": ("ring", "segmented_ring", "allgather_reduce", "bine_any_even"),
    "alltoall": ("linear", "linear_sync", "pairwise"),
    "bcast": ("scatter_allgather_ring",),
    "reduce_scatter": ("ring", "pairwise", "bine_any_even"),
}
KEPT, KEPT_ROWS = 256, 100_000  # programs, and rows of each: 1 GB at most
ON_GPU = "buffers on GPUs"
CHANGED = "an MPI that was changed, in which names mean something else"
TOO_MANY = "more ranks than --ranks"
NOTHING = "less than an element for every rank: nothing is sent"
TOO_LARGE, NOT_SO_MANY = "too large to simulate", "not for so many ranks"
STUCK = "gets stuck: its sends wait for each other"
PORTS = "several ports, a thread for each: not modelled"
_kept: dict[tuple[Known, int, int], Program] = {}


def bytes_moved(operation: str, size: int, members: int) -> Ints:
    """Return what a call moves, as algorithms take it, of a buffer of so many bytes in all.

    It is what broadcasts and reductions to all or one carry (`WHOLE`, shape (1,)); what gathers
    collect from all, and what scatters and scattered reductions share out (shape (members,)).
    Exchanges send equal blocks of ``size // members`` bytes, shape (members, members).
    """
    if operation in WHOLE:
        return np.array([size], dtype=np.int64)
    if operation == "alltoall":
        return np.full((members, members), size // members, dtype=np.int64)
    return cut(size, members)


def call_program(
    operation: str, algorithm: str, members: int, size: int, *, puts: bool = False
) -> Program:
    """Lower one call on all ranks, rank 0 the root, by an algorithm as `parse_algorithm` reads it.

    `size` is bytes of the buffer, see `bytes_moved`. With puts messages go into memory that is
    there, and wait for no receive, even if the algorithm does not say so itself.
    """
    volume = bytes_moved(operation, size, members)
    chosen = schedule_call(operation, algorithm, members, 0, volume, size // ELEMENT)
    if puts:
        chosen = chosen._replace(schedule=chosen.schedule._replace(puts=True))
    return program_of_call(chosen, members)


@dataclass(frozen=True, eq=False)
class Prediction:
    """Predicted times."""

    time: Floats  # seconds of each entry; NaN of those that are not simulated
    why: tuple[str, ...]  # why an entry is not simulated; empty of the others
    ranks: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int64))  # of each entry's call


def predict(
    measured: Measured,
    networks: Sequence[Topology],
    parameters: Parameters | Sequence[Parameters],
    *,
    ranks: int = 0,
    limit: int = MOST,
    progress: Progress = silent,
) -> Prediction:
    """Simulate every call whose algorithm has a public definition, each distinct one once.

    Networks are of each file, with the hosts of a job, or all nodes in their order; parameters are
    of all files, or of each. Calls of more than `ranks` ranks are not simulated, 0 for any number,
    nor calls of more than `limit` packets, a message counting as `MESSAGE` more.
    """
    per_file = [parameters] * len(networks) if isinstance(parameters, Parameters) else parameters
    calls: dict[tuple[Known, int, int, int, int], list[int]] = {}
    time, why = np.full(len(measured), np.nan), [""] * len(measured)
    for k in range(len(measured)):
        file, size = int(measured.file[k]), int(measured.size[k])
        entry = lookup(measured.collective[k], measured.algorithm[k], dims_of(networks[file]), size)
        why[k] = not_simulated(measured, k, entry, networks[file], ranks)
        if not why[k] and entry is not None:
            call = entry, size, file, int(measured.nodes[k]), int(measured.tasks[k])
            calls.setdefault(call, []).append(k)

    def simulate(call: tuple[Known, int, int, int, int], check: Progress) -> tuple[float, str]:
        entry, size, file, nodes, tasks = call
        node_of = nodes_of_ranks(networks[file], nodes, tasks, measured.files[file])
        try:
            found = call_time(entry, size, networks[file], node_of, per_file[file], limit, check)
        except AlgorithmError:
            return np.nan, NOT_SO_MANY
        except DeadlockError:
            return np.nan, STUCK
        return found, TOO_LARGE if np.isnan(found) else ""

    for done, (rows, found) in enumerate(
        zip(calls.values(), in_threads(simulate, calls), strict=True)
    ):
        k = rows[0]
        named = f"{measured.collective[k]} {measured.algorithm[k]}, {measured.size[k]} bytes"
        progress(done, len(calls), named)
        for k in rows:
            time[k], why[k] = found
    at = zip(measured.file.tolist(), measured.nodes.tolist(), measured.tasks.tolist(), strict=True)
    of_calls = [ranks_of(networks[file], nodes, tasks) for file, nodes, tasks in at]
    return Prediction(time, tuple(why), np.array(of_calls, dtype=np.int64))


def ranks_of(network: Topology, nodes: int, tasks: int) -> int:
    """Ranks of a call on so many nodes, 0 for all of the network's, and so many on each."""
    return int(nodes or len(network.order) or np.count_nonzero(network.slots)) * tasks


def nodes_of_ranks(network: Topology, nodes: int, tasks: int, location: str) -> Ints:
    """Node of each rank of a call: one node after the other, in a job's order, `tasks` ranks each.

    Of a job the first `nodes` count, of a machine all; 0 for all. Messages begin with `location`.
    """
    job = len(network.order) > 0
    there = network.order if job else np.flatnonzero(network.slots > 0)
    if nodes > len(there) or (not job and nodes not in (0, len(there))):
        expected = "at most as many" if job else "as many"
        raise MeasuredError(
            f"{location}: {nodes} nodes: {network.spec} has {len(there)}: expected {expected}"
        )
    return np.repeat(there[: nodes or len(there)], tasks)


def dims_of(network: Topology) -> str:
    """Lengths of a torus, or of a job's on TofuD, the one that nodes are numbered along first last.

    Empty of other networks.
    """
    job = re.match(r"tofud:job=(\d+(?:x\d+)*)(?:.*order=([XYZ]+))?", network.spec)
    if job:
        lengths = dict(zip("XYZ", job[1].split("x"), strict=False))
        return "x".join(lengths[axis] for axis in reversed(job[2] or "".join(lengths)))
    return "x".join(map(str, reversed(network.dims or ())))


def not_simulated(
    measured: Measured, k: int, entry: Known | None, network: Topology, most: int = 0
) -> str:
    """Say why an entry is not simulated, "" if it is."""
    if measured.on_gpu[k]:
        return ON_GPU
    if measured.changed[k]:
        return CHANGED
    if SEVERAL_PORTS.search(measured.algorithm[k]):
        return PORTS
    if entry is None:
        return explain_unknown(measured.collective[k], measured.algorithm[k])
    ranks = ranks_of(network, int(measured.nodes[k]), int(measured.tasks[k]))
    if 0 < most < ranks:
        return TOO_MANY
    few = entry.operation not in WHOLE and measured.size[k] < ELEMENT * ranks
    return NOTHING if few else ""


def call_time(
    entry: Known,
    size: int,
    network: Topology,
    node_of: Ints,
    parameters: Parameters,
    limit: int = MOST,
    check: Progress = silent,
) -> float:
    """Seconds of one call, from its start on all ranks to the end of the last; NaN if too large.

    `size` is bytes of the whole buffer; for the limit see `predict`. Of very many segments, all but
    the first `SEGMENTS` take as long as the last half of these; buffers are new there only if so
    many segments would also have new ones.
    """
    segment = re.search(r"segment=([1-9]\d*)", entry.algorithm)
    enough = SEGMENTS * int(segment[1]) if segment else size
    if size > enough:
        half, all_of_them = (
            call_time(entry, part, network, node_of, parameters, limit, check)
            for part in (enough // 2, enough)
        )
        return all_of_them + (all_of_them - half) * (size - enough) / (enough - enough // 2)
    if entry.puts:  # through the one interface that they were asked to use, by no buffer, at once
        parameters = replace(parameters, nic="fifo", nic_rails=1, eager_limit=0, gap=0.0)
    if entry.kept:
        parameters = replace(parameters, collective_fresh_memory_per_byte=0.0)
    square = entry.algorithm.split("(")[0] in SQUARE.get(entry.operation, ())
    if square and MESSAGE * len(node_of) * (len(node_of) - 1) > limit:
        return float("nan")
    program = _program(entry, len(node_of), size)
    sent = program.size[program.sends()]
    largest, whole = int(sent.max(initial=1)), int(sent.sum())
    most = max(FEWEST, min(PACKETS, ENOUGH * largest // max(whole, 1)))
    packet = max(parameters.packet_size, -(-largest // most))
    if (1 + MESSAGE) * len(sent) + whole // packet > limit:
        return float("nan")
    plan = plan_run(program, network, node_of, replace(parameters, packet_size=packet))
    ahead = parameters.collective_put_setup * (entry.prepares and not entry.puts)
    return ahead + float(compiled_engine.run(plan, progress=check).finish.max(initial=0.0))


def _program(entry: Known, members: int, size: int) -> Program:
    key = entry, members, size
    if (kept := _kept.get(key)) is not None:
        return kept
    program = call_program(entry.operation, entry.algorithm, members, size, puts=entry.puts)
    if len(program.kind) <= KEPT_ROWS:
        if len(_kept) >= KEPT:
            _kept.pop(next(iter(_kept)), None)
        _kept[key] = program
    return program
