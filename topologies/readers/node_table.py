"""Tables of nodes with their cell and leaf switch, as sites of Dragonfly+ networks publish them.

A line a node, words in pairs: ``NODE 0001 RACK 1 CELL 1 ROW 1 PARTITION 1 SWITCH 10100``, as of
Leonardo (HLC-Lab/pico). A switch is a leaf of its cell. The table does not say how many spines a
cell has: as many as leaves in most of the cells, as where a leaf has a link to every spine and
cells are cabled alike (Leonardo: 18 and 18).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from hopmap.topologies.families.dragonfly_plus import from_leaves
from hopmap.topologies.topology import Topology, TopologyError

_NEEDED = ("NODE", "CELL", "SWITCH")


def is_node_table(text: str) -> bool:
    """Whether a text begins like a table of nodes."""
    return re.match(r"\s*NODE\s+\S+\s+\S+\s+\S", text) is not None


def from_node_table(text: str, spec: str, wanted: str = "") -> Topology:
    """Dragonfly+ of a table of nodes.

    Parameters
    ----------
    text : str
        What is in the file.
    spec : str
        Spec of the topology, which messages begin with.
    wanted : str
        The number of spines a cell; see above when left out.

    Raises
    ------
    TopologyError
        A line without one of the three, a node listed twice, a switch in two cells.
    """
    if wanted and not re.fullmatch(r"[1-9]\d{0,4}", wanted):
        raise TopologyError(f"{spec}: #{wanted}: expected the number of spines a cell, like #18")
    node_of: dict[str, tuple[str, str]] = {}  # cell, switch
    cell_of: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words:
            continue
        given = dict(zip(words[::2], words[1::2], strict=False))
        if len(words) % 2 or not given.keys() >= set(_NEEDED):
            raise TopologyError(
                f"{spec}: line {number} is {line.strip()[:60]!r}: expected pairs of words with "
                f"{', '.join(_NEEDED)}"
            )
        node, cell, switch = (given[key] for key in _NEEDED)
        if node in node_of:
            raise TopologyError(f"{spec}: line {number}: node {node} twice: expected once")
        if cell_of.setdefault(switch, cell) != cell:
            raise TopologyError(
                f"{spec}: line {number}: switch {switch} in cell {cell} and in {cell_of[switch]}: "
                f"expected one"
            )
        node_of[node] = (cell, switch)
    cells = list(dict.fromkeys(cell for cell, _ in node_of.values()))
    leaves = sorted(dict.fromkeys(cell_of), key=lambda switch: cells.index(cell_of[switch]))
    place = {switch: leaf for leaf, switch in enumerate(leaves)}
    of_cell = Counter(cells.index(cell_of[switch]) for switch in leaves)
    spines = int(wanted or Counter(of_cell.values()).most_common(1)[0][0])
    network = from_leaves(
        [place[switch] for _, switch in node_of.values()],
        [cells.index(cell_of[switch]) for switch in leaves],
        spines,
        spec=spec,
    )
    return replace(network, names=tuple(node_of))
