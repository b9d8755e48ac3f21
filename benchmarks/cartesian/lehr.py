"""Single grids, Lehr's thesis against hopmap: ``python benchmarks/cartesian/lehr.py``.

Messages that leave the worst node and all nodes, each direction counted, and the boxes of figure
7.16. Tables 6.1 to 6.3 are in cartesian_bounds.py, figures 7.13 and 7.22 in the scenarios
stencil_dimensions and stencil_shapes.

Source: Lehr, Efficient process mapping for Cartesian topologies, Diplomarbeit TU Wien 2019.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopmap.mappers import map_ranks
from hopmap.simulator import evaluate
from hopmap.topologies import topology_from_spec
from hopmap.traces.sources import open_source


class Printed(NamedTuple):
    """A mapper on a grid: the worst node and the sum, None where the thesis does not say."""

    where: str
    grid: str
    nodes: str
    mapper: str
    worst: int | None
    total: int | None
    reason: str = ""


LARGE = ("section 7.3.2", "12x11x8,7pt", "cluster:33*32")
WIDE = ("20 x 10", "20x10,5pt", "cluster:20*10")
OURS = "a variant of ours"
PRINTED = [
    Printed(*LARGE, "kd_tree", 71, 1928),
    Printed(*LARGE, "squarest_strips", 64, 1522),
    Printed(*LARGE, "gropp", 80, 2272),
    Printed(*LARGE, "row_major", None, None, "not printed"),
    Printed(*LARGE, "squarest_strips(carry=narrower)", None, None, OURS),
    Printed(*WIDE, "gropp", 14, None),
    Printed(*WIDE, "squarest_strips", 14, None),
    Printed(*WIDE, "row_major", 20, None),
    Printed(
        "section 3.3, case 3",
        "4x6,0:1/0:-1,periodic=y",
        "cluster:3*8",
        "exact_partition(measure=worst)",
        4,
        None,
        "4 is no minimum: see benchmarks/reproduction",
    ),
]
FIGURE_7_16 = {"row_major": (3, 10), "gropp": (15, 2), "squarest_strips": (6, 5)}


def ours(row: Printed) -> tuple[int, int]:
    """Messages that leave the worst node, and all nodes."""
    traffic = open_source(f"stencil:{row.grid}").traffic()
    topology = topology_from_spec(row.nodes)
    found = evaluate(traffic, topology, map_ranks(traffic, topology, row.mapper))
    return found.messages.off_node.max, found.messages.off_node.total


def blocks(mapper: str) -> set[tuple[int, ...]]:
    """Extents of the ten nodes of 30 ranks on 30 x 10 (the thesis writes 10 x 30)."""
    traffic = open_source("stencil:30x10,5pt").traffic()
    node_of = map_ranks(traffic, topology_from_spec("cluster:10*30"), mapper).reshape(30, 10)
    return {tuple(np.ptp(np.argwhere(node_of == node), axis=0) + 1) for node in range(10)}


def show() -> None:
    """Print published, ours, the difference and the reason."""
    print(f"{'':<46}{'worst node':>22}{'':>7}{'sum':>22}")
    print(f"{'':<46}{'published':>11}{'ours':>11}{'+-':>7}{'published':>15}{'ours':>7}{'+-':>7}")
    where = ""
    for row in PRINTED:
        if row.where != where:
            where = row.where
            print(f"{where}: stencil:{row.grid} on {row.nodes}")
        (worst, total), (a, b) = ours(row), (row.worst, row.total)
        print(
            f"  {row.mapper:<44}{'-' if a is None else a:>11}{worst:>11}"
            f"{'' if a is None else worst - a:>7}{'-' if b is None else b:>15}{total:>7}"
            f"{'' if b is None else total - b:>7}  {row.reason}"
        )
    print("figure 7.16: stencil:30x10,5pt on cluster:10*30, boxes of the nodes")
    for mapper, box in FIGURE_7_16.items():
        found = ", ".join("x".join(map(str, sides)) for sides in sorted(blocks(mapper)))
        print(f"  {mapper:<44}{'x'.join(map(str, box)):>11}{found:>11}")


if __name__ == "__main__":
    show()
