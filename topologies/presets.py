"""Machines by name: shape, link speeds and network interfaces, each field with where it is from.

A field's source is an address, or says "assumed": nobody's figure, or one from memory that no
source here confirms; or "measured": what times on the machine say, and whose. A node has one slot,
or as many as it has hosts; ``preset:NAME*S`` says otherwise. Parameters are the model's defaults on
that topology; scenarios and --set go before. A switch's delay is charged to its links: all of it on
those between switches, half on node links.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .topology import LinkKind, Topology, TopologyError, check_size

ASSUMED = "assumed"
SST = "https://github.com/sstsimulator/sst-macro configurations/hopper_amm.ini"
BGQ = "https://www.oreilly.com/library/view/ibm-system-blue/0738438227/7872ch02.xhtml"
TOFUD = "https://technodocbox.com/Internet_Technology/122076104-The-tofu-interconnect-d.html"
BINE = "https://github.com/HLC-Lab/pico"
CINECA = "https://leonardo-supercomputer.cineca.eu/hpc-system"
LUMI = "https://docs.lumi-supercomputer.eu/hardware/network"
TOFU = "https://en.wikipedia.org/wiki/Torus_fusion"
SLINGSHOT = "https://alcf.anl.gov/support-center/aurora/interconnect"
CODES = "https://github.com/codes-org/codes modelnet-mpi-fattree-summit-k36-n3564.conf"
TRACER = "https://github.com/hpcgroup/TraceR examples/conf/torus.conf"
TPU = "https://glennklockwood.com/garden/processors/TPUv4"
ASTRA = "https://github.com/astra-sim/astra-sim examples/network/analytical/HGX-H100-validated.yml"
SUPERPOD_B200 = (
    "https://docs.nvidia.com/dgx-superpod/reference-architecture-scalable-infrastructure-b200"
)
DGX_B200 = "https://docs.nvidia.com/dgx/dgxb200-user-guide/introduction-to-dgxb200.html"
SUPERPOD_GB200 = (
    "https://docs.nvidia.com/dgx-superpod/reference-architecture-scalable-infrastructure-gb200"
)
GB200 = "https://docs.nvidia.com/dgx/dgxgb200-user-guide/hardware.html"
NVLINK = "https://catalogone.com/data-center-and-cloud-computing-nvlink-nvswitch"


class Figure(NamedTuple):
    """A number in SI units, and where it is from."""

    value: float
    source: str


class Word(NamedTuple):
    """A parameter that is a word, and where it is from."""

    value: str
    source: str


class Links(NamedTuple):
    """Speeds of one kind of links; `axes` are its dimensions where those of a torus differ."""

    kind: str
    bandwidth: Figure
    latency: Figure
    axes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Preset:
    """A machine.

    Attributes
    ----------
    name, summary : str
        One line.
    spec, source : str
        The topology that it is, and where that is from.
    links : tuple of Links
        In the order of the topology's kinds, or by dimension.
    parameters : dict
        Of the model, by key ("injection.bandwidth").
    """

    name: str
    summary: str
    spec: str
    source: str
    links: tuple[Links, ...]
    parameters: dict[str, Figure | Word]

    def fields(self) -> list[tuple[str, str | float, str]]:
        """Name, value in SI units and source of every field."""
        rows: list[tuple[str, str | float, str]] = [("topology", self.spec, self.source)]
        for links in self.links:
            prefix = "link" if len(self.links) == 1 else f"link.{links.kind}"
            rows += [
                (f"{prefix}.bandwidth", *links.bandwidth),
                (f"{prefix}.latency", *links.latency),
            ]
        return rows + [(key, *figure) for key, figure in self.parameters.items()]


def _interface(bandwidth: Figure, latency: Figure | None = None) -> dict[str, Figure | Word]:
    both = {"bandwidth": bandwidth} | ({} if latency is None else {"latency": latency})
    return {f"{end}.{key}": f for end in ("injection", "ejection") for key, f in both.items()}


def _in_turns(bandwidth: Figure) -> dict[str, Figure | Word]:
    """Return an interface that serves a rank's peers in turn, as broadcasts to all at once say."""
    turns = Word("round_robin", f"measured: bcast of 64 MiB to several children at once, {BINE}")
    return {"nic": turns} | _interface(bandwidth)


_LATENCY = Figure(100e-9, ASSUMED)
_ROSETTA = (
    "https://systemspecbase.com/slingshot-interconnect-11-performance-and-network-topology-data"
)

PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            "bgq",
            "IBM Blue Gene/Q, one midplane: 5-D torus, two links along E",
            "torus:4x4x4x4x2",
            f"{ASSUMED}: shape of a midplane from memory; 5-D torus: {BGQ}",
            (
                Links("abcd", Figure(1.8e9, BGQ), Figure(40e-9, ASSUMED), (0, 1, 2, 3)),
                Links("e", Figure(3.6e9, f"{BGQ}, twice"), Figure(40e-9, ASSUMED), (4,)),
            ),
            {"packet_size": Figure(512, "https://github.com/codes-org/codes README.torus")},
        ),
        Preset(
            "cray-gemini-hopper",
            "Cray XE6 Hopper: 3-D torus of Gemini routers, two hosts on each",
            "torus:17x8x24*2",
            SST,
            (
                Links("xz", Figure(6.4e9, SST), Figure(100e-9, SST), (0, 2)),
                Links("y", Figure(3.2e9, SST), Figure(100e-9, SST), (1,)),
            ),
            _interface(Figure(10e9, SST))
            | {
                "injection.latency": Figure(1e-6, SST),
                "ejection.latency": Figure(0, f"{ASSUMED}: all of it at the injection"),
            },
        ),
        Preset(
            "fugaku",
            "Fugaku, TofuD: 24 x 23 x 24 groups of 12 nodes, with what its links were seen to do",
            "tofud:24x23x24",
            "RIKEN, Fugaku user guide",
            (Links("link", Figure(6.34e9, f"measured: bcast of 64 MiB, {BINE}"), _LATENCY),),
            _interface(
                Figure(38.1e9, f"{TOFUD}, six interfaces"),
                Figure(195e-9, f"{TOFUD}, half of a Put of 8 bytes without its link"),
            ),
        ),
        Preset(
            "dgx-b200-unit",
            "DGX B200, a unit of 32 systems: 8 GPUs behind NVSwitch, a rail for each of the 8",
            "names:dgx[00-31]-gpu[0-7]@fattree:8x32:1x8",
            f"{SUPERPOD_B200}; assumed: a rail is one switch, NVSwitch passes the rest on",
            (
                Links("level1", Figure(900e9, f"{DGX_B200}, 14.4 TB/s for 8, both ways"), _LATENCY),
                Links("level2", Figure(50e9, f"{DGX_B200}, 400 Gbit/s"), _LATENCY),
            ),
            _interface(Figure(900e9, f"{ASSUMED}: as the link")),
        ),
        Preset(
            "fugaku-tofud",
            "Fugaku, Tofu D: 6-D torus (mesh in A and C), nominal speeds",
            "torus:24x23x24x2x3x2",
            "RIKEN, Fugaku user guide (sizes); assumed: rings in X, Y, Z and B",
            (Links("link", Figure(6.8e9, ASSUMED), _LATENCY),),
            _interface(Figure(40.8e9, ASSUMED)),
        ),
        Preset(
            "generic-torus",
            "TraceR's example: 3-D torus of 160 nodes",
            "torus:4x5x8",
            TRACER,
            (Links("link", Figure(11.9e9, TRACER), Figure(30e-9, TRACER)),),
            _interface(Figure(24e9, TRACER), Figure(200e-9, f"{TRACER}, half of nic_delay"))
            | {
                "eager_limit": Figure(64000, TRACER),
                "packet_size": Figure(8192, TRACER),
            },
        ),
        Preset(
            "gb200-unit",
            "DGX GB200: 8 racks of 72 GPUs in one NVLink domain, a 400 Gbit/s port each",
            "names:rack[0-7]tray[00-17]-gpu[0-3]@fattree:72x8:1x72",
            f"{SUPERPOD_GB200}; assumed: a rail for each GPU of a rack, as one switch",
            (
                Links("level1", Figure(900e9, NVLINK), _LATENCY),
                Links("level2", Figure(50e9, f"{GB200}, 4 ports for 4 GPUs"), _LATENCY),
            ),
            _interface(Figure(900e9, f"{ASSUMED}: as the link")),
        ),
        Preset(
            "haec-box-4x4x4",
            "HAEC Box: four boards of 4x4 optical torus, wireless between boards; speeds assumed",
            "haec:4x4x4",
            "HAEC thesis, section 2.4",
            (
                Links("optical", Figure(31.25e9, f"{ASSUMED}: 250 Gbit/s"), _LATENCY),
                Links("wireless", Figure(12.5e9, f"{ASSUMED}: 100 Gbit/s"), _LATENCY),
            ),
            {},
        ),
        Preset(
            "hgx-h100",
            "8 GPUs H100 behind NVSwitch, taken as one switch",
            "cluster:8",
            ASTRA,
            (Links("link", Figure(400e9, ASTRA), Figure(468.125e-9, f"{ASTRA}, half a link")),),
            _interface(Figure(400e9, f"{ASSUMED}: as the link")),
        ),
        Preset(
            "k-tofu1",
            "K computer, Tofu: 6-D torus (mesh in A and C)",
            "torus:24x18x17x2x3x2",
            f"{ASSUMED}: sizes from memory; 6-D mesh/torus: {TOFU}",
            (Links("link", Figure(5e9, TOFU), _LATENCY),),
            _interface(Figure(20e9, f"{ASSUMED}: four interfaces at link speed")),
        ),
        Preset(
            "leonardo",
            "Leonardo Booster: Dragonfly+, 19 cells of 18 leaves of 10 nodes",
            "dragonfly+:10x18x18x19",
            f"{BINE} tracer/maps/leonardo.txt; assumed: 18 spines a cell, whole cells alone",
            (
                Links("node", Figure(50e9, CINECA), _LATENCY),
                Links("local", Figure(25e9, CINECA), _LATENCY),
                Links("global", Figure(25e9, f"{ASSUMED}: as between switches"), _LATENCY),
            ),
            _in_turns(Figure(24.6e9, f"measured: bcast of 64 MiB, two of four ports, {BINE}")),
        ),
        Preset(
            "lumi-g",
            "LUMI-G: dragonfly of 24 cabinets of 124 nodes, by their names; one port a node",
            "names:nid[005000-007975]@dragonfly:4x31x17x24",
            f"{LUMI}; cabinets: xnames in {BINE}; assumed: 4 nodes a switch, 17 global links",
            (
                Links("node", Figure(25e9, LUMI), Figure(175e-9, f"{_ROSETTA}, half")),
                Links("local", Figure(25e9, LUMI), Figure(350e-9, _ROSETTA)),
                Links("global", Figure(25e9, f"{ASSUMED}: as local"), Figure(350e-9, _ROSETTA)),
            ),
            _in_turns(Figure(25e9, f"{LUMI}, one port of four")),
        ),
        Preset(
            "marenostrum5",
            "MareNostrum 5, accelerated: 7 islands of 160 nodes, 2:1 between them; one port a node",
            "names:as[01-07]r[1-5]b[01-32]@fattree:160x7:1x80",
            f"{ASSUMED}: islands as the nodes' names count, as one switch each; 2:1 from memory",
            (
                Links("level1", Figure(25e9, f"{ASSUMED}: NDR200 from memory"), _LATENCY),
                Links("level2", Figure(25e9, f"{ASSUMED}: NDR200 from memory"), _LATENCY),
            ),
            _in_turns(Figure(24.7e9, f"measured: bcast of 64 MiB, one of four ports, {BINE}")),
        ),
        Preset(
            "nvl72",
            "72 GPUs behind one tier of NVSwitch, taken as one switch",
            "cluster:72",
            NVLINK,
            (Links("link", Figure(900e9, NVLINK), _LATENCY),),
            _interface(Figure(900e9, f"{ASSUMED}: as the link")),
        ),
        Preset(
            "slingshot11-frontier",
            "Frontier-like: dragonfly of 74 groups of 32 switches, 16 ends on each",
            "dragonfly:16x32x17x74",
            f"{ASSUMED}: 74 groups and their cabling; 32 switches of 16, 31 and 17 ports: "
            "https://glennklockwood.com/garden/slingshot",
            (
                Links("node", Figure(25e9, SLINGSHOT), Figure(175e-9, f"{_ROSETTA}, half")),
                Links("local", Figure(25e9, SLINGSHOT), Figure(350e-9, _ROSETTA)),
                Links("global", Figure(25e9, SLINGSHOT), Figure(350e-9, _ROSETTA)),
            ),
            _interface(Figure(25e9, f"{ASSUMED}: as the link")),
        ),
        Preset(
            "summit-fattree",
            "Summit-like: fat tree of three levels of 36-port switches, 3,564 ends",
            "fattree:18x18x11",
            f"{CODES}; assumed: full bisection",
            (
                Links("level1", Figure(12.5e9, CODES), Figure(30e-9, f"{CODES}, half")),
                Links("level2", Figure(12.5e9, CODES), Figure(60e-9, CODES)),
                Links("level3", Figure(12.5e9, CODES), Figure(60e-9, CODES)),
            ),
            _interface(Figure(12.5e9, f"{ASSUMED}: as the link")),
        ),
        Preset(
            "tpu-v4",
            "TPU v4 pod: 3-D torus of 4,096 chips",
            "torus:16x16x16",
            f"{TPU}; assumed: the cube of the possible shapes",
            (Links("link", Figure(50e9, TPU), _LATENCY),),
            _interface(Figure(300e9, f"{ASSUMED}: six links")),
        ),
        Preset(
            "tpu-v5p",
            "TPU v5p pod: 3-D torus of 8,960 chips",
            "torus:16x20x28",
            f"{ASSUMED}: shape and speeds from memory",
            (Links("link", Figure(100e9, ASSUMED), _LATENCY),),
            _interface(Figure(600e9, f"{ASSUMED}: six links")),
        ),
    )
}


def preset(name: str, build: Callable[[str], Topology], *, slots: int | None = None) -> Topology:
    """Topology of a preset.

    Parameters
    ----------
    name : str
        A key of `PRESETS`.
    build : callable
        Makes a topology from the spec that the preset stands for.
    slots : int, optional
        Ranks that each node can take; the preset's own number when left out.

    Raises
    ------
    TopologyError
        Slots below 1.
    """
    chosen = PRESETS[name]
    plain = build(chosen.spec)
    if slots is not None and slots < 1:
        raise TopologyError(f"{slots} slots a node: expected at least 1")
    if slots is not None:
        check_size(f"preset {name}", nodes=0, links=0, slots=plain.nodes * slots)
    link_kind = plain.link_kind
    if any(links.axes for links in chosen.links):
        moved = plain.coords[plain.link_from] != plain.coords[plain.link_to]
        of_axis = {axis: kind for kind, links in enumerate(chosen.links) for axis in links.axes}
        by_axis = np.array([of_axis[axis] for axis in range(len(plain.dims))], dtype=np.uint8)
        link_kind = by_axis[moved.argmax(axis=1)]
    return replace(
        plain,
        spec=f"preset:{name}" + ("" if slots is None else f"*{slots}"),
        slots=plain.slots if slots is None else np.full_like(plain.slots, slots),
        link_kind=link_kind,
        kinds=tuple(
            LinkKind(kind, bandwidth.value, latency.value, (bandwidth.source, latency.source))
            for kind, bandwidth, latency, _ in chosen.links
        ),
        parameters={key: figure.value for key, figure in chosen.parameters.items()},
    )
