"""The network of a Slingshot machine, from the addresses or the places of its nodes.

A line a node: its host, and the address that its network card has (``cat
/sys/class/cxi/cxi0/device/properties/nid``), or where it stands (``x1301c6s6b0n0``, HPE's xname).
A table with a header, like ``rank,host,xname``, does as well. The last word of a line is looked at,
and the word before it is the host.

An address has 9 bits of the group, 5 of the switch in it and 4 of the port: group a >> 9, switch
(a >> 4) & 31, port a & 15. A place x1301c6s6b0n0 is cabinet 1301, chassis 6, slot 6, board 0, node
0. A cabinet is a group. The place does not say which switch a node has a link to: nodes of two
neighbouring slots share one, as with four switches a chassis.

The network is a dragonfly of the groups that are listed, each with as many switches as the largest
number says, and as many ports a switch as the busiest one has. Ports without a node of the list are
nodes without slots. It needs all nodes of the machine: of a job's alone it has too few groups, and
so too many links between two. A switch has 17 global links (``#24`` behind the path says 24).

Sources: HPE, Slingshot and CSM documentation, "Component names (xnames)"; 16 edge ports, 31 local
and 17 global links a switch: De Sensi et al., An in-depth analysis of the Slingshot interconnect
(SC20), section II-B.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from hopmap.topologies.families.switched import dragonfly
from hopmap.topologies.topology import Topology, TopologyError

ADDRESS = re.compile(r"0[xX][0-9a-fA-F]{1,8}|\d{1,9}")
XNAME = re.compile(r"x(\d{1,5})c(\d{1,2})s(\d{1,3})b(\d{1,2})n(\d{1,3})")
LARGEST = 2**18  # addresses: 9, 5 and 4 bits
PORTS = 17  # global links of a switch
SLOTS = 2  # neighbouring ones that share a switch
_LINE = re.compile(r"(?:.*[\s,])?([A-Za-z][\w.-]*)[\s,]+(\S+)")


def place_of_address(address: int) -> tuple[int, int, int]:
    """Return group, switch and port of an address.

    >>> place_of_address(0x1062)
    (8, 6, 2)
    """
    return address >> 9 & 511, address >> 4 & 31, address & 15


def is_slingshot(text: str) -> bool:
    """Whether one of the first two lines names a host with its address or place."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and line[:1] != "#"]
    found = filter(None, map(_LINE.fullmatch, lines[:2]))
    return any(XNAME.fullmatch(line[2]) or ADDRESS.fullmatch(line[2]) for line in found)


def from_slingshot(text: str, spec: str, ports: str = "") -> Topology:
    """Dragonfly of the nodes of a list; `ports` is another number of global links a switch."""
    if ports and not re.fullmatch(r"[1-9]\d{0,2}", ports):
        raise TopologyError(f"{spec}: #{ports}: expected global links a switch, like #17")
    places: dict[str, tuple[int, ...]] = {}  # group, switch and what is sorted within the switch
    taken: dict[tuple[int, ...], str] = {}
    form = ""
    for number, line in enumerate(text.splitlines(), 1):
        words = _LINE.fullmatch(line.partition("#")[0].strip())
        kind, place = _place(words[2]) if words else ("", ())
        if not place and (not line.partition("#")[0].strip() or (number == 1 and "," in line)):
            continue
        if words is None or not place or form not in ("", kind):
            raise TopologyError(
                f"{spec}: line {number} is {line.strip()[:60]!r}: expected a host and its "
                f"{form or 'address or xname'}, like nid001000 "
                f"{'x1000c0s0b0n0' if form == 'xname' else '0x1062'}"
            )
        form, host = kind, words[1]
        if host in places:  # another card of it
            continue
        if place in taken:
            raise TopologyError(
                f"{spec}: line {number}: {words[2]} is {host} and {taken[place]}: expected one node"
            )
        places[host], taken[place] = place, host
    if not places:
        raise TopologyError(f"{spec}: no nodes: expected hosts with addresses or xnames")
    return _dragonfly(places, int(ports or PORTS), spec)


def _place(word: str) -> tuple[str, tuple[int, ...]]:
    """Return the form of a word, and group, switch and place at the switch; or nothing."""
    if xname := XNAME.fullmatch(word):
        cabinet, chassis, slot, *rest = map(int, xname.groups())
        return "xname", (cabinet, chassis * 4 + slot // SLOTS, slot % SLOTS, *rest)
    if (
        ADDRESS.fullmatch(word)
        and (number := int(word, 0 if "x" in word.lower() else 10)) < LARGEST
    ):
        return "address", place_of_address(number)
    return "", ()


def _dragonfly(places: dict[str, tuple[int, ...]], ports: int, spec: str) -> Topology:
    groups = sorted({group for group, *_ in places.values()})
    switches = max(switch for _, switch, *_ in places.values()) + 1
    at_switch: dict[tuple[int, int], list[str]] = {}
    for host, (group, switch, *_) in sorted(places.items(), key=lambda item: item[1]):
        at_switch.setdefault((groups.index(group), switch), []).append(host)
    each = max(map(len, at_switch.values()))
    network = dragonfly(each, switches, ports, len(groups))
    names = [f"unlisted-{node}" for node in range(network.nodes)]
    slots = np.zeros(network.nodes, dtype=np.int64)
    for (group, switch), hosts in at_switch.items():
        first = (group * switches + switch) * each
        names[first : first + len(hosts)] = hosts
        slots[first : first + len(hosts)] = 1
    return replace(network, spec=spec, names=tuple(names), slots=slots)
