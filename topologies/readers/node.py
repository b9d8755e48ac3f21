"""What a node has: NUMA domains with their cores and GPUs, of hwloc's XML, NCCL's or a short form.

A GPU is a PCI device of class 0302, 0380 or 1200 (3D and display controllers, accelerators), or one
that CUDA, ROCm or Level Zero knows. A console's display is none. The PCI bus gives their numbers.
hwloc names the part of the node that a device is attached to. If that has several domains, they
share its GPUs evenly.

NCCL's file (NCCL_TOPO_DUMP_FILE) has the hardware threads of a domain as the kernel numbers them;
they count as cores. GPUs have CUDA's numbers there.

Source: hwloc's XML format, versions 1 and 2; PCI Code and ID Assignment, classes of devices;
NVIDIA/nccl, src/graph/xml.cc.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hopmap.topologies.topology import TopologyError

from .files import read_bytes, xml_root

if TYPE_CHECKING:
    from xml.etree import ElementTree

SHORT = re.compile(r"numa=([1-9]\d{0,4})x([1-9]\d{0,4})(?:,gpu=(\d{1,4}))?")
MOST = 2**16  # cores of a node
GPU_CLASS = re.compile(r"(0302|0380|1200)\b")
GPU_DRIVER = re.compile(r"(cuda|nvml|rsmi|ze)\d")
WORD = 32  # bits of a bitmap between commas


class Domain(NamedTuple):
    """A NUMA domain."""

    cores: tuple[int, ...]  # logical numbers, as hwloc counts them on the node
    gpus: tuple[int, ...] = ()


def read_node(text: str | Path) -> tuple[Domain, ...]:
    """Return the NUMA domains of a node: a file of ``lstopo`` or NCCL, or ``numa=4x16,gpu=4``.

    Raise `TopologyError` for what is neither.
    """
    short = SHORT.fullmatch(str(text))
    if short:
        domains, each, gpus = int(short[1]), int(short[2]), int(short[3] or 0)
        if domains * each > MOST:
            raise TopologyError(f"node {text}: expected at most {MOST} cores")
        cores = [tuple(range(d * each, (d + 1) * each)) for d in range(domains)]
        return _with_gpus(cores, [range(domains)] * gpus)
    if not Path(text).is_file():
        raise TopologyError(
            f"node {text}: expected lstopo's XML file or NCCL's, or numa=DOMAINSxCORES,gpu=GPUS"
        )
    name = f"node {text}"
    root = xml_root(read_bytes(Path(text), name), name)
    if root.tag == "system":
        return _from_nccl(root, name)
    if root.tag != "topology":
        raise TopologyError(f"{name}: root element {root.tag[:40]!r}: expected topology or system")
    return _from_hwloc(root, name)


def _from_nccl(root: ElementTree.Element, name: str) -> tuple[Domain, ...]:
    """Return the domains of NCCL's file: ``<cpu numaid= affinity=>`` with GPUs below it."""
    domains: dict[int, Domain] = {}
    for element in root.findall("cpu"):
        place = _whole(element, "numaid", name)
        mask = _bits(element.get("affinity", ""), name, prefix="")
        gpus = sorted(_whole(gpu, "dev", name) for gpu in element.iter("gpu"))
        cores = tuple(core for core in range(mask.bit_length()) if mask >> core & 1)
        if place in domains or not cores:
            raise TopologyError(f"{name}: cpu {place}: expected each once, with an affinity")
        domains[place] = Domain(cores, tuple(gpus))
    if not domains:
        raise TopologyError(f"{name}: no cpu in the system: expected NCCL_TOPO_DUMP_FILE's XML")
    return tuple(domains[place] for place in sorted(domains))


def _whole(element: ElementTree.Element, key: str, name: str) -> int:
    value = element.get(key, "")
    if not re.fullmatch(r"\d{1,4}", value):
        raise TopologyError(f"{name}: {element.tag} {key}={value[:40]!r}: expected a whole number")
    return int(value)


def _from_hwloc(root: ElementTree.Element, name: str) -> tuple[Domain, ...]:
    """Return the domains that have cores; a core is in the smallest domain around it."""
    cores: list[int] = []
    memory: list[int] = []
    devices: list[tuple[str, int]] = []  # bus, cpuset of the part that it is attached to
    for element, cpuset in _objects(root, name):
        kind = element.get("type")
        if kind == "Core":
            cores.append(cpuset)
        elif kind == "NUMANode":
            memory.append(cpuset)
        elif kind == "PCIDev" and _is_gpu(element):
            devices.append((element.get("pci_busid", ""), cpuset))
    if not cores:
        raise TopologyError(f"{name}: no objects of type Core: expected hwloc's XML with cores")
    everywhere = reduce(or_, cores)
    nearest = [
        min((near for near in memory if near & core), key=int.bit_count, default=everywhere)
        for core in cores
    ]
    parts = {near: [n for n, of in enumerate(nearest) if of == near] for near in nearest}
    at = [[d for d, near in enumerate(parts) if near & cpuset] for _, cpuset in sorted(devices)]
    return _with_gpus(list(parts.values()), at)


def _with_gpus(parts: Sequence[Sequence[int]], near: Sequence[Sequence[int]]) -> tuple[Domain, ...]:
    """Return domains of their cores; `near` has the domains that are nearest to each GPU."""
    gpus: list[list[int]] = [[] for _ in parts]
    candidates = [tuple(domains) or tuple(range(len(parts))) for domains in near]
    several, turns = Counter(candidates), Counter[tuple[int, ...]]()
    for gpu, domains in enumerate(candidates):
        gpus[domains[turns[domains] * len(domains) // several[domains]]].append(gpu)
        turns[domains] += 1
    return tuple(Domain(tuple(part), tuple(own)) for part, own in zip(parts, gpus, strict=True))


def _objects(root: ElementTree.Element, name: str) -> Iterator[tuple[ElementTree.Element, int]]:
    """Yield every object in the file's order, with its cpuset or that of what it is attached to."""
    rest = [(root, 0)]
    while rest:
        element, cpuset = rest.pop()
        if "cpuset" in element.attrib:
            cpuset = _bits(element.attrib["cpuset"], name)
        yield element, cpuset
        rest += [(child, cpuset) for child in reversed(element.findall("object"))]


def _bits(text: str, name: str, prefix: str = "0x") -> int:
    """Return a bitmap as hwloc writes it, words of 32 bits, the last ones first."""
    value = 0
    for word in text.split(","):
        if not re.fullmatch(rf"({prefix}[0-9a-f]{{1,8}})?", word):
            raise TopologyError(
                f"{name}: cpuset {text[:40]!r}: expected a bitmap like {prefix}0000000f"
            )
        value = value << WORD | int(word or "0", 16)
    return value


def _is_gpu(device: ElementTree.Element) -> bool:
    drivers = (child.get("name", "") for child in device.findall("object"))
    return bool(GPU_CLASS.match(device.get("pci_type", ""))) or any(map(GPU_DRIVER.match, drivers))
