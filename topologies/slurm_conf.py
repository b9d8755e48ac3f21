"""Slurm's topology.conf: one switch, block or ring a line; see `slurm.py`.

Source: Slurm 26.11, topology.conf(5).
"""

from __future__ import annotations

import re

from .slurm import Part, block, chosen, ring, switches_of, tree
from .topology import Topology, TopologyError

_KEYS = {
    "switchname": ("switches", "nodes", "linkspeed"),
    "blockname": ("nodes",),
    "ringname": ("nodes",),
    "blocksizes": (),
}


def is_slurm_conf(text: str) -> bool:
    """Whether a text looks like a topology.conf."""
    return re.search(rf"(?im)^\s*({'|'.join(_KEYS)})\s*=", text) is not None


def from_slurm_conf(text: str, spec: str, wanted: str = "") -> Topology:
    """Network of a topology.conf.

    Parameters
    ----------
    text : str
        What is in the file.
    spec : str
        Spec of the topology, which messages begin with.
    wanted : str
        Of several rings, the one to take.

    Raises
    ------
    TopologyError
        An unknown key, lines of several plugins, hosts that no common switch joins.
    """
    parts: dict[str, list[Part]] = {}
    sizes = ""
    lines = re.sub(r"\\\n", "  ", text).splitlines()
    for number, line in enumerate(lines, 1):
        where = f"{spec}: line {number}"
        words = [word.partition("=") for word in line.partition("#")[0].split()]
        given = {key.lower(): value.strip('"') for key, _, value in words}
        if not given:
            continue
        kind = next(iter(given))
        known = _KEYS.get(kind, ())
        wrong = [key for key in list(given)[1:] if key not in known]
        if kind not in _KEYS or wrong or len(given) != len(words) or not all(given.values()):
            raise TopologyError(
                f"{where} is {line.strip()[:60]!r}: expected SwitchName=, BlockName= or RingName= "
                f"with Nodes= or Switches=, or BlockSizes="
            )
        if kind == "blocksizes":
            sizes = given[kind]
            continue
        part = Part(given[kind], given.get("nodes", ""), given.get("switches", ""), where)
        parts.setdefault(kind, []).append(part)
    if len(parts) != 1 or (sizes and "blockname" not in parts):
        found = ", ".join(sorted(parts)) or "none of them"
        raise TopologyError(f"{spec}: {found}: expected switches, blocks or rings, and only one")
    ((kind, entries),) = parts.items()
    if wanted and kind != "ringname":
        raise TopologyError(f"{spec}: #{wanted}: expected that of one of several rings only")
    if kind == "switchname":
        return tree(switches_of(entries), spec)
    if kind == "blockname":
        return block(entries, re.split(r",\s*", sizes) if sizes else [], spec)
    return ring(chosen(entries, wanted, spec), spec)
