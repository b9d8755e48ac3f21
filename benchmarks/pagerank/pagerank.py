"""PageRank on 256 nodes of Fugaku: what are scattered nodes worth, compared with a torus?

Measured: an allreduce in groups takes 3.4 ms on a torus and 5.9 ms on scattered nodes, a broadcast
in columns 4.0 and 6.0 ms, the application 3.83 and 3.84 to 4.13 s. Sizes and groups are not known.
Here ranks are a grid of 16 x 16. A size is fixed by the time on the torus; the time on scattered
nodes is predicted, with the parameters that benchmarks/trust fitted to 8 nodes.

    python benchmarks/pagerank/pagerank.py            some minutes
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import numpy as np

import hopmap as hm
from hopmap.topologies.families.tofu import END_POINTS
from hopmap.traces.calls import Call, calls, trace_of_calls

SIDE = 16
RANKS = SIDE**2
TORUS = f"tofud:job={SIDE}x{SIDE}"
SEEDS = range(5)
BOXES = {"2,592 nodes": (6, 6, 6), "20,736 nodes": (12, 12, 12)}  # groups of 12 along X, Y and Z
TIMES = {"allreduce": (3.4e-3, 5.9e-3), "bcast": (4.0e-3, 6.0e-3)}  # torus, scattered
TOTAL = (3.83, 4.13)  # seconds of the application: on the torus, and most
RULES = "Open MPI's rules"  # Fujitsu's MPI is based on Open MPI
NEIGHBOURS = ("ring", "pipeline")  # members send to the next one only
AXES = {"allreduce": "rows", "bcast": "columns"}  # of the groups in the application (assumed)
ALGORITHMS = {
    "allreduce": (RULES, "recursive_doubling", "ring"),
    "bcast": (RULES, "binomial", "scatter_allgather_ring", "pipeline"),
}
FITTED: dict[str, float | str] = {  # benchmarks/trust, Fugaku
    "link.bandwidth": 6.41e9,
    "injection.bandwidth": 6.41e9,
    "ejection.bandwidth": 6.41e9,
    "eager_limit": 32 * 1024,
    "overhead.send": 0.89e-6,
    "overhead.recv": 1.33e-6,
    "overhead.per_byte": 88e-12,
    "overhead.control": 4.38e-6,
    "overhead.put_latency": 1.25e-6,
    "gap": 1.55e-6,
    "collective.copy_per_byte": 39.1e-12,
    "collective.reduce_per_byte": 30.9e-12,
    "collective.put_setup": 5.44e-6,
    "collective.fresh_memory_per_byte": 400e-12,
}


def in_groups(operation: str, size: int, axis: str) -> hm.Trace:
    """All rows or columns of the grid call a collective of `size` bytes at once.

    Rows are ranks that follow one another. Sizes are counted as Score-P counts them.
    """
    grid = np.arange(RANKS, dtype=np.int32).reshape(SIDE, SIDE)
    groups = np.ascontiguousarray(grid if axis == "rows" else grid.T)
    tables = []
    for rank in range(RANKS):
        group = int(np.flatnonzero((groups == rank).any(axis=1))[0])
        root = int(groups[group, 0])
        sent = {"size": size * SIDE, "received": size * SIDE}
        if operation == "bcast":
            sent = {"size": size * SIDE * (rank == root), "received": size, "peer": root}
        tables.append(calls(Call[operation.upper()], comm=group + 1, **sent))
    return trace_of_calls(f"{operation} in {axis}", RANKS, tables, list(groups))


def seconds(trace: hm.Trace, spec: str, node_of: np.ndarray, algorithm: str) -> float:
    """Seconds of a call on those nodes."""
    operation = trace.name.split()[0]
    chosen = {} if algorithm == RULES else {f"collective.{operation}": algorithm}
    machine = hm.Machine(spec, {**END_POINTS, **FITTED, **chosen})
    return hm.simulate(trace, machine, node_of).makespan


def fix_size(time_of: Callable[[int], float], target: float) -> int:
    """Bytes, a multiple of 128, that take the target on the torus, to 1 %."""
    low, high = 2.0**10, 2.0**27
    while high / low > 1.01:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if time_of(to_blocks(middle)) < target else (low, middle)
    return to_blocks(low)


def to_blocks(size: float) -> int:
    return int(size) // 128 * 128


def scatter(groups: tuple[int, int, int], by: str, seed: int) -> np.ndarray:
    """Draw nodes of a box, by "nodes" or whole "groups" of 12; ranks follow the nodes' numbers.

    Of groups, the nodes of one follow one another.
    """
    rng = np.random.default_rng(seed)
    box = (*groups, 2, 3, 2)
    if by == "nodes":
        return np.sort(rng.permutation(int(np.prod(box)))[:RANKS])
    chosen = np.sort(rng.permutation(int(np.prod(groups)))[: -(-RANKS // 12)])
    x, y, z = np.unravel_index(np.repeat(chosen, 12)[:RANKS], groups, order="F")
    a, b, c = np.unravel_index(np.arange(RANKS) % 12, box[3:], order="F")
    return np.ravel_multi_index((x, y, z, a, b, c), box, order="F")


def ratios(operation: str, axis: str, algorithm: str) -> tuple[int, dict[str, list[float]]]:
    """Return the size by the torus' time, and by kind of allocation its seeds' times over that."""
    straight = np.arange(RANKS)

    def on_torus(size: int) -> float:
        return seconds(in_groups(operation, size, axis), TORUS, straight, algorithm)

    size = fix_size(on_torus, TIMES[operation][0])
    call, base = in_groups(operation, size, axis), on_torus(size)
    found = {
        f"{by} of {name}": [
            seconds(call, f"tofud:{'x'.join(map(str, box))}", scatter(box, by, seed), algorithm)
            / base
            for seed in SEEDS
        ]
        for name, box in BOXES.items()
        for by in ("nodes", "groups")
    }
    return size, found


def main() -> None:
    print("operation | groups | algorithm | bytes | ratio: median (least to most), by allocation")
    more = 0.0
    for operation, algorithms in ALGORITHMS.items():
        for axis in dict.fromkeys((AXES[operation], "columns")):
            for algorithm in algorithms:
                size, found = ratios(operation, axis, algorithm)
                together = [value for values in found.values() for value in values]
                cells = [
                    *(f"{kind} {show(values)}" for kind, values in found.items()),
                    show(together),
                ]
                print(
                    f"{operation} | {axis} | {algorithm} | {size:,} | {' | '.join(cells)}",
                    flush=True,
                )
                if algorithm in NEIGHBOURS and axis == AXES[operation]:
                    more += TIMES[operation][0] * (median(together) - 1)
    spread, measured = TOTAL[1] - TOTAL[0], sum(times[1] - times[0] for times in TIMES.values())
    for operation, (torus, scattered) in TIMES.items():
        print(f"{operation}: measured {scattered / torus:.2f}")
    print(
        f"scattered nodes cost {more * 1e3:.1f} ms a pair of calls, measured {measured * 1e3:.1f}"
    )
    print(f"{spread:.2f} s of {TOTAL[0]} s are {spread / TOTAL[0]:.1%}: {spread / more:.0f} pairs")
    for pairs in (10, 20, 50):
        print(f"{pairs} pairs of calls: {pairs * more / TOTAL[0]:.1%} of {TOTAL[0]} s")


def show(values: list[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


if __name__ == "__main__":
    main()
