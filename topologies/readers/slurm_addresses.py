"""The network of a job, from what its nodes have in SLURM_TOPOLOGY_ADDR.

``srun --ntasks-per-node=1 printenv SLURM_TOPOLOGY_ADDR`` prints a line a node, the switches from
the top down and the node behind them: ``core.leaf-16.node7``. It is there where Slurm has
topology/tree, also for users that may not ask for the topology itself.

Source: Slurm, srun(1), "SLURM_TOPOLOGY_ADDR" and "SLURM_TOPOLOGY_ADDR_PATTERN".
"""

from __future__ import annotations

import re

from hopmap.topologies.topology import Topology, TopologyError

from .topograph import from_layers

LINE = re.compile(r"(?:\s*\d+:\s*)?(?:SLURM_TOPOLOGY_ADDR=)?([\w.,\[\]-]*[\w\]])\s*")


def is_slurm_addresses(text: str) -> bool:
    """Whether a text looks like addresses in the tree of Slurm's switches."""
    lines = [line for line in text.splitlines() if line.strip()]
    matches = [LINE.fullmatch(line) for line in lines]
    return bool(lines) and all(match and "." in match[1] for match in matches)


def from_slurm_addresses(text: str, spec: str, name: str = "") -> Topology:
    """Tree of the switches above the nodes."""
    if name:
        raise TopologyError(f"{spec}: #{name} requires a file of Slurm's")
    above: dict[str, list[str]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = LINE.fullmatch(line)
        if match is None:
            continue
        # A level without a switch is empty, one with several is a list of Slurm's.
        *switches, node = [re.sub(r"[^\w-]", "_", part) for part in match[1].split(".") if part]
        if not switches:
            raise TopologyError(f"{spec}: line {number}: {node}: expected switches, as in leaf.n1")
        if above.setdefault(node, switches[::-1]) != switches[::-1]:
            raise TopologyError(f"{spec}: line {number}: {node} again, below other switches")
    return from_layers(above, spec)
