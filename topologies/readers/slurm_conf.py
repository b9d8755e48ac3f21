"""Slurm's topology.conf: one switch, block or ring a line; see `slurm_networks.py`.

What ``scontrol show topology`` prints is read as well: there a switch has a Level, one above others
lists the hosts below them besides, and a block has a BlockIndex and its size.

Source: Slurm 26.11, topology.conf(5), scontrol(1); src/common/parse_config.c for what a line is,
src/plugins/topology/tree/switch_record.c and block/block_record.c for what scontrol prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hopmap.topologies.topology import Topology, TopologyError

from .slurm_networks import Part, block, chosen, expect_below, ring, switches_of, tree

_KEYS = {
    "switchname": ("switches", "nodes", "linkspeed", "level"),
    "blockname": ("nodes", "blockindex", "blocksize"),
    "ringname": ("nodes",),
    "blocksizes": (),
}
_PAIR = re.compile(r'(?<!\S)([\w.]+)\s*=\s*(?:"([^"]*)"|(\S+))(?:\s+|$)')


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
    above: list[Part] = []
    sizes = ""
    for number, line in _lines(text):
        where = f"{spec}: line {number}"
        pairs = _PAIR.findall(line)
        given = {key.lower(): quoted or plain for key, quoted, plain in pairs}
        kind = next(iter(given), "")
        known = _KEYS.get(kind, ())
        wrong = [key for key in list(given)[1:] if key not in known] or _PAIR.sub("", line)
        if kind not in _KEYS or wrong or len(given) != len(pairs) or not all(given.values()):
            raise TopologyError(
                f"{where} is {line.strip()[:60]!r}: expected SwitchName=, BlockName= or RingName= "
                f"with Nodes= or Switches=, or BlockSizes="
            )
        if kind == "blocksizes":
            sizes = given[kind]
            continue
        nodes, switches = given.get("nodes", ""), given.get("switches", "")
        if given.get("level", "0") != "0" and not switches:
            raise TopologyError(
                f"{where}: Level={given['level']} without Switches=: expected the whole output of "
                f"scontrol show topology"
            )
        if "level" in given and switches:  # as scontrol prints it
            above.append(Part(given[kind], nodes, switches, where))
            nodes = ""
        part = Part(given[kind], nodes, switches, where)
        parts.setdefault(kind, []).append(part)
    if len(parts) != 1 or (sizes and "blockname" not in parts):
        found = ", ".join(sorted(parts)) or "none of them"
        raise TopologyError(f"{spec}: {found}: expected switches, blocks or rings, and only one")
    ((kind, entries),) = parts.items()
    if wanted and kind != "ringname":
        raise TopologyError(f"{spec}: #{wanted}: expected that of one of several rings only")
    if kind == "switchname":
        graph = switches_of(entries)
        expect_below(graph, above)
        return tree(graph, spec)
    if kind == "blockname":
        return block(entries, re.split(r",\s*", sizes) if sizes else [], spec)
    return ring(chosen(entries, wanted, spec), spec)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that say something, without comments; one that ends in a backslash goes on."""
    begun, first = "", 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        said = line.partition("#")[0].rstrip()
        first = first or number
        if said.endswith("\\"):
            begun += said[:-1]
            continue
        if (begun + said).strip():
            yield first, (begun + said).strip()
        begun, first = "", 0
