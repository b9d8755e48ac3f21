"""The machine that hwloc describes: ``lstopo machine.xml``, then ``file:machine.xml``.

Cores are the nodes of the topology. Every object that holds more than one part with cores in it
(machine, package, die, NUMA node, shared cache, group) is a level; caches and packages of one part
are none, and neither are memory and devices. Distances are 1, 10, 100, ... from the innermost
level: the file says nothing of them.
Source: hwloc's XML format, versions 1 and 2, which differ in names and in where memory stands.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hopmap.topologies.families.hierarchy import tree
from hopmap.topologies.topology import Topology, TopologyError

if TYPE_CHECKING:
    from xml.etree import ElementTree


def from_hwloc(root: ElementTree.Element, spec: str) -> Topology:
    """Hierarchy of the cores of one machine, from hwloc's XML.

    Raises
    ------
    TopologyError
        No cores, or unlike parts.
    """
    try:
        sizes = _sizes(root, spec)
    except RecursionError:
        raise TopologyError(f"{spec}: nested too deep: expected hwloc's XML") from None
    if sizes is None:
        raise TopologyError(f"{spec}: no objects of type Core: expected hwloc's XML with cores")
    return replace(tree([size for size in reversed(sizes) if size > 1] or [1]), spec=spec)


def _sizes(element: ElementTree.Element, spec: str) -> tuple[int, ...] | None:
    """Return the parts that hold cores, level by level from the outermost; None without cores."""
    if element.get("type") == "Core":
        return ()
    parts = [_sizes(child, spec) for child in element.findall("object")]
    held = [sizes for sizes in parts if sizes is not None]
    if not held:
        return None
    if len(set(held)) > 1:
        name = f"{element.get('type', element.tag)} {element.get('os_index', '')}".strip()
        raise TopologyError(f"{spec}: the parts of {name} differ: expected all alike")
    return (len(held), *held[0])
