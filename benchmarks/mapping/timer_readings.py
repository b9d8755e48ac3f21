"""Other readings of TiMEr's print: ``python benchmarks/mapping/timer_readings.py [OPTION ...]``.

OPTION is of ``--networks FOLDER``, ``--starts NAME,...`` and ``--specs SPEC,...``, see timer.py.
Most readings differ from ours in a line of the mapper's kernels. The script replaces that line,
recompiles the kernels and runs its own loop over hierarchies. It prints the reductions of Coco, as
geometric means over graphs, networks and starts, and how many ranks the fullest nodes have, before
and after. The paper has 6 to 34 % over its own graphs and starts.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import warnings
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from timer import mean
from timer_starts import Starts, graphs, graphs_in

from hopmap.errors import HopmapWarning
from hopmap.mappers import objective_value
from hopmap.mappers.exchanges import timer_kernels
from hopmap.mappers.exchanges.timer import extend_labels
from hopmap.mappers.objectives import cost_model
from hopmap.topologies import Topology, partial_cube, topology_from_spec
from hopmap.traces import Traffic

SPECS = ("mesh:16x16", "torus:8x8x8")
STARTS = ("identity", "greedy_all_c")
LEVELS = "for i in range(1, len(digits)):"
PAIRS = "for u in range(len(value) - 1):"


class Reading(NamedTuple):
    """How the print is read.

    Attributes
    ----------
    lines : tuple of (str, str)
        Lines of the kernels and what stands in their place.
    coco, div : bool
        Whether Coco decides in place of Coco+; whether Div counts.
    edges : bool
        Whether the ranks of a node are numbered along their edges.
    """

    lines: tuple[tuple[str, str], ...] = ()
    coco: bool = False
    div: bool = True
    edges: bool = False


READINGS = {
    "as we read it": Reading(),
    "swaps that gain nothing too": Reading((("value, u) > 0:", "value, u) >= 0:"),)),
    "Coco decides": Reading(coco=True),
    "a level until none gains (8 sweeps)": Reading(
        ((PAIRS, "for u in np.arange(8 * (len(value) - 1)) % max(len(value) - 1, 1):"),)
    ),
    "pairs in reverse": Reading(((PAIRS, "for u in range(len(value) - 2, -1, -1):"),)),
    "ranks numbered along edges": Reading(edges=True),
    "swaps in the top digits too": Reading(
        ((LEVELS, LEVELS.replace("digits))", "digits) + 1)")), ("if i < len(digits) - 1:", "if i:"))
    ),
    "Div left out": Reading(div=False),
    "to the letter: labels may be shared": Reading(
        (
            (
                "return assemble(bits, node, wanted, label_of, digits)",
                "return label_as_printed(bits, wanted, digits)",
            ),
        )
    ),
}


@cache
def kernels_with(lines: tuple[tuple[str, str], ...]) -> ModuleType:
    """Return the mapper's kernels with these lines replaced."""
    if not lines:
        return timer_kernels
    text = Path(timer_kernels.__file__).read_text()
    for line, other in lines:
        assert text.count(line) == 1, f"{line}: expected it once in timer_kernels.py"
        text = text.replace(line, other)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "timer_reading.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def along_edges(traffic: Traffic, node_of: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return new numbers of the ranks: breadth first within every node."""
    within = node_of[traffic.src] == node_of[traffic.dst]
    shape = (traffic.ranks, traffic.ranks)
    ends = (traffic.src[within], traffic.dst[within])
    graph = sparse.csr_array((np.ones(int(within.sum())), ends), shape=shape)
    order = sparse.csgraph.reverse_cuthill_mckee(graph)
    number = np.empty(traffic.ranks, dtype=np.int64)
    number[order] = np.arange(traffic.ranks)
    return number


def enhanced(
    traffic: Traffic,
    topology: Topology,
    first: NDArray[np.int64],
    reading: Reading,
    rng: np.random.Generator,
    hierarchies: int = 50,
) -> NDArray[np.int64]:
    """Mapping of the least Coco that the reading finds from the first one.

    A mapping by shared labels has nodes that grow; its labels are then extended again.
    """
    if reading.edges:
        number = along_edges(traffic, first)
        moved = Traffic.from_pairs(
            traffic.ranks, number[traffic.src], number[traffic.dst], traffic.messages, traffic.bytes
        )
        start = np.empty_like(first)
        start[number] = first
        other = reading._replace(edges=False)
        return enhanced(moved, topology, start, other, rng, hierarchies)[number]
    cube, kernels = partial_cube(topology), kernels_with(reading.lines)
    model = cost_model(traffic, topology, "hop_bytes")
    graph = (model.indptr[: traffic.ranks + 1], model.peer, model.weight)

    def labelled(node_of: NDArray[np.int64]):
        labels, label_of = extend_labels(cube, node_of)
        if not reading.div:
            labels.price[labels.inner :] = 0
        coco, plus = kernels.values(*graph, labels.bits, labels.price, labels.inner, label_of)
        return labels, label_of, coco, coco if reading.coco else plus

    labels, label_of, least, value = labelled(first)
    best = first
    for _ in range(hierarchies):
        digits = rng.permutation(len(labels.price))
        candidate = kernels.swap_labels(
            *graph, labels.bits, labels.node, labels.price, label_of, digits
        )
        coco, plus = kernels.values(*graph, labels.bits, labels.price, labels.inner, candidate)
        now = coco if reading.coco else plus
        if now > value:
            continue
        if coco < least:
            best, least = labels.node[candidate], coco
        label_of, value = candidate, now
        if len(np.unique(candidate)) < len(candidate):
            labels, label_of, _, value = labelled(labels.node[candidate])
    return best


def table(
    instances: dict[str, Traffic],
    starts: tuple[str, ...] = STARTS,
    specs: tuple[str, ...] = SPECS,
    hierarchies: int = 50,
) -> dict[str, float]:
    """Print what every reading takes off Coco, %, and the fullest nodes; return the former."""
    cases = []
    for spec in specs:
        for traffic in instances.values():
            blocks = Starts(traffic, topology_from_spec(spec).nodes, 0, even=False)
            topology = topology_from_spec(f"{spec}*{blocks.slots}")
            cases += [(traffic, topology, blocks.on(topology, name)) for name in starts]
    print(f"{'reading':<38}{'off Coco [%]':>13}{'most ranks on a node':>22}")
    off = {}
    for name, reading in READINGS.items():
        quotients, full = [], []
        for traffic, topology, first in cases:
            last = enhanced(
                traffic, topology, first, reading, np.random.default_rng(0), hierarchies
            )
            after, before = (objective_value(traffic, topology, m, "hop_bytes")
                             for m in (last, first))  # fmt: skip
            quotients.append(after / before)
            full.append((np.bincount(first).max(), np.bincount(last).max()))
        off[name] = 100 * (1 - mean(quotients))
        (least, low), (most, high) = np.min(full, axis=0), np.max(full, axis=0)
        print(
            f"{name:<38}{off[name]:>13.1f}{f'{least} to {most}: {low} to {high}':>22}", flush=True
        )
    return off


def main(words: list[str]) -> None:
    """Run all readings."""
    warnings.simplefilter("ignore", HopmapWarning)
    options = dict(pairwise(words))
    names = tuple(options["--starts"].split(",")) if "--starts" in options else STARTS
    specs = tuple(options["--specs"].split(",")) if "--specs" in options else SPECS
    named = graphs_in(options["--networks"]) if "--networks" in options else graphs()
    table(named, names, specs)


if __name__ == "__main__":
    main(sys.argv[1:])
