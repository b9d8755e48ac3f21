"""Speeds and numbers in the attributes of SimGrid's platform files.

Bytes are B and bits b; a number alone is in bytes/s or seconds. Source: SimGrid 3.32,
src/kernel/xml/platf_parse.cpp and documentation, "Platform: XML reference".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from xml.etree.ElementTree import Element

from hopmap.topologies.topology import TopologyError

FAST = 1e15  # bytes/s of an interface that there is not
_PREFIX = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15} | {
    f"{prefix}i": 2.0 ** (10 * k) for k, prefix in enumerate("KMGTP", 1)
}
_BANDWIDTH = {f"{p}Bps": f for p, f in _PREFIX.items()} | {
    f"{p}bps": f / 8 for p, f in _PREFIX.items()
}
_LATENCY = {"ps": 1e12, "ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0, "m": 1 / 60}  # in a second


class Ends(NamedTuple):
    """Speed of a link: bytes/s and seconds."""

    bandwidth: float
    latency: float


def parameters_of(
    injection: Ends | None, ejection: Ends | None, memory: Ends | None = None
) -> dict[str, float]:
    """Return parameters of the model; of the memory's, none where the file does not say."""
    free = Ends(FAST, 0.0)
    ends = {"injection": injection or free, "ejection": ejection or free}
    ends |= {"memory": memory} if memory else {}
    return {
        f"{name}.{key}": value for name, end in ends.items() for key, value in end._asdict().items()
    }


def speed_of(element: Element, bandwidth: str, latency: str, spec: str) -> Ends:
    """Read the two attributes of these names."""
    where = f"{spec}: <{element.tag} {element.get('id', '')}>"
    return Ends(
        _quantity(element.get(bandwidth), _BANDWIDTH, False, f"{where}: {bandwidth}", "10Gbps"),
        _quantity(element.get(latency, "0"), _LATENCY, True, f"{where}: {latency}", "50us"),
    )


def _quantity(
    text: str | None, units: Mapping[str, float], per_second: bool, where: str, like: str
) -> float:
    match = re.fullmatch(r"\s*(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)\s*([a-zA-Z]*)\s*", text or "")
    unit = (match[2] or ("s" if per_second else "Bps")) if match else ""
    if match is None or unit not in units:
        raise TopologyError(f"{where} {text!r}: expected a quantity like {like}")
    value = float(match[1])
    return value / units[unit] if per_second else value * units[unit]


def whole_number(text: str, where: str) -> int:
    """Read a number of at least 1."""
    if not re.fullmatch(r"\d{1,9}", text) or int(text) < 1:
        raise TopologyError(f"{where} {text[:40]!r}: expected a whole number of at least 1")
    return int(text)
