"""Lists of hosts as Slurm writes them: "node[01-04,7]", "a1,b[2-3]", "rack[0-1]n[0-15]".

Source: Slurm, scontrol(1) "show hostnames", and its src/common/hostlist.c for what is legal.
"""

from __future__ import annotations

import re
from itertools import product
from math import prod

from hopmap.topologies.topology import TopologyError

LIMIT = 2**18  # names in one list, more than any machine has nodes
_NAME = re.compile(r"(?:[\w.-]|\[[\d,-]+\])+")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


def expand(text: str) -> list[str]:
    """Return the hosts of a list, in its order; leading zeros of a range's begin are kept.

    Raises
    ------
    TopologyError
        A list that makes no sense, is empty, or has more than `LIMIT` names.

    Examples
    --------
    >>> expand("node[08-10,1],login")
    ['node08', 'node09', 'node10', 'node1', 'login']
    """
    hosts: list[str] = []
    for word in map(str.strip, re.split(r",(?![^\[]*\])", text)):
        if not _NAME.fullmatch(word):
            raise TopologyError(f"hosts {text[:60]!r}: expected a list like node[01-04,7],login")
        parts = [
            _numbers(part[1:-1], text) if part.startswith("[") else [part]
            for part in re.findall(r"\[[^\]]*\]|[^\[]+", word)
        ]
        if len(hosts) + prod(map(len, parts)) > LIMIT:
            raise TopologyError(f"hosts {text[:60]!r}: more than {LIMIT:,} names: expected fewer")
        hosts += ["".join(chosen) for chosen in product(*parts)]
    return hosts


def _numbers(ranges: str, text: str) -> list[str]:
    """Numbers of "01-04,7" as text."""
    numbers: list[str] = []
    for part in ranges.split(","):
        match = _RANGE.fullmatch(part)
        low, high = (match[1], match[2] or match[1]) if match else ("1", "0")
        if int(low) > int(high) or int(high) - int(low) >= LIMIT:
            raise TopologyError(
                f"hosts {text[:60]!r}: range {part!r}: expected rising numbers, at most {LIMIT}"
            )
        numbers += [str(n).zfill(len(low)) for n in range(int(low), int(high) + 1)]
    return numbers
